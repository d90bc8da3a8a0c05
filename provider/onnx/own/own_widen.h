/* provider/onnx/own/own_widen.h reads quantised tensors, whose elements have 8 bits. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_WIDEN_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_WIDEN_H

#include "provider/onnx/own/own_call.h"

/* Makes int32 out of int8 or uint8, less the zero point of input `zero` (left out: 0). The zero
 * point is one number, or one for each place of dim `axis`. The caller releases the block. Returns
 * NULL after a fault. */
struct own_block *own_widen(struct own_call *call, uint32_t input, uint32_t zero, uint32_t axis);

/* Reads an input that is one positive float32. Returns false after a fault. */
bool own_scale(struct own_call *call, uint32_t input, float *ret_scale);

/* Rounds to nearest, ties to even, adds the zero point, and cuts to the range of the type. */
int64_t own_quantised(double value, int64_t zero, enum onnx_type type);
/* Writes an element of int8 or uint8. */
void own_put_quantised(struct own_tensor *tensor, int64_t at, int64_t value);

#endif
