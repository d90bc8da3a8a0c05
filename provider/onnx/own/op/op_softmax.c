/* This file has Softmax, LogSoftmax and Hardmax of float32. Before opset 13 all dims from the axis
 * on count as one; from then on it is the axis alone. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_parallel.h"

#include <math.h>

struct softmax {
    int kind;
    int64_t length, inner; /* elements of a line, and how far apart they are */
    const float *x;
    float *y;
};

static void do_line(const struct softmax *self, const float *x, float *y)
{
    const int64_t step = self->inner;
    int64_t best = 0;
    double sum = 0;
    for (int64_t i = 1; i < self->length; i++) {
        best = x[i * step] > x[best * step] ? i : best;
    }
    const float most = x[best * step];
    if (self->kind == OWN_HARDMAX) {
        for (int64_t i = 0; i < self->length; i++) {
            y[i * step] = i == best ? 1 : 0;
        }
        return;
    }
    for (int64_t i = 0; i < self->length; i++) {
        const float power = expf(x[i * step] - most);
        sum += (double)power;
        y[i * step] = power;
    }
    const float factor = (float)(1 / sum);
    const float logarithm = (float)log(sum);
    for (int64_t i = 0; i < self->length; i++) {
        y[i * step] =
            self->kind == OWN_SOFTMAX ? y[i * step] * factor : x[i * step] - most - logarithm;
    }
}

static void work(void *context, int64_t first, int64_t last)
{
    const struct softmax *self = context;
    for (int64_t at = first; at < last; at++) {
        const int64_t base = at / self->inner * self->length * self->inner + at % self->inner;
        do_line(self, self->x + base, self->y + base);
    }
}

bool own_op_softmax(struct own_call *call)
{
    enum { OPERATIONS = 16, SINCE = 13 };
    const struct own_tensor *x = own_input(call, 0);
    const bool is_one_axis = call->rule.node->opset >= SINCE;
    const int64_t said = own_integer(call, "axis", is_one_axis ? -1 : 1);
    uint32_t axis = 0;
    if (x->rank == 0 && !is_one_axis) {
        return own_fault(call, ONNX_SHAPE, 0, "it has no dims");
    }
    /* The end of the dims is an axis, too, where dims from there on count as one. */
    if (!is_one_axis && said == (int64_t)x->rank) {
        axis = x->rank;
    } else if (!onnx_rule_axis(&call->rule, said, x->rank, &axis)) {
        return false;
    }
    struct softmax self = {.kind = call->kind,
                           .length =
                               is_one_axis ? x->dims[axis] : own_tensor_span(x, axis, x->rank),
                           .inner = is_one_axis ? own_tensor_span(x, axis + 1, x->rank) : 1,
                           .x = x->at,
                           .y = own_output(call, 0)->to};
    const int64_t lines = x->elements > 0 ? x->elements / self.length : 0;
    own_parallel(call->threads, lines, own_parallel_least(OPERATIONS * self.length), work, &self);
    return true;
}
