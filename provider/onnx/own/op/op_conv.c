/* This file has the convolutions. Each is a product: the filters times the windows of an image,
 * laid out as columns. Groups and images follow one another. */
#include "provider/onnx/own/own_ops.h"

#include "provider/onnx/own/own_columns.h"
#include "provider/onnx/own/own_product.h"
#include "provider/onnx/own/own_widen.h"

#include <string.h>

/* Columns beyond this size are made and multiplied in parts. */
#define COLUMNS_BYTES (INT64_C(16) << 20)

struct conv {
    struct own_window window;
    int64_t images, groups;
    int64_t channels, filters; /* of one group */
    const void *x, *weights;   /* float32, or int32 */
    void *y;
    bool is_whole; /* int32 */
    struct own_block *columns, *part;
    int64_t lines, lines_each; /* rows of the output's last dim, and those of a part */
};

/* The window of one element takes the image as it is. */
static bool is_direct(const struct own_window *window)
{
    for (uint32_t i = 0; i < window->dims; i++) {
        if (window->kernel[i] != 1 || window->strides[i] != 1 || window->before[i] != 0 ||
            window->behind[i] != 0) {
            return false;
        }
    }
    return true;
}

static bool multiply(struct own_call *call, const struct conv *conv, int64_t columns,
                     const void *filters, const void *from, void *to)
{
    const struct own_sides sides = {conv->filters, conv->channels * conv->window.kernel_size,
                                    columns};
    if (conv->is_whole) {
        return own_product_whole(call, sides, filters, from, to);
    }
    return own_product(call, sides, 1, filters, from, 0, to);
}

/* Convolves one group of one image. */
static bool convolve(struct own_call *call, const struct conv *conv, const uint32_t *image,
                     const uint32_t *filters, uint32_t *to)
{
    const struct own_window *window = &conv->window;
    const int64_t out = window->out[window->dims - 1];
    if (conv->columns == NULL) {
        return multiply(call, conv, window->out_size, filters, image, to);
    }
    uint32_t *columns = own_block_bytes(conv->columns);
    for (int64_t first = 0; first < conv->lines; first += conv->lines_each) {
        const int64_t rest = conv->lines - first;
        const int64_t count = rest < conv->lines_each ? rest : conv->lines_each;
        uint32_t *part = conv->part != NULL ? own_block_bytes(conv->part) : to;
        own_columns_fill(window, image, conv->channels, first, first + count, call->threads,
                         columns);
        if (!multiply(call, conv, count * out, filters, columns, part)) {
            return false;
        }
        for (int64_t i = 0; conv->part != NULL && i < conv->filters; i++) {
            memcpy(to + i * window->out_size + first * out, part + i * count * out,
                   (size_t)(count * out) * sizeof *to);
        }
    }
    return true;
}

/* Takes memory for the columns of as many lines as fit in COLUMNS_BYTES, and one at least. */
static bool take_columns(struct own_call *call, struct conv *conv)
{
    const struct own_window *window = &conv->window;
    const int64_t out = window->out[window->dims - 1];
    if (is_direct(window)) {
        return true;
    }
    if (window->kernel_size > ONNX_TENSOR_BYTES / conv->channels ||
        conv->channels * window->kernel_size > ONNX_TENSOR_BYTES / out) {
        return own_fault(call, ONNX_OVERFLOW, ONNX_NO_INPUT, "its windows are too large");
    }
    const int64_t line = conv->channels * window->kernel_size * out;
    conv->lines = window->out_size / out;
    conv->lines_each = COLUMNS_BYTES / (int64_t)sizeof(uint32_t) / line;
    conv->lines_each = conv->lines_each < 1 ? 1 : conv->lines_each;
    conv->lines_each = conv->lines_each > conv->lines ? conv->lines : conv->lines_each;
    conv->columns = own_scratch(call, line * conv->lines_each, sizeof(uint32_t));
    if (conv->columns != NULL && conv->lines_each < conv->lines) {
        conv->part = own_scratch(call, conv->filters * out * conv->lines_each, sizeof(uint32_t));
    }
    return call->rule.status == ONNX_OK;
}

/* Runs all groups of all images. The output is not empty. */
static bool run(struct own_call *call, struct conv *conv)
{
    if (conv->channels == 0) {
        return own_fault(call, ONNX_SHAPE, 0, "it has no channels");
    }
    const int64_t in_group = conv->channels * conv->window.in_size;
    const int64_t filter_group = conv->filters * conv->channels * conv->window.kernel_size;
    const int64_t out_group = conv->filters * conv->window.out_size;
    bool is_done = take_columns(call, conv);
    for (int64_t at = 0; is_done && at < conv->images * conv->groups; at++) {
        is_done = convolve(call, conv, (const uint32_t *)conv->x + at * in_group,
                           (const uint32_t *)conv->weights + at % conv->groups * filter_group,
                           (uint32_t *)conv->y + at * out_group);
    }
    own_block_release(conv->columns);
    own_block_release(conv->part);
    return is_done;
}

