/* This file has the arithmetic of two tensors that broadcast. Integers wrap, as those of the
 * reference do; a division of integers by zero is refused. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_rows.h"

#include <math.h>
#include <string.h>

#define REAL_ARITHMETIC(end, element, wide)                                                        \
    OWN_ROW(add_##end, element, element, x + y)                                                    \
    OWN_ROW(sub_##end, element, element, x - y)                                                    \
    OWN_ROW(mul_##end, element, element, x *y)                                                     \
    OWN_ROW(div_##end, element, element, x / y)                                                    \
    /* A NaN on either side stays. */                                                              \
    OWN_ROW(max_##end, element, element, x > y || x != x ? x : y)                                  \
    OWN_ROW(min_##end, element, element, x < y || x != x ? x : y)
#define WHOLE_ARITHMETIC(end, element, wide)                                                       \
    OWN_ROW(add_##end, element, element, (wide)x + (wide)y)                                        \
    OWN_ROW(sub_##end, element, element, (wide)x - (wide)y)                                        \
    OWN_ROW(mul_##end, element, element, (wide)x *(wide)y)                                         \
    OWN_ROW(max_##end, element, element, x > y ? x : y)                                            \
    OWN_ROW(min_##end, element, element, x < y ? x : y)
/* The smallest integer over -1 stays what it is. */
#define SIGNED_DIVISION(end, element, wide)                                                        \
    OWN_ROW(div_##end, element, element, y == -1 ? (element)(-(wide)x) : x / y)
#define UNSIGNED_DIVISION(end, element, wide) OWN_ROW(div_##end, element, element, x / y)

OWN_EACH_REAL(REAL_ARITHMETIC)
OWN_EACH_SIGNED(WHOLE_ARITHMETIC)
OWN_EACH_UNSIGNED(WHOLE_ARITHMETIC)
OWN_EACH_SIGNED(SIGNED_DIVISION)
OWN_EACH_UNSIGNED(UNSIGNED_DIVISION)

#define ALL(name)                                                                                  \
    {                                                                                              \
        OWN_REALS(name), OWN_SIGNED(name), OWN_UNSIGNED(name)                                      \
    }
static void (*const rows[OWN_BINARIES][ONNX_TYPES])(const struct own_row *row) = {
    [OWN_ADD] = ALL(add),         [OWN_SUB] = ALL(sub),          [OWN_MUL] = ALL(mul),
    [OWN_DIV] = ALL(div),         [OWN_MAX] = ALL(max),          [OWN_MIN] = ALL(min),
    [OWN_SUM] = {OWN_REALS(add)}, [OWN_MEAN] = {OWN_REALS(add)},
};

static bool has_zero(const struct own_tensor *tensor)
{
    for (int64_t i = 0; i < tensor->elements; i++) {
        if (own_integer_at(tensor, i) == 0) {
            return true;
        }
    }
    return false;
}

bool own_op_binary(struct own_call *call)
{
    const struct own_tensor *a = own_input(call, 0);
    const struct own_tensor *b = own_input(call, 1);
    if (rows[call->kind][a->type] == NULL) {
        return own_fault(call, ONNX_OPERATOR, 0, "%s is not computed here",
                         onnx_type_name(a->type));
    }
    if (!own_input_is(call, 1, a->type)) {
        return false;
    }
    if (call->kind == OWN_DIV && own_is_integer(a->type) && has_zero(b)) {
        return own_fault(call, ONNX_SHAPE, 1, "an integer is divided by zero");
    }
    own_rows(call, a, b, own_output(call, 0), rows[call->kind][a->type]);
    return true;
}

/* Divides each element of a sum by the count of what was added. */
static void divide(struct own_tensor *tensor, uint32_t count)
{
    for (int64_t i = 0; i < tensor->elements; i++) {
        if (tensor->type == ONNX_FLOAT) {
            ((float *)tensor->to)[i] /= (float)count;
        } else {
            ((double *)tensor->to)[i] /= (double)count;
        }
    }
}

/* The output is the first operand from the second step on: a row is read before it is written. */
bool own_op_many(struct own_call *call)
{
    struct own_tensor *y = own_output(call, 0);
    const struct own_tensor *x = own_input(call, 0);
    void (*compute)(const struct own_row *row) = rows[call->kind][x->type];
    if (compute == NULL) {
        return own_fault(call, ONNX_OPERATOR, 0, "%s is not computed here",
                         onnx_type_name(x->type));
    }
    for (uint32_t i = 1; i < call->input_count; i++) {
        if (!own_input_is(call, i, x->type)) {
            return false;
        }
    }
    if (call->input_count == 1) {
        memcpy(y->to, x->at, (size_t)x->bytes);
    }
    for (uint32_t i = 1; i < call->input_count; i++) {
        own_rows(call, i == 1 ? x : y, own_input(call, i), y, compute);
    }
    if (call->kind == OWN_MEAN) {
        divide(y, call->input_count);
    }
    return true;
}
