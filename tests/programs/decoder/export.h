/* tests/programs/decoder/export.h writes a network as an ONNX model, with the inputs and outputs
 * that exports of decoders with a past have: input_ids, attention_mask, position_ids and
 * past_key_values.N.key/value, logits and present.N.key/value. */
#ifndef BOURSE_TESTS_PROGRAMS_DECODER_EXPORT_H
#define BOURSE_TESTS_PROGRAMS_DECODER_EXPORT_H

#include "tests/programs/decoder/network.h"
#include "tests/support/onnx_writer.h"

/* The caller frees the bytes. */
struct onnx_bytes export_network(const struct network *network);

#endif
