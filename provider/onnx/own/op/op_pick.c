/* This file has ArgMax, ArgMin, TopK and CumSum. They are operators that look along one axis. */
#include "provider/onnx/own/own_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A tensor as `outer` times `length` times `inner` elements; the axis is in the middle. */
struct line {
    int64_t outer, length, inner;
};

static struct line line_of(const struct own_tensor *x, int64_t axis)
{
    const uint32_t at = (uint32_t)(axis < 0 ? axis + x->rank : axis);
    return (struct line){own_tensor_span(x, 0, at), x->dims[at],
                         own_tensor_span(x, at + 1, x->rank)};
}

/* Returns -1, 0 or 1. Integers of 64 bits do not fit a double, so they have a way of their own; a
 * NaN counts as greater than any number. */
static int compare(const struct own_tensor *x, int64_t a, int64_t b)
{
    if (x->type == ONNX_UINT64) {
        const uint64_t *values = x->at;
        return (values[a] > values[b]) - (values[a] < values[b]);
    }
    if (own_is_integer(x->type)) {
        const int64_t left = own_integer_at(x, a);
        const int64_t right = own_integer_at(x, b);
        return (left > right) - (left < right);
    }
    const double left = own_real_at(x, a);
    const double right = own_real_at(x, b);
    if (left != left || right != right) {
        return (left != left) - (right != right);
    }
    return (left > right) - (left < right);
}

/* ---------------------------------------------------------------- ArgMax and ArgMin */

bool own_op_arg(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    int64_t *y = own_output(call, 0)->to;
    const struct line line = line_of(x, own_integer(call, "axis", 0));
    const bool takes_last = own_integer(call, "select_last_index", 0) != 0;
    const int sign = call->kind == OWN_ARG_MAX ? 1 : -1;
    if (line.length == 0 && own_output(call, 0)->elements > 0) {
        return own_fault(call, ONNX_SHAPE, 0, "nothing has no greatest and no least element");
    }
    for (int64_t at = 0; at < line.outer * line.inner; at++) {
        const int64_t base = at / line.inner * line.length * line.inner + at % line.inner;
        int64_t best = 0;
        for (int64_t i = 1; i < line.length; i++) {
            const int order = sign * compare(x, base + i * line.inner, base + best * line.inner);
            best = order > 0 || (takes_last && order == 0) ? i : best;
        }
        y[at] = best;
    }
    return true;
}

/* ---------------------------------------------------------------- TopK */

/* A heap of the best places so far, the worst of them on top. */
struct heap {
    const struct own_tensor *x;
    int64_t base, step, count;
    int64_t *places;
    int sign; /* 1: the largest are the best */
};

/* The first of two equal elements is the better one. */
static bool is_better(const struct heap *heap, int64_t a, int64_t b)
{
    const int order =
        heap->sign * compare(heap->x, heap->base + a * heap->step, heap->base + b * heap->step);
    return order != 0 ? order > 0 : a < b;
}

static void sink(struct heap *heap, int64_t at)
{
    for (;;) {
        int64_t worst = at;
        for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap->count; child++) {
            worst = is_better(heap, heap->places[worst], heap->places[child]) ? child : worst;
        }
        if (worst == at) {
            return;
        }
        const int64_t moved = heap->places[at];
        heap->places[at] = heap->places[worst];
        heap->places[worst] = moved;
        at = worst;
    }
}

/* Fills the heap with the best `count` of `length` places, the best first. */
static void choose(struct heap *heap, int64_t length)
{
    const int64_t most = heap->count;
    for (int64_t i = 0; i < most; i++) {
        heap->places[i] = i;
    }
    for (int64_t i = most / 2; i > 0; i--) {
        sink(heap, i - 1);
    }
    for (int64_t i = most; most > 0 && i < length; i++) {
        if (is_better(heap, i, heap->places[0])) {
            heap->places[0] = i;
            sink(heap, 0);
        }
    }
    while (heap->count > 1) {
        const int64_t worst = heap->places[0];
        heap->places[0] = heap->places[--heap->count];
        heap->places[heap->count] = worst;
        sink(heap, 0);
    }
    heap->count = most;
}