/* Reads what the kinds of convolution share. The rule has checked dims and groups. */
static bool begin(struct own_call *call, uint32_t weights_input, struct conv *ret_conv)
{
    const struct own_tensor *x = own_input(call, 0);
    const struct own_tensor *weights = own_input(call, weights_input);
    const struct own_tensor *y = own_output(call, 0);
    const int64_t groups = own_integer(call, "group", 1);
    *ret_conv = (struct conv){.images = x->dims[0],
                              .groups = groups,
                              .channels = weights->dims[1],
                              .filters = weights->dims[0] / groups,
                              .x = x->at,
                              .weights = weights->at,
                              .y = y->to};
    return own_window_read(call, x, y, weights->dims + OWN_BESIDE, &ret_conv->window);
}

static bool bias_is_right(struct own_call *call, uint32_t input, int64_t channels,
                          enum onnx_type type)
{
    return own_input_is(call, input, type) && own_input_fits(call, input, 1, &channels);
}

static void add_bias(const struct own_tensor *bias, struct own_tensor *y)
{
    const int64_t space = own_tensor_span(y, OWN_BESIDE, y->rank);
    const int64_t channels = y->dims[1];
    for (int64_t at = 0; bias != NULL && space > 0 && at < y->elements / space; at++) {
        const float value = ((const float *)bias->at)[at % channels];
        float *to = (float *)y->to + at * space;
        for (int64_t i = 0; i < space; i++) {
            to[i] += value;
        }
    }
}

bool own_op_conv(struct own_call *call)
{
    struct conv conv;
    struct own_tensor *y = own_output(call, 0);
    if (!own_input_is(call, 1, ONNX_FLOAT) || !bias_is_right(call, 2, y->dims[1], ONNX_FLOAT) ||
        !begin(call, 1, &conv) || !run(call, &conv)) {
        return false;
    }
    add_bias(own_input(call, 2), y);
    return true;
}

/* ---------------------------------------------------------------- ConvTranspose */

/* Sets the pads that an output of a stated shape, or SAME, leaves. */
static bool set_pads(struct own_call *call, struct own_window *window)
{
    int64_t values[2 * ONNX_RANK_MOST];
    int64_t extra[2 * ONNX_RANK_MOST] = {0};
    size_t said = 0;
    size_t extras = 0;
    if (!onnx_rule_list(&call->rule, "output_shape", values, &said, NULL) ||
        !onnx_rule_list(&call->rule, "output_padding", extra, &extras, NULL)) {
        return false;
    }
    const struct onnx_span auto_pad = own_text(call, "auto_pad", "NOTSET");
    const bool is_same =
        onnx_span_is(auto_pad, "SAME_UPPER") || onnx_span_is(auto_pad, "SAME_LOWER");
    for (uint32_t i = 0; (is_same || said == window->dims) && i < window->dims; i++) {
        const int64_t extent = (window->kernel[i] - 1) * window->dilations[i] + 1;
        const int64_t added = extras == window->dims ? extra[i] : 0;
        own_window_same(call,
                        (window->out[i] - 1) * window->strides[i] + added + extent - window->in[i],
                        &window->before[i], &window->behind[i]);
    }
    return true;
}

/* Adds up one group of one image: the filters, turned, times the elements make columns. */
static bool spread(struct own_call *call, const struct conv *conv, const float *turned,
                   const float *from, float *to)
{
    const struct own_sides sides = {conv->filters * conv->window.kernel_size, conv->channels,
                                    conv->window.out_size};
    float *columns = own_block_bytes(conv->columns);
    if (!own_product(call, sides, 1, turned, from, 0, columns)) {
        return false;
    }
    own_columns_add(&conv->window, columns, conv->filters, to);
    return true;
}

static bool spread_all(struct own_call *call, struct conv *conv)
{
    const int64_t filter_group = conv->channels * conv->filters * conv->window.kernel_size;
    const int64_t from_group = conv->channels * conv->window.out_size;
    const int64_t to_group = conv->filters * conv->window.in_size;
    conv->part = own_scratch(call, filter_group * conv->groups, sizeof(float));
    conv->columns =
        conv->part == NULL
            ? NULL
            : own_scratch(call, conv->filters * conv->window.kernel_size * conv->window.out_size,
                          sizeof(float));
    bool is_done = conv->columns != NULL;
    float *turned = is_done ? own_block_bytes(conv->part) : NULL;
    for (int64_t g = 0; is_done && g < conv->groups; g++) {
        own_turn((const float *)conv->weights + g * filter_group, conv->channels,
                 conv->filters * conv->window.kernel_size, turned + g * filter_group);
    }
    for (int64_t at = 0; is_done && at < conv->images * conv->groups; at++) {
        is_done =
            spread(call, conv, turned + at % conv->groups * filter_group,
                   (const float *)conv->x + at * from_group, (float *)conv->y + at * to_group);
    }
    own_block_release(conv->columns);
    own_block_release(conv->part);
    return is_done;
}

