/* This file has the operators that lay elements out anew. They are Pad, Trilu, ReverseSequence,
 * DepthToSpace and SpaceToDepth. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_copy.h"
#include "provider/onnx/own/own_walk.h"

#include <string.h>

enum { LIST_MOST = 2 * ONNX_RANK_MOST };

/* ---------------------------------------------------------------- Pad */

enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE };

struct pad {
    const struct own_tensor *x;
    struct own_tensor *y;
    int64_t before[LIST_MOST];
    int64_t dense[ONNX_RANK_MOST];
    enum pad_mode mode;
    uint8_t value[sizeof(uint64_t)];
};

/* Returns the place in the input's dim for a place in the output's, or -1 outside. */
static int64_t place_of(const struct pad *pad, uint32_t axis, int64_t at)
{
    const int64_t size = pad->x->dims[axis];
    const int64_t place = at - pad->before[axis];
    if (place >= 0 && place < size) {
        return place;
    }
    switch (pad->mode) {
    case PAD_CONSTANT:
        return -1;
    case PAD_EDGE:
        return place < 0 ? 0 : size - 1;
    case PAD_REFLECT:
        return place < 0 ? -place : 2 * (size - 1) - place;
    }
    return -1;
}

static bool read_value(struct own_call *call, struct pad *pad)
{
    const struct own_tensor *said = own_input(call, 2);
    const float value = own_real(call, "value", 0);
    if (call->rule.node->opset < 11) {
        if (pad->x->type != ONNX_FLOAT && value != 0) {
            return own_fault(call, ONNX_OPERATOR, 0, "%s is padded with 0 alone before opset 11",
                             onnx_type_name(pad->x->type));
        }
        memcpy(pad->value, &value, sizeof value);
        return true;
    }
    if (said != NULL && (said->type != pad->x->type || said->elements != 1)) {
        return own_fault(call, ONNX_SHAPE, 2, "it is not one element of input 0's type");
    }
    if (said != NULL) {
        memcpy(pad->value, said->at, (size_t)onnx_type_bytes(said->type));
    }
    return true;
}

static bool read_pad(struct own_call *call, struct pad *pad)
{
    size_t count = 0;
    bool is_there = false;
    const struct onnx_span mode = own_text(call, "mode", "constant");
    pad->mode = onnx_span_is(mode, "reflect") ? PAD_REFLECT
                : onnx_span_is(mode, "edge")  ? PAD_EDGE
                                              : PAD_CONSTANT;
    if (pad->mode == PAD_CONSTANT && !onnx_span_is(mode, "constant")) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "the mode \"%s\" is unknown",
                         onnx_label(mode).text);
    }
    if (!onnx_rule_list_at(&call->rule, 1, "pads", 11, pad->before, &count, &is_there) ||
        !read_value(call, pad)) {
        return false;
    }
    for (uint32_t i = 0; i < pad->x->rank; i++) {
        const int64_t size = pad->x->dims[i];
        const int64_t most = pad->mode == PAD_REFLECT ? size - 1 : INT64_MAX;
        if (pad->before[i] < -ONNX_DIM_MOST || pad->before[i] > ONNX_DIM_MOST) {
            return own_fault(call, ONNX_SHAPE, ONNX_NO_INPUT, "a pad of dim %u is too large", i);
        }
        const bool needs_one = pad->mode != PAD_CONSTANT && size == 0 && pad->y->dims[i] > 0;
        if (needs_one || pad->before[i] > most || pad->before[pad->x->rank + i] > most) {
            return own_fault(call, ONNX_SHAPE, ONNX_NO_INPUT,
                             "dim %u of %lld elements has too few for its pads", i,
                             (long long)size);
        }
    }
    return true;
}

/* Fills one row of the output; `from` is the element before the last dim, or negative. */
static void pad_row(const struct pad *pad, int64_t from, uint8_t *to)
{
    const size_t size = (size_t)onnx_type_bytes(pad->x->type);
    const uint32_t last = pad->x->rank - 1;
    for (int64_t i = 0; i < pad->y->dims[last]; i++) {
        const int64_t place = from < 0 ? -1 : place_of(pad, last, i);
        memcpy(to + (size_t)i * size,
               place < 0 ? pad->value : (const uint8_t *)pad->x->at + (size_t)(from + place) * size,
               size);
    }
}

