#include "provider/onnx/own/own_widen.h"

#include <math.h>

static bool is_byte(enum onnx_type type)
{
    return type == ONNX_INT8 || type == ONNX_UINT8;
}

struct own_block *own_widen(struct own_call *call, uint32_t input, uint32_t zero, uint32_t axis)
{
    const struct own_tensor *x = own_input(call, input);
    const struct own_tensor *point = own_input(call, zero);
    if (!is_byte(x->type) || (point != NULL && point->type != x->type)) {
        (void)own_fault(call, ONNX_OPERATOR, is_byte(x->type) ? zero : input,
                        "it is not int8 or uint8, or not as its zero point");
        return NULL;
    }
    const int64_t places = axis < x->rank ? x->dims[axis] : 1;
    if (point != NULL && point->elements != 1 && point->elements != places) {
        (void)own_fault(call, ONNX_SHAPE, zero, "there are %lld zero points for %lld places",
                        (long long)point->elements, (long long)places);
        return NULL;
    }
    struct own_block *block = own_scratch(call, x->elements, sizeof(int32_t));
    if (block == NULL) {
        return NULL;
    }
    int32_t *to = own_block_bytes(block);
    const bool is_each = point != NULL && point->elements > 1;
    const int64_t inner = axis < x->rank ? own_tensor_span(x, axis + 1, x->rank) : 1;
    for (int64_t i = 0; i < x->elements; i++) {
        const int64_t place = is_each ? i / inner % places : 0;
        const int64_t less = point != NULL ? own_integer_at(point, place) : 0;
        to[i] = (int32_t)(own_integer_at(x, i) - less);
    }
    return block;
}

bool own_scale(struct own_call *call, uint32_t input, float *ret_scale)
{
    const struct own_tensor *scale = own_input(call, input);
    if (scale == NULL || scale->type != ONNX_FLOAT || scale->elements != 1) {
        return own_fault(call, ONNX_OPERATOR, input, "the scale is not one float32");
    }
    *ret_scale = *(const float *)scale->at;
    return true;
}

int64_t own_quantised(double value, int64_t zero, enum onnx_type type)
{
    const double least = type == ONNX_INT8 ? INT8_MIN : 0;
    const double most = type == ONNX_INT8 ? INT8_MAX : UINT8_MAX;
    const double placed = rint(value) + (double)zero;
    return placed != placed ? zero
           : placed < least ? (int64_t)least
           : placed > most  ? (int64_t)most
                            : (int64_t)placed;
}

void own_put_quantised(struct own_tensor *tensor, int64_t at, int64_t value)
{
    if (tensor->type == ONNX_INT8) {
        ((int8_t *)tensor->to)[at] = (int8_t)value;
    } else {
        ((uint8_t *)tensor->to)[at] = (uint8_t)value;
    }
}