/* The window is that of the convolution whose input the output would be. */
bool own_op_conv_transpose(struct own_call *call)
{
    const struct own_tensor *x = own_input(call, 0);
    const struct own_tensor *weights = own_input(call, 1);
    struct own_tensor *y = own_output(call, 0);
    const int64_t groups = own_integer(call, "group", 1);
    struct conv conv = {.images = x->dims[0],
                        .groups = groups,
                        .channels = x->dims[1] / groups,
                        .filters = weights->dims[1],
                        .x = x->at,
                        .weights = weights->at,
                        .y = y->to};
    if (!own_input_is(call, 1, ONNX_FLOAT) || !bias_is_right(call, 2, y->dims[1], ONNX_FLOAT) ||
        !own_window_read(call, y, x, weights->dims + OWN_BESIDE, &conv.window) ||
        !set_pads(call, &conv.window)) {
        return false;
    }
    const int64_t columns = conv.window.out_size;
    if (columns > 0 && conv.filters > 0 &&
        conv.window.kernel_size > ONNX_TENSOR_BYTES / columns / conv.filters) {
        return own_fault(call, ONNX_OVERFLOW, ONNX_NO_INPUT, "its windows are too large");
    }
    if (y->bytes > 0) {
        memset(y->to, 0, (size_t)y->bytes);
    }
    if (y->elements > 0 && x->elements > 0 && !spread_all(call, &conv)) {
        return false;
    }
    add_bias(own_input(call, 2), y);
    return true;
}

/* ---------------------------------------------------------------- quantised */

/* Convolves bytes, less their zero points, into int32. */
static bool convolve_bytes(struct own_call *call, uint32_t weights, uint32_t x_zero,
                           uint32_t weights_zero, int32_t *to)
{
    struct conv conv;
    struct own_block *x = NULL;
    struct own_block *filters = NULL;
    if (!begin(call, weights, &conv)) {
        return false;
    }
    x = own_widen(call, 0, x_zero, ONNX_RANK_MOST);
    filters = x != NULL ? own_widen(call, weights, weights_zero, 0) : NULL;
    bool is_done = filters != NULL;
    if (is_done) {
        conv.x = own_block_bytes(x);
        conv.weights = own_block_bytes(filters);
        conv.y = to;
        conv.is_whole = true;
        is_done = run(call, &conv);
    }
    own_block_release(x);
    own_block_release(filters);
    return is_done;
}

bool own_op_conv_integer(struct own_call *call)
{
    return convolve_bytes(call, 1, 2, 3, own_output(call, 0)->to);
}

/* The scale of the filters is one number, or one for each filter. */
static bool rescale(struct own_call *call, const int32_t *sums)
{
    struct own_tensor *y = own_output(call, 0);
    const struct own_tensor *scale = own_input(call, 4);
    const struct own_tensor *zero = own_input(call, 7);
    const struct own_tensor *bias = own_input(call, 8);
    const int64_t space = own_tensor_span(y, OWN_BESIDE, y->rank);
    const int64_t channels = y->dims[1];
    float x_scale = 0;
    float y_scale = 0;
    if (!own_scale(call, 1, &x_scale) || !own_scale(call, 6, &y_scale) ||
        !bias_is_right(call, 8, channels, ONNX_INT32)) {
        return false;
    }
    if (scale->type != ONNX_FLOAT || (scale->elements != 1 && scale->elements != channels) ||
        zero->elements != 1 || (zero->type != ONNX_INT8 && zero->type != ONNX_UINT8)) {
        return own_fault(call, ONNX_SHAPE, 4, "the scales or the zero point do not fit");
    }
    for (int64_t i = 0; i < y->elements; i++) {
        const int64_t channel = i / space % channels;
        const double each = own_real_at(scale, scale->elements == 1 ? 0 : channel);
        const double sum =
            (double)sums[i] + (bias != NULL ? (double)own_integer_at(bias, channel) : 0);
        own_put_quantised(y, i,
                          own_quantised(sum * ((double)x_scale * each / (double)y_scale),
                                        own_integer_at(zero, 0), y->type));
    }
    return true;
}

bool own_op_conv_quantized(struct own_call *call)
{
    struct own_block *block = own_scratch(call, own_output(call, 0)->elements, sizeof(int32_t));
    if (block == NULL) {
        return false;
    }
    const bool is_done = convolve_bytes(call, 3, 2, 5, own_block_bytes(block)) &&
                         rescale(call, own_block_bytes(block));
    own_block_release(block);
    return is_done;
}
