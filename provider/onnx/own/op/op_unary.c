/* This file has the operators of one input that compute each element for itself, by C's own
 * functions. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_parallel.h"

#include <math.h>

/* A row computes `count` elements. */
struct row {
    void (*compute)(const void *from, void *to, int64_t count);
    const struct own_tensor *x;
    struct own_tensor *y;
    int64_t size; /* of an element */
};

#define ROW(name, element, expression)                                                             \
    static void name(const void *from, void *to, int64_t count)                                    \
    {                                                                                              \
        typedef element row_element;                                                               \
        const row_element *values = from;                                                          \
        row_element *results = to;                                                                 \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const row_element x = values[i];                                                       \
            results[i] = (row_element)(expression);                                                \
        }                                                                                          \
    }
/* Writes rows for both sizes of reals; `of32` and `of64` differ in the functions' names alone. */
#define REAL_ROWS(name, of32, of64) ROW(name##_float, float, of32) ROW(name##_double, double, of64)

REAL_ROWS(absolute, fabsf(x), fabs(x))
REAL_ROWS(negate, -x, -x)
REAL_ROWS(sign, (float)((x > 0) - (x < 0)), (double)((x > 0) - (x < 0)))
REAL_ROWS(up, ceilf(x), ceil(x))
REAL_ROWS(down, floorf(x), floor(x))
REAL_ROWS(nearest, rintf(x), rint(x)) /* ties to even, which is C's usual way */
REAL_ROWS(root, sqrtf(x), sqrt(x))
REAL_ROWS(inverse, 1.0F / x, 1.0 / x)
REAL_ROWS(exponential, expf(x), exp(x))
REAL_ROWS(logarithm, logf(x), log(x))
REAL_ROWS(sine, sinf(x), sin(x))
REAL_ROWS(cosine, cosf(x), cos(x))
REAL_ROWS(tangent, tanf(x), tan(x))
REAL_ROWS(arc_sine, asinf(x), asin(x))
REAL_ROWS(arc_cosine, acosf(x), acos(x))
REAL_ROWS(arc_tangent, atanf(x), atan(x))
REAL_ROWS(sinh_of, sinhf(x), sinh(x))
REAL_ROWS(cosh_of, coshf(x), cosh(x))
REAL_ROWS(tanh_of, tanhf(x), tanh(x))
REAL_ROWS(asinh_of, asinhf(x), asinh(x))
REAL_ROWS(acosh_of, acoshf(x), acosh(x))
REAL_ROWS(atanh_of, atanhf(x), atanh(x))
REAL_ROWS(error, erff(x), erf(x))

/* The smallest integer has no counterpart: as in two's complement it stays what it is. */
#define WHOLE_ROWS(name, element)                                                                  \
    ROW(absolute_##name, element, x < 0 ? -(uint64_t)x : (uint64_t)x)                              \
    ROW(negate_##name, element, -(uint64_t)x)                                                      \
    ROW(sign_##name, element, (x > 0) - (x < 0))
WHOLE_ROWS(int8, int8_t)
WHOLE_ROWS(int16, int16_t)
WHOLE_ROWS(int32, int32_t)
WHOLE_ROWS(int64, int64_t)
#define NATURAL_ROWS(name, element)                                                                \
    ROW(same_##name, element, x)                                                                   \
    ROW(sign_##name, element, x > 0)
NATURAL_ROWS(uint8, uint8_t)
NATURAL_ROWS(uint16, uint16_t)
NATURAL_ROWS(uint32, uint32_t)
NATURAL_ROWS(uint64, uint64_t)

typedef void row_of(const void *from, void *to, int64_t count);

#define REALS(name) [ONNX_FLOAT] = name##_float, [ONNX_DOUBLE] = name##_double
#define SIGNED(name)                                                                               \
    [ONNX_INT8] = name##_int8, [ONNX_INT16] = name##_int16, [ONNX_INT32] = name##_int32,           \
    [ONNX_INT64] = name##_int64
#define UNSIGNED(name)                                                                             \
    [ONNX_UINT8] = name##_uint8, [ONNX_UINT16] = name##_uint16, [ONNX_UINT32] = name##_uint32,     \
    [ONNX_UINT64] = name##_uint64

static row_of *const rows[OWN_UNARIES][ONNX_TYPES] = {
    [OWN_ABS] = {REALS(absolute), SIGNED(absolute), UNSIGNED(same)},
    [OWN_NEG] = {REALS(negate), SIGNED(negate)},
    [OWN_SIGN] = {REALS(sign), SIGNED(sign), UNSIGNED(sign)},
    [OWN_CEIL] = {REALS(up)},
    [OWN_FLOOR] = {REALS(down)},
    [OWN_ROUND] = {REALS(nearest)},
    [OWN_SQRT] = {REALS(root)},
    [OWN_RECIPROCAL] = {REALS(inverse)},
    [OWN_EXP] = {REALS(exponential)},
    [OWN_LOG] = {REALS(logarithm)},
    [OWN_SIN] = {REALS(sine)},
    [OWN_COS] = {REALS(cosine)},
    [OWN_TAN] = {REALS(tangent)},
    [OWN_ASIN] = {REALS(arc_sine)},
    [OWN_ACOS] = {REALS(arc_cosine)},
    [OWN_ATAN] = {REALS(arc_tangent)},
    [OWN_SINH] = {REALS(sinh_of)},
    [OWN_COSH] = {REALS(cosh_of)},
    [OWN_TANH] = {REALS(tanh_of)},
    [OWN_ASINH] = {REALS(asinh_of)},
    [OWN_ACOSH] = {REALS(acosh_of)},
    [OWN_ATANH] = {REALS(atanh_of)},
    [OWN_ERF] = {REALS(error)},
};

static void work(void *context, int64_t first, int64_t last)
{
    const struct row *row = context;
    const int64_t from = first * row->size;
    row->compute((const uint8_t *)row->x->at + from, (uint8_t *)row->y->to + from, last - first);
}

bool own_op_unary(struct own_call *call)
{
    enum { OPERATIONS = 8 }; /* of an element, about */
    const struct own_tensor *x = own_input(call, 0);
    struct row row = {rows[call->kind][x->type], x, own_output(call, 0), onnx_type_bytes(x->type)};
    if (row.compute == NULL) {
        return own_fault(call, ONNX_OPERATOR, 0, "%s is not computed here",
                         onnx_type_name(x->type));
    }
    own_parallel(call->threads, x->elements, own_parallel_least(OPERATIONS), work, &row);
    return true;
}
