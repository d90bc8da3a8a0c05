/* This file has the normalisations of float32. Sums are kept in double. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_parallel.h"
#include "provider/onnx/own/own_walk.h"

#include <math.h>

enum { BESIDE = 2 /* batch and channels */ };

struct moments {
    double mean, variance;
};

static struct moments moments_of(const float *x, int64_t count)
{
    double sum = 0;
    double squares = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += (double)x[i];
    }
    const double mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++) {
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    }
    return (struct moments){mean, squares / (double)count};
}

/* Returns true when inputs `first` to `last` are float32 with one element for each channel. */
static bool are_of_channels(struct own_call *call, uint32_t first, uint32_t last, int64_t channels)
{
    for (uint32_t i = first; i <= last; i++) {
        if (!own_input_is(call, i, ONNX_FLOAT) || !own_input_fits(call, i, 1, &channels)) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- by channels */

struct scaling {
    const float *x;
    float *y;
    int64_t space, channels;
    const float *factor, *addend; /* by channel */
};

static void scale(void *context, int64_t first, int64_t last)
{
    const struct scaling *self = context;
    for (int64_t plane = first; plane < last; plane++) {
        const float factor = self->factor[plane % self->channels];
        const float addend = self->addend[plane % self->channels];
        const float *x = self->x + plane * self->space;
        float *y = self->y + plane * self->space;
        for (int64_t i = 0; i < self->space; i++) {
            y[i] = x[i] * factor + addend;
        }
    }
}

bool own_op_batch_norm(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    const int64_t channels = x->rank > 1 ? x->dims[1] : 1;
    const double epsilon = (double)own_real(call, "epsilon", 1e-5F);
    if (own_integer(call, "training_mode", 0) != 0 || own_output(call, 1) != NULL) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "training is not computed here");
    }
    if (!are_of_channels(call, 1, 4, channels)) {
        return false;
    }
    struct own_block *block = own_scratch(call, 2 * channels, sizeof(float));
    if (block == NULL) {
        return false;
    }
    float *factor = own_block_bytes(block);
    float *addend = factor + channels;
    for (int64_t i = 0; i < channels; i++) {
        const double root = sqrt(own_real_at(own_input(call, 4), i) + epsilon);
        const double each = own_real_at(own_input(call, 1), i) / root;
        factor[i] = (float)each;
        addend[i] =
            (float)(own_real_at(own_input(call, 2), i) - each * own_real_at(own_input(call, 3), i));
    }
    struct scaling scaling = {x->at,
                              own_output(call, 0)->to,
                              x->rank > BESIDE ? own_tensor_span(x, BESIDE, x->rank) : 1,
                              channels,
                              factor,
                              addend};
    const int64_t planes = x->elements > 0 ? x->elements / scaling.space : 0;
    own_parallel(call->threads, planes, own_parallel_least(scaling.space), scale, &scaling);
    own_block_release(block);
    return true;
}

