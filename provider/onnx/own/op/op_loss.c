/* This file has NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss of float32. Dim 1 has the
 * classes. */
#include "provider/onnx/own/own_ops.h"

#include <math.h>
#include <string.h>

enum { BESIDE = 2 };

struct loss {
    const struct own_tensor *x, *labels, *weights;
    int64_t classes, inner;
    bool ignores;
    int64_t ignored;
    const float *scores; /* logarithms of the chances, with the dims of x */
};

/* Returns true when an element counts, with its loss and its weight. */
static bool loss_at(struct own_call *call, const struct loss *loss, int64_t at, bool *ret_counts,
                    double *ret_loss, double *ret_weight)
{
    const int64_t label = own_integer_at(loss->labels, at);
    *ret_counts = !loss->ignores || label != loss->ignored;
    *ret_loss = 0;
    *ret_weight = 0;
    if (!*ret_counts) {
        return true;
    }
    if (label < 0 || label >= loss->classes) {
        return own_fault(call, ONNX_SHAPE, 1, "%lld is no class among %lld", (long long)label,
                         (long long)loss->classes);
    }
    const int64_t place =
        (at / loss->inner * loss->classes + label) * loss->inner + at % loss->inner;
    *ret_weight = loss->weights != NULL ? own_real_at(loss->weights, label) : 1;
    *ret_loss = -(double)loss->scores[place] * *ret_weight;
    return true;
}

static bool reduce(struct own_call *call, const struct loss *loss, struct own_tensor *y)
{
    const struct onnx_span reduction = own_text(call, "reduction", "mean");
    const bool is_each = onnx_span_is(reduction, "none");
    const bool is_mean = onnx_span_is(reduction, "mean");
    double sum = 0;
    double weights = 0;
    if (!is_each && !is_mean && !onnx_span_is(reduction, "sum")) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "the reduction \"%s\" is unknown",
                         onnx_label(reduction).text);
    }
    for (int64_t i = 0; i < loss->labels->elements; i++) {
        bool counts = false;
        double each = 0;
        double weight = 0;
        if (!loss_at(call, loss, i, &counts, &each, &weight)) {
            return false;
        }
        sum += each;
        weights += weight;
        if (is_each) {
            ((float *)y->to)[i] = (float)each;
        }
    }
    if (!is_each) {
        *(float *)y->to = (float)(is_mean ? sum / weights : sum);
    }
    return true;
}

/* Computes the logarithms of a softmax over dim 1. */
static void log_softmax(const struct loss *loss, float *to)
{
    const float *x = loss->x->at;
    const int64_t whole = loss->classes * loss->inner;
    for (int64_t at = 0; at < loss->x->elements / loss->classes; at++) {
        const int64_t base = at / loss->inner * whole + at % loss->inner;
        double most = -INFINITY;
        double sum = 0;
        for (int64_t i = 0; i < loss->classes; i++) {
            most = fmax(most, (double)x[base + i * loss->inner]);
        }
        for (int64_t i = 0; i < loss->classes; i++) {
            sum += exp((double)x[base + i * loss->inner] - most);
        }
        for (int64_t i = 0; i < loss->classes; i++) {
            to[base + i * loss->inner] =
                (float)((double)x[base + i * loss->inner] - most - log(sum));
        }
    }
}

static bool labels_fit(struct own_call *call, const struct loss *loss)
{
    int64_t dims[ONNX_RANK_MOST];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < loss->x->rank; i++) {
        if (i != 1) {
            dims[rank++] = loss->x->dims[i];
        }
    }
    if (loss->labels->type != ONNX_INT64 && loss->labels->type != ONNX_INT32) {
        return own_fault(call, ONNX_OPERATOR, 1, "labels are not int32 or int64");
    }
    return own_input_fits(call, 1, rank, dims) && own_input_is(call, 2, ONNX_FLOAT) &&
           own_input_fits(call, 2, 1, &loss->classes);
}

/* The scores of a cross entropy may be its second output. */
static bool run_cross_entropy(struct own_call *call, struct loss *loss)
{
    struct own_tensor *scores = own_output(call, 1);
    struct own_block *block = NULL;
    float *to = scores != NULL ? scores->to : NULL;
    if (to == NULL) {
        block = own_scratch(call, loss->x->elements, sizeof(float));
        if (block == NULL) {
            return false;
        }
        to = own_block_bytes(block);
    }
    log_softmax(loss, to);
    loss->scores = to;
    const bool is_done = reduce(call, loss, own_output(call, 0));
    own_block_release(block);
    return is_done;
}

bool own_op_loss(struct own_call *call)
{
    struct loss loss = {
        .x = own_input(call, 0), .labels = own_input(call, 1), .weights = own_input(call, 2)};
    const struct onnx_attribute *ignored =
        onnx_attribute_of(call->rule.model, call->rule.node, "ignore_index");
    loss.ignores = ignored != NULL && ignored->has_integer;
    loss.ignored = loss.ignores ? ignored->integer : 0;
    if (loss.x->rank < BESIDE || loss.x->elements == 0 || own_output(call, 0) == NULL) {
        return own_fault(call, ONNX_SHAPE, 0, "it has no classes, or nothing in it");
    }
    loss.classes = loss.x->dims[1];
    loss.inner = own_tensor_span(loss.x, BESIDE, loss.x->rank);
    loss.scores = loss.x->at;
    if (!labels_fit(call, &loss)) {
        return false;
    }
    return call->kind == OWN_CROSS_ENTROPY ? run_cross_entropy(call, &loss)
                                           : reduce(call, &loss, own_output(call, 0));
}
