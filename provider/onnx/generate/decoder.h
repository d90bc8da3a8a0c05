/* provider/onnx/generate/decoder.h runs a decoder step by step. What it computed of earlier tokens
 * stays as the past of the next step.
 *
 * The first step takes the whole prompt, and each later one a token. An engine's outputs `present`
 * go into the next run as they are, without a copy.
 *
 * Several texts can take a step together, each in a row of its own. Shorter pasts are padded on the
 * left, where the attention mask hides them:
 *
 *     past, mask     0 0 0 a b c d | e      row of 4 tokens and the next one
 *                    f g h i j k l | m      row of 7 tokens and the next one
 */
#ifndef BOURSE_PROVIDER_ONNX_GENERATE_DECODER_H
#define BOURSE_PROVIDER_ONNX_GENERATE_DECODER_H

#include "base/problem.h"
#include "provider/onnx/onnx_engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct decoder;

/* Makes a decoder of a session, which outlives it. Returns NULL with the problem when the model is
 * no decoder with a past, or memory is short. */
struct decoder *decoder_create(const struct onnx_engine *engine, void *session,
                               struct problem *ret_problem);
void decoder_destroy(struct decoder **self);

/* Runs the model on the tokens that follow those of all steps so far; at least one. A decoder of
 * several rows takes `count` tokens for each, row after row. OK: *ret_logits has *ret_count numbers
 * for each row, one for each token of the vocabulary, and belongs to the decoder until the next
 * step. Any other status leaves the past as it was. */
enum onnx_engine_status decoder_step(struct decoder *decoder, const uint32_t *tokens, size_t count,
                                     const float **ret_logits, size_t *ret_count,
                                     struct problem *ret_problem);

/* Returns what the model lacks to take several texts in one step, or NULL when it lacks nothing. */
const char *decoder_lacks_rows(const struct decoder *decoder);

/* The rows of a decoder after a change. */
struct decoder_rows {
    const size_t *stay; /* rows that stay, ascending */
    size_t stay_count;
    const struct decoder *const *join; /* each has one row, which is copied; of the same session */
    size_t join_count;
};
/* Leaves out the rows that do not stay, and puts the joining ones behind the others. At least one
 * row is left. The decoder lacks nothing for rows. Returns false with the problem when memory is
 * short; the decoder is as it was then. */
bool decoder_regroup(struct decoder *decoder, const struct decoder_rows *rows,
                     struct problem *ret_problem);

#endif
