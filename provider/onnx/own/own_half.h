/* provider/onnx/own/own_half.h turns float16 and bfloat16 into float32 and back. Both kinds are
 * bit patterns of 16 bits; the way back rounds to nearest, ties to even. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_HALF_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_HALF_H

#include "provider/onnx/own/own_tensor.h"

float own_half_widen(uint16_t half); /* float16 */
uint16_t own_half_narrow(float value);
float own_brain_widen(uint16_t brain); /* bfloat16 */
uint16_t own_brain_narrow(float value);

/* Returns true for float16 and bfloat16. */
bool own_type_is_half(enum onnx_type type);
/* Converts `count` elements of a half type to float32, and back. */
void own_halves_widen(enum onnx_type type, int64_t count, const uint16_t *from, float *to);
void own_halves_narrow(enum onnx_type type, int64_t count, const float *from, uint16_t *to);

#endif
