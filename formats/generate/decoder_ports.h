/* formats/generate/decoder_ports.h finds what a decoder with a past takes and leaves, by the names
 * that exports of such models have.
 *
 *     input_ids        int64[batch,sequence]              logits     [batch,sequence,vocabulary]
 *     attention_mask   int64[batch,past + sequence]       may be absent
 *     position_ids     int64[batch,sequence]              may be absent
 *     past_key_values.X  [batch,heads,past,width]         present.X  [batch,heads,past + sequence,
 *                                                                    width]
 *
 * X is such as 0.key and 0.value. A model with any other input is refused. Pure. */
#ifndef BOURSE_FORMATS_GENERATE_DECODER_PORTS_H
#define BOURSE_FORMATS_GENERATE_DECODER_PORTS_H

#include "base/problem.h"
#include "formats/onnx/onnx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DECODER_PASTS_MOST = 256,    /* keys and values of all layers */
    DECODER_PADDING_MOST = 1024, /* rows of the vocabulary that no token has */
};
#define DECODER_NONE SIZE_MAX

/* The places of the ports in the lists of inputs and outputs. */
struct decoder_ports {
    size_t ids, mask, positions; /* mask and positions may be DECODER_NONE */
    size_t logits;
    size_t pasts[DECODER_PASTS_MOST], presents[DECODER_PASTS_MOST];
    size_t past_count;
    int64_t vocabulary; /* -1: the model does not say */
};

/* Finds the ports. Returns false with a problem that names the port that is missing or unfit. */
bool decoder_ports_read(const struct onnx_port *inputs, size_t input_count,
                        const struct onnx_port *outputs, size_t output_count,
                        struct decoder_ports *ret_ports, struct problem *ret_problem);

/* Compares a model's vocabulary with the tokenizer's size. A model may have some rows more, as many
 * round their vocabulary up, and none less. */
bool decoder_ports_fit(int64_t vocabulary, uint32_t tokens, struct problem *ret_problem);

#endif
