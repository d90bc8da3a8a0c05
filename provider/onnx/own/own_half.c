#include "provider/onnx/own/own_half.h"

#include <string.h>

/* float32 has 8 bits of exponent and 23 of fraction; float16 has 5 and 10. */
enum {
    FRACTION = 23,
    HALF_FRACTION = 10,
    DROPPED = FRACTION - HALF_FRACTION,
    BIAS = 127,
    HALF_BIAS = 15,
    HALF_INFINITE = 31,
};
#define INFINITE UINT32_C(0x7f800000)
#define QUIET UINT32_C(0x00400000)

static uint32_t bits_of(float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float value_of(uint32_t bits)
{
    float value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float own_half_widen(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000U) << 16;
    const uint32_t exponent = (half >> HALF_FRACTION) & HALF_INFINITE;
    const uint32_t fraction = half & 0x3ffU;
    if (exponent == HALF_INFINITE) {
        return value_of(sign | INFINITE | fraction << DROPPED);
    }
    if (exponent == 0) { /* zero, or a count of 2^-24 */
        const float size = (float)fraction * 0x1p-24F;
        return value_of(sign | bits_of(size));
    }
    return value_of(sign | (exponent + BIAS - HALF_BIAS) << FRACTION | fraction << DROPPED);
}

/* Drops the low bits of a number, to nearest, ties to even. */
static uint32_t drop(uint32_t number, unsigned count)
{
    const uint32_t odd = (number >> count) & 1U;
    return (number + (UINT32_C(1) << (count - 1)) - 1 + odd) >> count;
}

uint16_t own_half_narrow(float value)
{
    const uint32_t bits = bits_of(value);
    const uint32_t sign = bits >> 16 & 0x8000U;
    const uint32_t rest = bits & 0x7fffffffU;
    if (rest > INFINITE) {
        return (uint16_t)(sign | 0x7e00U | (rest >> DROPPED & 0x1ffU));
    }
    if (rest >= bits_of(65520.0F)) {
        return (uint16_t)(sign | 0x7c00U);
    }
    if (rest < bits_of(0x1p-14F)) {
        /* The sum has its last bit at 2^-24, so that the addition itself rounds. */
        const uint32_t small = bits_of(value_of(rest) + 0.5F) - bits_of(0.5F);
        return (uint16_t)(sign | small);
    }
    const uint32_t moved = rest - ((uint32_t)(BIAS - HALF_BIAS) << FRACTION);
    return (uint16_t)(sign | drop(moved, DROPPED));
}

float own_brain_widen(uint16_t brain)
{
    return value_of((uint32_t)brain << 16);
}

uint16_t own_brain_narrow(float value)
{
    const uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffffU) > INFINITE) {
        return (uint16_t)((bits | QUIET) >> 16);
    }
    return (uint16_t)drop(bits, 16);
}

bool own_type_is_half(enum onnx_type type)
{
    return type == ONNX_FLOAT16 || type == ONNX_BFLOAT16;
}

void own_halves_widen(enum onnx_type type, int64_t count, const uint16_t *from, float *to)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] = type == ONNX_FLOAT16 ? own_half_widen(from[i]) : own_brain_widen(from[i]);
    }
}

void own_halves_narrow(enum onnx_type type, int64_t count, const float *from, uint16_t *to)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] = type == ONNX_FLOAT16 ? own_half_narrow(from[i]) : own_brain_narrow(from[i]);
    }
}
