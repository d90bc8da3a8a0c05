/* This file has the reductions. Sums of float32 are kept in double, so that their order matters
 * little. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_walk.h"

#include <math.h>
#include <string.h>

/* The axes that go come last in the walk, in one block of `inner` elements for each output. */
struct reduction {
    int kind;
    const struct own_tensor *x;
    struct own_walk outer, inner;
};

struct sum {
    double total, most;
    bool is_begun;
};

/* Takes one element into a sum. */
static void add(int kind, struct sum *sum, double value)
{
    switch ((enum own_reduce)kind) {
    case OWN_REDUCE_SUM:
    case OWN_REDUCE_MEAN:
    case OWN_REDUCE_LOG_SUM:
        sum->total += value;
        break;
    case OWN_REDUCE_L1:
        sum->total += fabs(value);
        break;
    case OWN_REDUCE_L2:
    case OWN_REDUCE_SUM_SQUARE:
        sum->total += value * value;
        break;
    case OWN_REDUCE_PROD:
        sum->total = sum->is_begun ? sum->total * value : value;
        break;
    case OWN_REDUCE_MAX:
        sum->total = !sum->is_begun || value > sum->total || value != value ? value : sum->total;
        break;
    case OWN_REDUCE_MIN:
        sum->total = !sum->is_begun || value < sum->total || value != value ? value : sum->total;
        break;
    case OWN_REDUCE_LOG_SUM_EXP: /* over the largest so far, so that nothing overflows */
        if (!sum->is_begun) {
            sum->most = value;
            sum->total = 1;
        } else if (value > sum->most) {
            sum->total = sum->total * exp(sum->most - value) + 1;
            sum->most = value;
        } else {
            sum->total += value == sum->most ? 1 : exp(value - sum->most);
        }
        break;
    }
    sum->is_begun = true;
}

static double end(int kind, const struct sum *sum, int64_t count)
{
    switch ((enum own_reduce)kind) {
    case OWN_REDUCE_MEAN:
        return sum->total / (double)count;
    case OWN_REDUCE_L2:
        return sqrt(sum->total);
    case OWN_REDUCE_LOG_SUM:
        return log(sum->total);
    case OWN_REDUCE_LOG_SUM_EXP:
        return sum->is_begun ? sum->most + log(sum->total) : -INFINITY;
    case OWN_REDUCE_PROD:
        return sum->is_begun ? sum->total : 1;
    default:
        return sum->total;
    }
}

/* Adds up a row of float32, which is the most frequent reduction. */
static double sum_row(const float *from, int64_t step, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += (double)from[i * step];
    }
    return sum;
}

static double reduce_reals(const struct reduction *self, int64_t base)
{
    struct sum sum = {.total = 0};
    struct own_walk inner = self->inner;
    const bool is_plain = self->x->type == ONNX_FLOAT &&
                          (self->kind == OWN_REDUCE_SUM || self->kind == OWN_REDUCE_MEAN);
    for (int64_t row = 0; row < inner.rows; row++) {
        own_walk_seek(&inner, row);
        if (is_plain) {
            sum.total += sum_row((const float *)self->x->at + base + inner.at[0], inner.step[0],
                                 inner.length);
            continue;
        }
        for (int64_t i = 0; i < inner.length; i++) {
            add(self->kind, &sum, own_real_at(self->x, base + inner.at[0] + i * inner.step[0]));
        }
    }
    return end(self->kind, &sum, inner.rows * inner.length);
}

/* Integers have sums, products, least and greatest of their own, which wrap. */
static uint64_t join(int kind, uint64_t total, int64_t value)
{
    const int64_t so_far = (int64_t)total;
    switch ((enum own_reduce)kind) {
    case OWN_REDUCE_MAX:
        return (uint64_t)(value > so_far ? value : so_far);
    case OWN_REDUCE_MIN:
        return (uint64_t)(value < so_far ? value : so_far);
    case OWN_REDUCE_PROD:
        return total * (uint64_t)value;
    case OWN_REDUCE_L1:
        return total + (value < 0 ? -(uint64_t)value : (uint64_t)value);
    case OWN_REDUCE_SUM_SQUARE:
        return total + (uint64_t)value * (uint64_t)value;
    default:
        return total + (uint64_t)value;
    }
}