bool own_op_pad(struct own_call *call)
{
    struct pad pad = {.x = own_input(call, 0), .y = own_output(call, 0)};
    int64_t at[ONNX_RANK_MOST] = {0};
    uint8_t *to = pad.y->to;
    if (pad.x->rank == 0) {
        memcpy(to, pad.x->at, (size_t)pad.x->bytes);
        return true;
    }
    if (!read_pad(call, &pad)) {
        return false;
    }
    own_walk_dense(pad.x, pad.dense);
    const int64_t row = pad.y->dims[pad.y->rank - 1];
    for (int64_t done = 0; done < pad.y->elements; done += row) {
        int64_t from = 0;
        for (uint32_t i = 0; i + 1 < pad.x->rank; i++) {
            const int64_t place = place_of(&pad, i, at[i]);
            from = from < 0 || place < 0 ? -1 : from + place * pad.dense[i];
        }
        pad_row(&pad, from, to + done * onnx_type_bytes(pad.x->type));
        for (uint32_t i = pad.y->rank - 1; i > 0; i--) {
            at[i - 1]++;
            if (at[i - 1] < pad.y->dims[i - 1]) {
                break;
            }
            at[i - 1] = 0;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- Trilu */

bool own_op_trilu(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *y = own_output(call, 0);
    const struct own_tensor *said = own_input(call, 1);
    const bool is_upper = own_integer(call, "upper", 1) != 0;
    const size_t size = (size_t)onnx_type_bytes(x->type);
    if (x->rank < 2) {
        return own_fault(call, ONNX_SHAPE, 0, "it is no matrix");
    }
    if (said != NULL && (said->type != ONNX_INT64 || said->elements != 1)) {
        return own_fault(call, ONNX_SHAPE, 1, "it is not one int64");
    }
    const int64_t rows = x->dims[x->rank - 2];
    const int64_t columns = x->dims[x->rank - 1];
    const int64_t most = rows + columns;
    int64_t diagonal = said != NULL ? own_integer_at(said, 0) : 0;
    diagonal = diagonal > most ? most : diagonal < -most ? -most : diagonal;
    for (int64_t i = 0; i < x->elements; i++) {
        const int64_t row = i / columns % rows;
        const int64_t above = i % columns - row - diagonal;
        uint8_t *to = (uint8_t *)y->to + (size_t)i * size;
        if (is_upper ? above >= 0 : above <= 0) {
            memcpy(to, (const uint8_t *)x->at + (size_t)i * size, size);
        } else {
            memset(to, 0, size);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- ReverseSequence */

bool own_op_reverse_sequence(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *y = own_output(call, 0);
    const struct own_tensor *lengths = own_input(call, 1);
    const int64_t time_axis = own_integer(call, "time_axis", 0);
    const int64_t batch_axis = own_integer(call, "batch_axis", 1);
    if (x->rank < 2 || time_axis < 0 || time_axis > 1 || batch_axis != 1 - time_axis) {
        return own_fault(call, ONNX_SHAPE, ONNX_NO_INPUT,
                         "time and batch are not its first two dims");
    }
    const int64_t batch = x->dims[batch_axis];
    const int64_t time = x->dims[time_axis];
    const size_t inner = (size_t)own_tensor_span(x, 2, x->rank) * (size_t)onnx_type_bytes(x->type);
    if (!own_input_is(call, 1, ONNX_INT64) || !own_input_fits(call, 1, 1, &batch)) {
        return false;
    }
    for (int64_t b = 0; b < batch; b++) {
        const int64_t length = own_integer_at(lengths, b);
        if (length < 0 || length > time) {
            return own_fault(call, ONNX_SHAPE, 1, "sequence %lld has %lld of %lld elements",
                             (long long)b, (long long)length, (long long)time);
        }
        for (int64_t t = 0; inner > 0 && t < time; t++) {
            const int64_t other = t < length ? length - 1 - t : t;
            const int64_t to = time_axis == 0 ? t * batch + b : b * time + t;
            const int64_t from = time_axis == 0 ? other * batch + b : b * time + other;
            memcpy((uint8_t *)y->to + (size_t)to * inner,
                   (const uint8_t *)x->at + (size_t)from * inner, inner);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- blocks */

/* Blocks move by a transposition of six dims. `order` says which dim of the input each dim of the
 * output is. */
static void move_blocks(struct own_call *call, const int64_t *dims, const uint32_t *order)
{
    enum { DIMS = 6 };
    struct own_tensor y = *own_output(call, 0);
    int64_t dense[DIMS];
    int64_t strides[ONNX_RANK_MOST] = {0};
    dense[DIMS - 1] = 1;
    for (uint32_t i = DIMS - 1; i > 0; i--) {
        dense[i - 1] = dense[i] * dims[i];
    }
    y.rank = DIMS;
    for (uint32_t i = 0; i < DIMS; i++) {
        y.dims[i] = dims[order[i]];
        strides[i] = dense[order[i]];
    }
    own_copy_out(call, own_input(call, 0), 0, strides, &y);
}

bool own_op_depth_to_space(struct own_call *call)
{
    static const uint32_t depth_first[] = {0, 3, 4, 1, 5, 2};
    static const uint32_t channels_first[] = {0, 1, 4, 2, 5, 3};
    const struct own_tensor *x = own_input(call, 0);
    const int64_t side = own_integer(call, "blocksize", 0);
    const struct onnx_span mode = own_text(call, "mode", "DCR");
    const bool is_dcr = onnx_span_is(mode, "DCR");
    if (!is_dcr && !onnx_span_is(mode, "CRD")) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "the mode \"%s\" is unknown",
                         onnx_label(mode).text);
    }
    const int64_t channels = x->dims[1] / (side * side);
    const int64_t dcr[] = {x->dims[0], side, side, channels, x->dims[2], x->dims[3]};
    const int64_t crd[] = {x->dims[0], channels, side, side, x->dims[2], x->dims[3]};
    if (x->elements > 0) {
        move_blocks(call, is_dcr ? dcr : crd, is_dcr ? depth_first : channels_first);
    }
    return true;
}

bool own_op_space_to_depth(struct own_call *call)
{
    static const uint32_t order[] = {0, 3, 5, 1, 2, 4};
    const struct own_tensor *x = own_input(call, 0);
    const int64_t side = own_integer(call, "blocksize", 0);
    const int64_t dims[] = {x->dims[0], x->dims[1],        x->dims[2] / side,
                            side,       x->dims[3] / side, side};
    if (x->elements > 0) {
        move_blocks(call, dims, order);
    }
    return true;
}
