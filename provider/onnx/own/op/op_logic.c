/* This file has comparisons, logic, questions about reals, and Where. Booleans are bytes of 0
 * and 1. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_rows.h"
#include "provider/onnx/own/own_walk.h"

#include <math.h>
#include <string.h>

enum { COMPARISONS = 5, LOGICS = 3 };

#define COMPARE(end, element, wide)                                                                \
    OWN_ROW(equal_##end, element, uint8_t, x == y)                                                 \
    OWN_ROW(greater_##end, element, uint8_t, x > y)                                                \
    OWN_ROW(less_##end, element, uint8_t, x < y)                                                   \
    OWN_ROW(greater_equal_##end, element, uint8_t, x >= y)                                         \
    OWN_ROW(less_equal_##end, element, uint8_t, x <= y)
OWN_EACH_REAL(COMPARE)
OWN_EACH_SIGNED(COMPARE)
OWN_EACH_UNSIGNED(COMPARE)

#define ALL(name)                                                                                  \
    {                                                                                              \
        OWN_REALS(name), OWN_SIGNED(name), OWN_UNSIGNED(name)                                      \
    }
static void (*const comparisons[COMPARISONS][ONNX_TYPES])(const struct own_row *row) = {
    [OWN_EQUAL] = {OWN_REALS(equal), OWN_SIGNED(equal),
                   OWN_UNSIGNED(equal), [ONNX_BOOL] = equal_uint8},
    [OWN_GREATER] = ALL(greater),
    [OWN_LESS] = ALL(less),
    [OWN_GREATER_EQUAL] = ALL(greater_equal),
    [OWN_LESS_EQUAL] = ALL(less_equal),
};

bool own_op_compare(struct own_call *call)
{
    const struct own_tensor *a = own_input(call, 0);
    if (comparisons[call->kind][a->type] == NULL) {
        return own_fault(call, ONNX_OPERATOR, 0, "%s is not compared here",
                         onnx_type_name(a->type));
    }
    if (!own_input_is(call, 1, a->type)) {
        return false;
    }
    own_rows(call, a, own_input(call, 1), own_output(call, 0), comparisons[call->kind][a->type]);
    return true;
}

OWN_ROW(both, uint8_t, uint8_t, x != 0 && y != 0)
OWN_ROW(either, uint8_t, uint8_t, x != 0 || y != 0)
OWN_ROW(one, uint8_t, uint8_t, (x != 0) != (y != 0))

bool own_op_logic(struct own_call *call)
{
    static void (*const logics[LOGICS])(const struct own_row *row) = {
        [OWN_AND] = both, [OWN_OR] = either, [OWN_XOR] = one};
    if (!own_input_is(call, 1, ONNX_BOOL)) {
        return false;
    }
    own_rows(call, own_input(call, 0), own_input(call, 1), own_output(call, 0), logics[call->kind]);
    return true;
}

bool own_op_not(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    uint8_t *y = own_output(call, 0)->to;
    for (int64_t i = 0; i < x->elements; i++) {
        y[i] = ((const uint8_t *)x->at)[i] == 0;
    }
    return true;
}

bool own_op_truth(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    uint8_t *y = own_output(call, 0)->to;
    const bool finds_plus = own_integer(call, "detect_positive", 1) != 0;
    const bool finds_minus = own_integer(call, "detect_negative", 1) != 0;
    for (int64_t i = 0; i < x->elements; i++) {
        const double value = own_real_at(x, i);
        const bool is_found = value > 0 ? finds_plus : finds_minus;
        const bool is_true =
            call->kind == OWN_IS_NAN ? isnan(value) != 0 : isinf(value) != 0 && is_found;
        y[i] = is_true ? 1 : 0;
    }
    return true;
}

/* Moves elements of any size, so that each type is alike. */
bool own_op_where(struct own_call *call)
{
    const struct own_tensor *condition = own_input(call, 0);
    const struct own_tensor *yes = own_input(call, 1);
    const struct own_tensor *no = own_input(call, 2);
    struct own_tensor *y = own_output(call, 0);
    uint8_t *to = y->to;
    if (!own_input_is(call, 2, yes->type)) {
        return false;
    }
    const size_t size = (size_t)onnx_type_bytes(yes->type);
    struct own_walk walk = own_walk_over(y->rank, y->dims);
    own_walk_operand(&walk, 0, condition);
    own_walk_operand(&walk, 1, yes);
    own_walk_operand(&walk, 2, no);
    own_walk_ready(&walk);
    for (int64_t row = 0; row < walk.rows; row++) {
        own_walk_seek(&walk, row);
        for (int64_t i = 0; i < walk.length; i++) {
            const bool is_yes =
                ((const uint8_t *)condition->at)[walk.at[0] + i * walk.step[0]] != 0;
            const struct own_tensor *from = is_yes ? yes : no;
            const int64_t at = walk.at[is_yes ? 1 : 2] + i * walk.step[is_yes ? 1 : 2];
            memcpy(to, (const uint8_t *)from->at + (size_t)at * size, size);
            to += size;
        }
    }
    return true;
}