/* The elements come in order whether that is asked for or not. */
bool own_op_top_k(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    struct own_tensor *values = own_output(call, 0);
    struct own_tensor *places = own_output(call, 1);
    const struct own_tensor *made = values != NULL ? values : places;
    const struct line line = line_of(x, own_integer(call, "axis", -1));
    const int64_t axis = own_integer(call, "axis", -1);
    const size_t size = (size_t)onnx_type_bytes(x->type);
    if (made == NULL) {
        return true;
    }
    const int64_t count = made->dims[axis < 0 ? axis + made->rank : axis];
    struct own_block *block = own_scratch(call, count, sizeof(int64_t));
    if (block == NULL) {
        return false;
    }
    struct heap heap = {.x = x,
                        .step = line.inner,
                        .count = count,
                        .places = own_block_bytes(block),
                        .sign = own_integer(call, "largest", 1) != 0 ? 1 : -1};
    for (int64_t at = 0; count > 0 && at < line.outer * line.inner; at++) {
        const int64_t before = at / line.inner;
        heap.base = before * line.length * line.inner + at % line.inner;
        choose(&heap, line.length);
        for (int64_t i = 0; i < count; i++) {
            const int64_t to = (before * count + i) * line.inner + at % line.inner;
            const int64_t from = heap.base + heap.places[i] * line.inner;
            if (values != NULL) {
                memcpy((uint8_t *)values->to + (size_t)to * size,
                       (const uint8_t *)x->at + (size_t)from * size, size);
            }
            if (places != NULL) {
                ((int64_t *)places->to)[to] = heap.places[i];
            }
        }
    }
    own_block_release(block);
    return true;
}

/* ---------------------------------------------------------------- CumSum */

#define CUM_SUM(element, wide)                                                                     \
    for (int64_t i = 0; i < line->length; i++) {                                                   \
        const int64_t place = reverses ? line->length - 1 - i : i;                                 \
        const wide value = (wide)((const element *)x->at)[base + place * line->inner];             \
        const wide before = total;                                                                 \
        total += value;                                                                            \
        ((element *)y->to)[base + place * line->inner] = (element)(excludes ? before : total);     \
    }

static void sum_line(const struct own_tensor *x, const struct own_tensor *y,
                     const struct line *line, int64_t base, bool excludes, bool reverses)
{
    if (x->type == ONNX_FLOAT) {
        double total = 0;
        CUM_SUM(float, double)
    } else if (x->type == ONNX_DOUBLE) {
        double total = 0;
        CUM_SUM(double, double)
    } else if (x->type == ONNX_INT32) {
        uint64_t total = 0;
        CUM_SUM(int32_t, uint64_t)
    } else {
        uint64_t total = 0;
        CUM_SUM(int64_t, uint64_t)
    }
}

bool own_op_cum_sum(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    const struct own_tensor *y = own_output(call, 0);
    const struct own_tensor *said = own_input(call, 1);
    uint32_t axis = 0;
    if (!own_is_integer(said->type) || said->elements != 1) {
        return own_fault(call, ONNX_SHAPE, 1, "the axis is not one integer");
    }
    if (!onnx_rule_axis(&call->rule, own_integer_at(said, 0), x->rank, &axis)) {
        return false;
    }
    const struct line line = line_of(x, axis);
    const bool excludes = own_integer(call, "exclusive", 0) != 0;
    const bool reverses = own_integer(call, "reverse", 0) != 0;
    for (int64_t at = 0; line.length > 0 && at < line.outer * line.inner; at++) {
        const int64_t base = at / line.inner * line.length * line.inner + at % line.inner;
        sum_line(x, y, &line, base, excludes, reverses);
    }
    return true;
}