bool own_op_instance_norm(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    float *y = own_output(call, 0)->to;
    const double epsilon = (double)own_real(call, "epsilon", 1e-5F);
    if (x->rank <= BESIDE) {
        return own_fault(call, ONNX_SHAPE, 0, "it has no dims of space");
    }
    const int64_t space = own_tensor_span(x, BESIDE, x->rank);
    const int64_t channels = x->dims[1];
    if (!are_of_channels(call, 1, 2, channels)) {
        return false;
    }
    for (int64_t plane = 0; space > 0 && plane < x->elements / space; plane++) {
        const float *from = (const float *)x->at + plane * space;
        const struct moments moments = moments_of(from, space);
        const double factor =
            own_real_at(own_input(call, 1), plane % channels) / sqrt(moments.variance + epsilon);
        const double addend = own_real_at(own_input(call, 2), plane % channels);
        for (int64_t i = 0; i < space; i++) {
            *y++ = (float)(((double)from[i] - moments.mean) * factor + addend);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- LayerNormalization */

struct layer {
    const struct own_tensor *x, *scale, *bias;
    struct own_tensor *y, *mean, *inverse;
    int64_t length;
    double epsilon;
};

/* Scale and bias lie as the normalised dims do, since they have their shape. */
static void normalise(void *context, int64_t first, int64_t last)
{
    const struct layer *layer = context;
    const float *scales = layer->scale->at;
    const float *biases = layer->bias != NULL ? layer->bias->at : NULL;
    for (int64_t row = first; row < last; row++) {
        const float *x = (const float *)layer->x->at + row * layer->length;
        float *y = (float *)layer->y->to + row * layer->length;
        const struct moments moments = moments_of(x, layer->length);
        const float mean = (float)moments.mean;
        const float inverse = (float)(1 / sqrt(moments.variance + layer->epsilon));
        for (int64_t i = 0; i < layer->length; i++) {
            y[i] = (x[i] - mean) * inverse * scales[i] + (biases != NULL ? biases[i] : 0);
        }
        if (layer->mean != NULL) {
            ((float *)layer->mean->to)[row] = mean;
        }
        if (layer->inverse != NULL) {
            ((float *)layer->inverse->to)[row] = inverse;
        }
    }
}

bool own_op_layer_norm(struct own_call *call)
{
    struct layer layer = {.x = own_input(call, 0),
                          .scale = own_input(call, 1),
                          .bias = own_input(call, 2),
                          .y = own_output(call, 0),
                          .mean = own_output(call, 1),
                          .inverse = own_output(call, 2),
                          .epsilon = (double)own_real(call, "epsilon", 1e-5F)};
    const int64_t said = own_integer(call, "axis", -1);
    const uint32_t axis = (uint32_t)(said < 0 ? said + layer.x->rank : said);
    layer.length = own_tensor_span(layer.x, axis, layer.x->rank);
    for (uint32_t i = 1; i <= 2; i++) {
        const struct own_tensor *tensor = own_input(call, i);
        if (!own_input_is(call, i, ONNX_FLOAT)) {
            return false;
        }
        if (tensor != NULL && tensor->elements != layer.length) {
            return own_fault(call, ONNX_SHAPE, i, "it has %lld elements for %lld",
                             (long long)tensor->elements, (long long)layer.length);
        }
    }
    if (own_integer(call, "stash_type", ONNX_FLOAT) != ONNX_FLOAT) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "its stash_type is not known here");
    }
    const int64_t rows = layer.x->elements > 0 ? layer.x->elements / layer.length : 0;
    if (layer.y != NULL) {
        own_parallel(call->threads, rows, own_parallel_least(3 * layer.length), normalise, &layer);
    }
    return layer.y != NULL ? true
                           : own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "it has no output 0");
}

/* ---------------------------------------------------------------- LRN, LpNormalization */

bool own_op_lrn(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    float *y = own_output(call, 0)->to;
    const int64_t size = own_integer(call, "size", 0);
    const double alpha = (double)own_real(call, "alpha", 1e-4F);
    const double beta = (double)own_real(call, "beta", 0.75F);
    const double bias = (double)own_real(call, "bias", 1);
    if (x->rank < BESIDE || size < 1 || size > ONNX_DIM_MOST) {
        return own_fault(call, ONNX_SHAPE, 0, "it has no channels, or \"size\" is wrong");
    }
    const int64_t space = own_tensor_span(x, BESIDE, x->rank);
    const int64_t channels = x->dims[1];
    if (!own_spend(call, x->elements, size < channels ? size : channels)) {
        return false;
    }
    const int64_t below = (size - 1) / 2;
    for (int64_t i = 0; i < x->elements; i++) {
        const int64_t channel = i / space % channels;
        const int64_t first = channel < below ? 0 : channel - below;
        const int64_t end = channel + (size - below);
        double squares = 0;
        for (int64_t c = first; c < channels && c < end; c++) {
            const double value = (double)((const float *)x->at)[i + (c - channel) * space];
            squares += value * value;
        }
        y[i] = (float)((double)((const float *)x->at)[i] /
                       pow(bias + alpha / (double)size * squares, beta));
    }
    return true;
}

