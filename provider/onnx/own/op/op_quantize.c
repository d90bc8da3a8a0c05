/* This file has the ways to numbers of 8 bits and back. Scale and zero point are one number, or one
 * for each place of an axis. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_widen.h"

#include <math.h>

struct points {
    const struct own_tensor *scale, *zero;
    int64_t inner, places;
};

static bool read_points(struct own_call *call, const struct own_tensor *x, struct points *points)
{
    const int64_t said = own_integer(call, "axis", 1);
    *points = (struct points){own_input(call, 1), own_input(call, 2), 1, 1};
    if (!own_input_is(call, 1, ONNX_FLOAT)) {
        return false;
    }
    if (points->scale->elements != 1) {
        uint32_t axis = 0;
        if (!onnx_rule_axis(&call->rule, said, x->rank, &axis)) {
            return false;
        }
        points->places = x->dims[axis];
        points->inner = own_tensor_span(x, axis + 1, x->rank);
    }
    if (points->scale->elements != points->places ||
        (points->zero != NULL && points->zero->elements != points->places)) {
        return own_fault(call, ONNX_SHAPE, 1, "there are %lld scales for %lld places",
                         (long long)points->scale->elements, (long long)points->places);
    }
    return true;
}

static double scale_at(const struct points *points, int64_t at)
{
    return own_real_at(points->scale, at / points->inner % points->places);
}

static int64_t zero_at(const struct points *points, int64_t at)
{
    return points->zero == NULL ? 0
                                : own_integer_at(points->zero, at / points->inner % points->places);
}

bool own_op_quantize(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *y = own_output(call, 0);
    struct points points;
    if (y->type != ONNX_INT8 && y->type != ONNX_UINT8) {
        return own_fault(call, ONNX_OPERATOR, 2, "it is not int8 or uint8");
    }
    if (!read_points(call, x, &points)) {
        return false;
    }
    for (int64_t i = 0; i < x->elements; i++) {
        /* The quotient is a float32, as the reference's is, so that ties are the same. */
        const float quotient = (float)own_real_at(x, i) / (float)scale_at(&points, i);
        own_put_quantised(y, i, own_quantised((double)quotient, zero_at(&points, i), y->type));
    }
    return true;
}

bool own_op_dequantize(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    float *y = own_output(call, 0)->to;
    struct points points;
    if (!own_input_is(call, 2, x->type) || !read_points(call, x, &points)) {
        return false;
    }
    for (int64_t i = 0; i < x->elements; i++) {
        y[i] = (float)((double)(own_integer_at(x, i) - zero_at(&points, i)) * scale_at(&points, i));
    }
    return true;
}

/* The range always has 0 in it, so that 0 is exact. */
bool own_op_quantize_anew(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *y = own_output(call, 0);
    struct own_tensor *scale = own_output(call, 1);
    struct own_tensor *zero = own_output(call, 2);
    const float *values = x->at;
    float least = 0;
    float most = 0;
    for (int64_t i = 0; i < x->elements; i++) {
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
    }
    const float step = (most - least) / (float)UINT8_MAX;
    const double before = step > 0 ? rint((double)(-least / step)) : 0;
    const int64_t point = before < 0 ? 0 : before > UINT8_MAX ? UINT8_MAX : (int64_t)before;
    for (int64_t i = 0; y != NULL && i < x->elements; i++) {
        const float quotient = step > 0 ? values[i] / step : 0;
        own_put_quantised(y, i, own_quantised((double)quotient, point, ONNX_UINT8));
    }
    if (scale != NULL) {
        *(float *)scale->to = step;
    }
    if (zero != NULL) {
        *(uint8_t *)zero->to = (uint8_t)point;
    }
    return true;
}
