/* provider/onnx/generate/decoder.h runs a decoder step by step. What it computed of earlier tokens
 * stays as the past of the next step.
 *
 * The first step takes the whole prompt, and each later one a token. An engine's outputs `present`
 * go into the next run as they are, without a copy. */
#ifndef BOURSE_PROVIDER_ONNX_GENERATE_DECODER_H
#define BOURSE_PROVIDER_ONNX_GENERATE_DECODER_H

#include "base/problem.h"
#include "provider/onnx/onnx_engine.h"

#include <stddef.h>
#include <stdint.h>

struct decoder;

/* Makes a decoder of a session, which outlives it. Returns NULL with the problem when the model is
 * no decoder with a past, or memory is short. */
struct decoder *decoder_create(const struct onnx_engine *engine, void *session,
                               struct problem *ret_problem);
void decoder_destroy(struct decoder **self);

/* Runs the model on the tokens that follow those of all steps so far; at least one. OK: *ret_logits
 * has *ret_count numbers, one for each token of the vocabulary, and belongs to the decoder until
 * the next step. Any other status leaves the past as it was. */
enum onnx_engine_status decoder_step(struct decoder *decoder, const uint32_t *tokens, size_t count,
                                     const float **ret_logits, size_t *ret_count,
                                     struct problem *ret_problem);

#endif
