/* This file has the operators that put elements elsewhere and compute nothing. They are Transpose,
 * Concat, Split, Slice, Expand and Tile. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_copy.h"
#include "provider/onnx/own/own_walk.h"

#include <string.h>

enum { LIST_MOST = 2 * ONNX_RANK_MOST };

bool own_op_transpose(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    int64_t order[LIST_MOST];
    int64_t dense[ONNX_RANK_MOST] = {0};
    int64_t strides[ONNX_RANK_MOST] = {0};
    size_t count = 0;
    bool is_there = false;
    if (!onnx_rule_list(&call->rule, "perm", order, &count, &is_there)) {
        return false;
    }
    own_walk_dense(x, dense);
    for (uint32_t i = 0; i < x->rank; i++) {
        const int64_t axis = is_there ? order[i] : (int64_t)x->rank - 1 - i;
        strides[i] = dense[axis < 0 ? axis + x->rank : axis];
    }
    own_copy_out(call, x, 0, strides, own_output(call, 0));
    return true;
}

static uint32_t axis_of(const struct own_call *call, int64_t usual, uint32_t rank)
{
    const int64_t axis = own_integer(call, "axis", usual);
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

bool own_op_concat(struct own_call *call)
{
    struct own_tensor *y = own_output(call, 0);
    const uint32_t axis = axis_of(call, 1, y->rank);
    const size_t size = (size_t)onnx_type_bytes(y->type);
    const int64_t outer = own_tensor_span(y, 0, axis);
    const size_t whole = (size_t)own_tensor_span(y, axis, y->rank) * size;
    size_t begin = 0;
    for (uint32_t i = 0; i < call->input_count; i++) {
        const struct own_tensor *x = own_input(call, i);
        if (!own_input_is(call, i, y->type)) {
            return false;
        }
        const size_t part = (size_t)own_tensor_span(x, axis, x->rank) * size;
        for (int64_t k = 0; part > 0 && k < outer; k++) {
            memcpy((uint8_t *)y->to + (size_t)k * whole + begin,
                   (const uint8_t *)x->at + (size_t)k * part, part);
        }
        begin += part;
    }
    return true;
}

bool own_op_split(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    const uint32_t axis = axis_of(call, 0, x->rank);
    const size_t size = (size_t)onnx_type_bytes(x->type);
    const int64_t outer = own_tensor_span(x, 0, axis);
    const size_t each = (size_t)own_tensor_span(x, axis + 1, x->rank) * size;
    const size_t whole = (size_t)x->dims[axis] * each;
    size_t begin = 0;
    for (uint32_t i = 0; i < call->output_count; i++) {
        struct own_tensor *y = own_output(call, i);
        if (y == NULL) {
            return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT,
                             "a part that is left out is not known here");
        }
        const size_t part = (size_t)y->dims[axis] * each;
        for (int64_t k = 0; part > 0 && k < outer; k++) {
            memcpy((uint8_t *)y->to + (size_t)k * part,
                   (const uint8_t *)x->at + (size_t)k * whole + begin, part);
        }
        begin += part;
    }
    return true;
}

/* ---------------------------------------------------------------- Slice */

struct slice {
    int64_t starts[LIST_MOST], axes[LIST_MOST], steps[LIST_MOST];
    size_t count;
    bool has_axes, has_steps;
};

static bool read_slice(struct own_call *call, struct slice *slice)
{
    size_t count = 0;
    bool is_there = false;
    return onnx_rule_list_at(&call->rule, 1, "starts", 10, slice->starts, &slice->count,
                             &is_there) &&
           onnx_rule_list_at(&call->rule, 3, "axes", 10, slice->axes, &count, &slice->has_axes) &&
           onnx_rule_list_at(&call->rule, 4, "steps", 10, slice->steps, &count, &slice->has_steps);
}

/* The rule has worked out how many elements each axis keeps. An axis that stands twice would have
 * two answers. */
bool own_op_slice(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *y = own_output(call, 0);
    struct slice slice = {.count = 0};
    int64_t strides[ONNX_RANK_MOST] = {0};
    bool seen[ONNX_RANK_MOST] = {false};
    int64_t offset = 0;
    if (!read_slice(call, &slice)) {
        return false;
    }
    own_walk_dense(x, strides);
    for (size_t i = 0; i < slice.count; i++) {
        const int64_t said = slice.has_axes ? slice.axes[i] : (int64_t)i;
        const uint32_t axis = (uint32_t)(said < 0 ? said + x->rank : said);
        const int64_t size = x->dims[axis];
        const int64_t step = slice.has_steps ? slice.steps[i] : 1;
        const int64_t start = slice.starts[i];
        if (seen[axis]) {
            return own_fault(call, ONNX_SHAPE, ONNX_NO_INPUT, "axis %u is cut twice", axis);
        }
        seen[axis] = true;
        const int64_t place = start < 0 && start >= -size ? start + size : start;
        const int64_t most = step > 0 ? size : size - 1;
        const int64_t first = place < 0 ? 0 : place > most ? most : place;
        if (y->dims[axis] > 0) { /* then the first place is in the axis */
            offset += first * strides[axis];
        }
        /* An axis of one element takes no step, however large the step is. */
        strides[axis] = y->dims[axis] > 1 ? strides[axis] * step : 0;
    }
    own_copy_out(call, x, offset, strides, y);
    return true;
}

/* ---------------------------------------------------------------- Expand and Tile */

bool own_op_expand(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *y = own_output(call, 0);
    struct own_walk walk = own_walk_over(y->rank, y->dims);
    own_walk_operand(&walk, 0, x);
    own_copy_out(call, x, 0, walk.strides[0], y);
    return true;
}

/* Copies row by row; the places of a row in the input wrap around. */
bool own_op_tile(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *y = own_output(call, 0);
    const int64_t size = onnx_type_bytes(x->type);
    if (y->elements == 0) {
        return true;
    }
    int64_t dense[ONNX_RANK_MOST] = {0};
    int64_t at[ONNX_RANK_MOST] = {0};
    const int64_t row = x->rank > 0 ? y->dims[x->rank - 1] : 1;
    const int64_t own_row = x->rank > 0 ? x->dims[x->rank - 1] : 1;
    own_walk_dense(x, dense);
    for (int64_t done = 0; done < y->elements; done += row) {
        int64_t from = 0;
        for (uint32_t i = 0; i + 1 < x->rank; i++) {
            from += at[i] % x->dims[i] * dense[i];
        }
        for (int64_t k = 0; k < row; k += own_row) {
            own_copy_row((uint8_t *)y->to + (done + k) * size, 1,
                         (const uint8_t *)x->at + from * size, 1, own_row, size);
        }
        for (uint32_t i = x->rank > 0 ? x->rank - 1 : 0; i > 0; i--) {
            at[i - 1]++;
            if (at[i - 1] < y->dims[i - 1]) {
                break;
            }
            at[i - 1] = 0;
        }
    }
    return true;
}