static int64_t reduce_integers(const struct reduction *self, int64_t base)
{
    static const int64_t begins[] = {[OWN_REDUCE_MAX] = INT64_MIN,
                                     [OWN_REDUCE_MIN] = INT64_MAX,
                                     [OWN_REDUCE_PROD] = 1,
                                     [OWN_REDUCE_SUM_SQUARE] = 0};
    struct own_walk inner = self->inner;
    uint64_t total = (uint64_t)begins[self->kind];
    for (int64_t row = 0; row < inner.rows; row++) {
        own_walk_seek(&inner, row);
        for (int64_t i = 0; i < inner.length; i++) {
            total = join(self->kind, total,
                         own_integer_at(self->x, base + inner.at[0] + i * inner.step[0]));
        }
    }
    const int64_t count = inner.rows * inner.length;
    return self->kind == OWN_REDUCE_MEAN && count > 0 ? (int64_t)total / count : (int64_t)total;
}

static void put(const struct reduction *self, struct own_tensor *y, int64_t at, int64_t base)
{
    switch (y->type) {
    case ONNX_FLOAT:
        ((float *)y->to)[at] = (float)reduce_reals(self, base);
        break;
    case ONNX_DOUBLE:
        ((double *)y->to)[at] = reduce_reals(self, base);
        break;
    case ONNX_INT32:
        ((int32_t *)y->to)[at] = (int32_t)reduce_integers(self, base);
        break;
    case ONNX_INT64:
        ((int64_t *)y->to)[at] = reduce_integers(self, base);
        break;
    case ONNX_INT8:
        ((int8_t *)y->to)[at] = (int8_t)reduce_integers(self, base);
        break;
    default: /* UINT8, by the table */
        ((uint8_t *)y->to)[at] = (uint8_t)reduce_integers(self, base);
        break;
    }
}

/* Marks the axes that go. The rule has checked them. */
static bool axes_of(struct own_call *call, const struct own_tensor *x, bool *ret_marked)
{
    int64_t axes[2 * ONNX_RANK_MOST];
    size_t count = 0;
    bool is_there = false;
    const int64_t since = call->kind == OWN_REDUCE_SUM ? 13 : ONNX_OPSET_NEWEST + 1;
    if (!onnx_rule_list_at(&call->rule, 1, "axes", since, axes, &count, &is_there)) {
        return false;
    }
    const bool takes_all = count == 0 && own_integer(call, "noop_with_empty_axes", 0) == 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        ret_marked[i] = takes_all;
    }
    for (size_t i = 0; i < count; i++) {
        ret_marked[axes[i] < 0 ? axes[i] + x->rank : axes[i]] = true;
    }
    return true;
}

static struct own_walk walk_of(const struct own_tensor *x, const bool *marked, bool wanted)
{
    int64_t strides[ONNX_RANK_MOST] = {0};
    int64_t own[ONNX_RANK_MOST] = {0};
    int64_t dims[ONNX_RANK_MOST] = {0};
    uint32_t rank = 0;
    own_walk_dense(x, own);
    for (uint32_t i = 0; i < x->rank; i++) {
        if (marked[i] == wanted) {
            dims[rank] = x->dims[i];
            strides[rank++] = own[i];
        }
    }
    struct own_walk walk = own_walk_over(rank, dims);
    own_walk_strides(&walk, 0, strides);
    own_walk_ready(&walk);
    return walk;
}

bool own_op_reduce(struct own_call *call)
{
    struct own_tensor *y = own_output(call, 0);
    struct reduction self = {.kind = call->kind, .x = own_input(call, 0)};
    bool marked[ONNX_RANK_MOST] = {false};
    if (!axes_of(call, self.x, marked)) {
        return false;
    }
    self.outer = walk_of(self.x, marked, false);
    self.inner = walk_of(self.x, marked, true);
    const bool is_empty = self.inner.rows * self.inner.length == 0;
    if (is_empty && y->elements > 0 &&
        (call->kind == OWN_REDUCE_MAX || call->kind == OWN_REDUCE_MIN)) {
        return own_fault(call, ONNX_SHAPE, 0, "nothing has no greatest and no least element");
    }
    for (int64_t row = 0, at = 0; row < self.outer.rows; row++) {
        own_walk_seek(&self.outer, row);
        for (int64_t i = 0; i < self.outer.length; i++) {
            put(&self, y, at++, self.outer.at[0] + i * self.outer.step[0]);
        }
    }
    return true;
}