bool own_op_lp_norm(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    float *y = own_output(call, 0)->to;
    const int64_t p = own_integer(call, "p", 2);
    uint32_t axis = 0;
    if (p != 1 && p != 2) {
        return own_fault(call, ONNX_OPERATOR, ONNX_NO_INPUT, "p is %lld, not 1 or 2", (long long)p);
    }
    if (!onnx_rule_axis(&call->rule, own_integer(call, "axis", -1), x->rank, &axis)) {
        return false;
    }
    const int64_t inner = own_tensor_span(x, axis + 1, x->rank);
    const int64_t length = x->dims[axis];
    for (int64_t at = 0; length > 0 && at < x->elements / length; at++) {
        const int64_t base = at / inner * length * inner + at % inner;
        const float *from = (const float *)x->at + base;
        double sum = 0;
        for (int64_t i = 0; i < length; i++) {
            const double value = (double)from[i * inner];
            sum += p == 1 ? fabs(value) : value * value;
        }
        const double norm = p == 1 ? sum : sqrt(sum);
        for (int64_t i = 0; i < length; i++) {
            y[base + i * inner] = norm > 0 ? (float)((double)from[i * inner] / norm) : 0;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- MeanVarianceNormalization */

/* Splits the dims into those that are averaged over, and the others. */
static bool split_axes(struct own_call *call, const struct own_tensor *x, struct own_walk *ret_in,
                       struct own_walk *ret_out)
{
    int64_t axes[2 * ONNX_RANK_MOST] = {0, 2, 3};
    int64_t dense[ONNX_RANK_MOST] = {0};
    int64_t dims[2][ONNX_RANK_MOST] = {{0}};
    int64_t strides[2][ONNX_RANK_MOST] = {{0}};
    uint32_t ranks[2] = {0};
    bool marked[ONNX_RANK_MOST] = {false};
    size_t count = 0;
    bool is_there = false;
    if (!onnx_rule_list(&call->rule, "axes", axes, &count, &is_there)) {
        return false;
    }
    for (size_t i = 0; i < (is_there ? count : 3); i++) {
        uint32_t axis = 0;
        if (!onnx_rule_axis(&call->rule, axes[i], x->rank, &axis)) {
            return false;
        }
        marked[axis] = true;
    }
    own_walk_dense(x, dense);
    for (uint32_t i = 0; i < x->rank; i++) {
        const int side = marked[i] ? 0 : 1;
        dims[side][ranks[side]] = x->dims[i];
        strides[side][ranks[side]++] = dense[i];
    }
    *ret_in = own_walk_over(ranks[0], dims[0]);
    *ret_out = own_walk_over(ranks[1], dims[1]);
    own_walk_strides(ret_in, 0, strides[0]);
    own_walk_strides(ret_out, 0, strides[1]);
    own_walk_ready(ret_in);
    own_walk_ready(ret_out);
    return true;
}

/* Returns the sum over a walk of (x - mean) to the power of 1 or 2. */
static double sum_over(struct own_walk *walk, const float *x, double mean, bool squares)
{
    double sum = 0;
    for (int64_t row = 0; row < walk->rows; row++) {
        own_walk_seek(walk, row);
        for (int64_t i = 0; i < walk->length; i++) {
            const double value = (double)x[walk->at[0] + i * walk->step[0]] - mean;
            sum += squares ? value * value : value;
        }
    }
    return sum;
}

bool own_op_mean_variance_norm(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    float *y = own_output(call, 0)->to;
    struct own_walk in;
    struct own_walk out;
    if (!split_axes(call, x, &in, &out)) {
        return false;
    }
    const double count = (double)(in.rows * in.length);
    for (int64_t at = 0; x->elements > 0 && at < out.rows * out.length; at++) {
        own_walk_seek(&out, at / out.length);
        const int64_t base = out.at[0] + at % out.length * out.step[0];
        const float *from = (const float *)x->at + base;
        const double mean = sum_over(&in, from, 0, false) / count;
        const double spread = sqrt(sum_over(&in, from, mean, true) / count);
        for (int64_t row = 0; row < in.rows; row++) {
            own_walk_seek(&in, row);
            for (int64_t i = 0; i < in.length; i++) {
                const int64_t place = in.at[0] + i * in.step[0];
                y[base + place] = (float)(((double)from[place] - mean) / (spread + 1e-9));
            }
        }
    }
    return true;
}
