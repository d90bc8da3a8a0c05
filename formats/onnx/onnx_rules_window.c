/* This file has the rules of operators with windows. They are convolutions, pools, and images whose
 * size changes. Dims after the first two are those of space. */
#include "formats/onnx/onnx_rules.h"

#include "base/checked.h"

#include <string.h>

enum { SPACE_MOST = ONNX_RANK_MOST - 2, BESIDE = 2 /* batch and channels */ };

enum auto_pad { PAD_SAID, PAD_SAME, PAD_VALID };

struct window {
    uint32_t dims; /* of space */
    int64_t kernel[SPACE_MOST], strides[SPACE_MOST], dilations[SPACE_MOST];
    int64_t pads[2 * SPACE_MOST]; /* before each dim, then behind each */
    enum auto_pad auto_pad;
    bool rounds_up;
};

/* Reads a list that has one number for each dim of space, or twice as many; each is `least` at
 * least. */
static bool read_list(struct onnx_rule *rule, const char *name, uint32_t count, int64_t usual,
                      int64_t least, int64_t *ret_values)
{
    int64_t values[2 * ONNX_RANK_MOST];
    size_t given = 0;
    if (!onnx_rule_list(rule, name, values, &given, NULL)) {
        return false;
    }
    if (given != 0 && given != count) {
        return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "\"%s\" has %zu numbers, not %u",
                               name, given, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        ret_values[i] = given == 0 ? usual : values[i];
        if (ret_values[i] < least || ret_values[i] > ONNX_DIM_MOST) {
            return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT,
                                   "\"%s\" has %lld; it may be %lld to 2^40", name,
                                   (long long)ret_values[i], (long long)least);
        }
    }
    return true;
}

static bool read_auto_pad(struct onnx_rule *rule, struct window *window)
{
    if (onnx_rule_says(rule, "auto_pad", "SAME_UPPER") ||
        onnx_rule_says(rule, "auto_pad", "SAME_LOWER")) {
        window->auto_pad = PAD_SAME;
        return true;
    }
    window->auto_pad = onnx_rule_says(rule, "auto_pad", "VALID") ? PAD_VALID : PAD_SAID;
    const struct onnx_attribute *said = onnx_attribute_of(rule->model, rule->node, "auto_pad");
    const bool is_known =
        said == NULL || window->auto_pad == PAD_VALID || onnx_rule_says(rule, "auto_pad", "NOTSET");
    return is_known ? true
                    : onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "auto_pad \"%s\" is unknown",
                                      onnx_label(said->text).text);
}

/* Reads the attributes of windows over an input. The kernel of a convolution is that of its
 * weights, else the attribute. */
static bool read_window(struct onnx_rule *rule, const struct onnx_fact *x, const int64_t *kernel,
                        struct window *ret_window)
{
    *ret_window = (struct window){.dims = x->rank - BESIDE};
    const uint32_t dims = ret_window->dims;
    size_t said = 0;
    int64_t values[2 * ONNX_RANK_MOST];
    ret_window->rounds_up = onnx_rule_integer(rule, "ceil_mode", 0) != 0;
    if (!onnx_rule_list(rule, "kernel_shape", values, &said, NULL) ||
        !read_list(rule, "kernel_shape", dims, 0, 0, ret_window->kernel) ||
        !read_list(rule, "strides", dims, 1, 1, ret_window->strides) ||
        !read_list(rule, "dilations", dims, 1, 1, ret_window->dilations) ||
        !read_list(rule, "pads", 2 * dims, 0, 0, ret_window->pads) ||
        !read_auto_pad(rule, ret_window)) {
        return false;
    }
    for (uint32_t i = 0; i < dims; i++) {
        if (kernel != NULL && said > 0 && kernel[i] != ret_window->kernel[i]) {
            return onnx_rule_fault(rule, ONNX_SHAPE, 1, "kernel_shape has %lld, the weights %lld",
                                   (long long)ret_window->kernel[i], (long long)kernel[i]);
        }
        ret_window->kernel[i] = kernel != NULL ? kernel[i] : ret_window->kernel[i];
        if (ret_window->kernel[i] < 1) {
            return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "the kernel has no size");
        }
    }
    return true;
}

/* Returns the extent of a dilated kernel; sums stay far below 2^63, or the product is refused. */
static bool extent_of(const struct window *window, uint32_t i, int64_t *ret_extent)
{
    int64_t extent = 0;
    return checked_mul(window->kernel[i] - 1, window->dilations[i], &extent) &&
           checked_add(extent, 1, ret_extent);
}

static bool make_side(struct onnx_rule *rule, const struct window *window, uint32_t i, int64_t size,
                      int64_t *ret_size)
{
    const int64_t stride = window->strides[i];
    int64_t extent = 0;
    if (!extent_of(window, i, &extent)) {
        return onnx_rule_fault(rule, ONNX_OVERFLOW, ONNX_NO_INPUT, "the kernel is too large");
    }
    if (window->auto_pad == PAD_SAME) {
        *ret_size = size / stride + (size % stride != 0);
        return true;
    }
    const int64_t pads =
        window->auto_pad == PAD_SAID ? window->pads[i] + window->pads[window->dims + i] : 0;
    const int64_t room = size + pads - extent;
    if (room < 0) {
        return onnx_rule_fault(rule, ONNX_SHAPE, 0,
                               "the kernel covers %lld, and dim %u has %lld with its padding",
                               (long long)extent, i + BESIDE, (long long)(size + pads));
    }
    *ret_size = room / stride + (window->rounds_up && room % stride != 0) + 1;
    return true;
}

static bool make_windows(struct onnx_rule *rule, const struct onnx_fact *x,
                         const struct window *window, int64_t channels, enum onnx_type type)
{
    int64_t dims[ONNX_RANK_MOST] = {x->dims[0], channels};
    for (uint32_t i = 0; i < window->dims; i++) {
        if (!make_side(rule, window, i, x->dims[BESIDE + i], &dims[BESIDE + i])) {
            return false;
        }
    }
    return onnx_rule_make(rule, 0, type, x->rank, dims);
}

/* Returns an input with batch, channels and at least one dim of space, or NULL after a fault. */
static const struct onnx_fact *image_of(struct onnx_rule *rule, uint32_t input)
{
    const struct onnx_fact *x = onnx_rule_input(rule, input);
    if (x != NULL && x->rank <= BESIDE) {
        (void)onnx_rule_fault(rule, ONNX_SHAPE, input, "%s has no dims of space",
                              onnx_shape_text(x).text);
        return NULL;
    }
    return x;
}

/* ---------------------------------------------------------------- convolutions */

static bool make_conv(struct onnx_rule *rule, uint32_t weights_input, enum onnx_type type)
{
    const struct onnx_fact *x = image_of(rule, 0);
    const struct onnx_fact *weights = onnx_rule_input(rule, weights_input);
    struct window window;
    int64_t channels = 0;
    if (x == NULL || weights == NULL) {
        return false;
    }
    const int64_t groups = onnx_rule_integer(rule, "group", 1);
    if (weights->rank != x->rank || groups < 1 || groups > ONNX_DIM_MOST ||
        !checked_mul(weights->dims[1], groups, &channels) || channels != x->dims[1] ||
        weights->dims[0] % groups != 0) {
        return onnx_rule_fault(
            rule, ONNX_SHAPE, weights_input, "the filters are %s and input 0 is %s, in %lld groups",
            onnx_shape_text(weights).text, onnx_shape_text(x).text, (long long)groups);
    }
    return read_window(rule, x, &weights->dims[BESIDE], &window) &&
           make_windows(rule, x, &window, weights->dims[0], type);
}

bool onnx_rule_conv(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    return x != NULL && make_conv(rule, 1, x->type);
}

bool onnx_rule_conv_integer(struct onnx_rule *rule)
{
    return make_conv(rule, 1, ONNX_INT32);
}

bool onnx_rule_conv_quantized(struct onnx_rule *rule)
{
    const struct onnx_fact *zero = onnx_rule_input(rule, 7);
    return zero != NULL && make_conv(rule, 3, zero->type);
}

/* Makes one side of a transposed convolution: as large as what it would be the convolution of. */
static bool make_wider(struct onnx_rule *rule, const struct window *window, uint32_t i,
                       int64_t size, int64_t extra, int64_t *ret_size)
{
    int64_t extent = 0;
    int64_t side = 0;
    const bool fits =
        extent_of(window, i, &extent) &&
        checked_mul(window->strides[i], window->auto_pad == PAD_SAME ? size : size - 1, &side) &&
        (window->auto_pad == PAD_SAME || checked_add(side, extent, &side)) &&
        (window->auto_pad == PAD_SAME || checked_add(side, extra, &side));
    if (!fits) {
        return onnx_rule_fault(rule, ONNX_OVERFLOW, ONNX_NO_INPUT, "dim %u is too large",
                               i + BESIDE);
    }
    if (window->auto_pad == PAD_SAID) {
        side -= window->pads[i] + window->pads[window->dims + i];
    }
    *ret_size = side;
    return side >= 0 ? true
                     : onnx_rule_fault(rule, ONNX_SHAPE, 0, "dim %u would be %lld", i + BESIDE,
                                       (long long)side);
}

bool onnx_rule_conv_transpose(struct onnx_rule *rule)
{
    const struct onnx_fact *x = image_of(rule, 0);
    const struct onnx_fact *weights = onnx_rule_input(rule, 1);
    int64_t dims[ONNX_RANK_MOST];
    int64_t said[2 * ONNX_RANK_MOST];
    int64_t extra[SPACE_MOST];
    size_t said_count = 0;
    struct window window;
    const int64_t groups = onnx_rule_integer(rule, "group", 1);
    if (x == NULL || weights == NULL) {
        return false;
    }
    dims[0] = x->dims[0];
    if (weights->rank != x->rank || weights->dims[0] != x->dims[1] || groups < 1 ||
        x->dims[1] % groups != 0 || !checked_mul(weights->dims[1], groups, &dims[1])) {
        return onnx_rule_fault(rule, ONNX_SHAPE, 1, "the filters are %s and input 0 is %s",
                               onnx_shape_text(weights).text, onnx_shape_text(x).text);
    }
    if (!read_window(rule, x, &weights->dims[BESIDE], &window) ||
        !read_list(rule, "output_padding", window.dims, 0, 0, extra) ||
        !onnx_rule_list(rule, "output_shape", said, &said_count, NULL)) {
        return false;
    }
    for (uint32_t i = 0; i < window.dims; i++) {
        if (said_count == window.dims) {
            dims[BESIDE + i] = said[i];
        } else if (!make_wider(rule, &window, i, x->dims[BESIDE + i], extra[i],
                               &dims[BESIDE + i])) {
            return false;
        }
    }
    return onnx_rule_make(rule, 0, x->type, x->rank, dims);
}

/* ---------------------------------------------------------------- pools */

/* MaxPool has the places of the largest elements as a second output. */
bool onnx_rule_pool(struct onnx_rule *rule)
{
    const struct onnx_fact *x = image_of(rule, 0);
    struct window window;
    if (x == NULL || !read_window(rule, x, NULL, &window) ||
        !make_windows(rule, x, &window, x->dims[1], x->type)) {
        return false;
    }
    int64_t dims[ONNX_RANK_MOST] = {x->dims[0], x->dims[1]};
    for (uint32_t i = 0; i < window.dims; i++) {
        if (!make_side(rule, &window, i, x->dims[BESIDE + i], &dims[BESIDE + i])) {
            return false;
        }
    }
    return onnx_rule_make(rule, 1, ONNX_INT64, x->rank, dims);
}

bool onnx_rule_global_pool(struct onnx_rule *rule)
{
    const struct onnx_fact *x = image_of(rule, 0);
    int64_t dims[ONNX_RANK_MOST] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (x == NULL) {
        return false;
    }
    memcpy(dims, x->dims, BESIDE * sizeof *dims);
    return onnx_rule_make(rule, 0, x->type, x->rank, dims);
}

/* ---------------------------------------------------------------- sizes of images */

/* Reads the scales of a resize. An input of the graph has none before a run. */
static bool read_scales(struct onnx_rule *rule, uint32_t input, float *ret_scales,
                        size_t *ret_count)
{
    const struct onnx_fact *fact = onnx_rule_input(rule, input);
    struct onnx_tensor tensor;
    if (fact == NULL) {
        return false;
    }
    if (fact->tensor.size == 0 || onnx_tensor_read(fact->tensor, &tensor, NULL) != ONNX_OK ||
        !onnx_tensor_reals(&tensor, ONNX_RANK_MOST, ret_scales)) {
        return onnx_rule_fault(rule, ONNX_DYNAMIC, input,
                               "the dims depend on its values, which only a run would know");
    }
    *ret_count = (size_t)tensor.elements;
    return true;
}

/* Makes each dim the old one times its scale, rounded down, in float32 as the runtimes do. */
static bool make_scaled(struct onnx_rule *rule, const struct onnx_fact *x, const float *scales,
                        size_t count)
{
    int64_t dims[ONNX_RANK_MOST];
    if (count != x->rank) {
        return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "there are %zu scales for %u dims",
                               count, x->rank);
    }
    for (uint32_t i = 0; i < x->rank; i++) {
        const float side = (float)x->dims[i] * scales[i];
        if (!(scales[i] > 0) || !(side <= (float)ONNX_DIM_MOST)) {
            return onnx_rule_fault(rule, ONNX_SHAPE, ONNX_NO_INPUT, "the scale of dim %u is wrong",
                                   i);
        }
        dims[i] = (int64_t)side; /* it is not negative, so that this rounds down */
    }
    return onnx_rule_make(rule, 0, x->type, x->rank, dims);
}

/* Resize, and Upsample before it. The sizes come as such, or as scales. */
bool onnx_rule_resize(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const bool has_region = onnx_span_is(rule->node->operator, "Resize") && rule->node->opset >= 11;
    const uint32_t scales_input = has_region ? 2 : 1;
    float scales[ONNX_RANK_MOST];
    size_t count = 0;
    if (x == NULL) {
        return false;
    }
    if (has_region && onnx_rule_has(rule, 3)) {
        const int64_t *sizes = onnx_rule_values(rule, 3, &count);
        if (sizes != NULL && count != x->rank) {
            return onnx_rule_fault(rule, ONNX_SHAPE, 3, "it has %zu numbers for %u dims", count,
                                   x->rank);
        }
        return sizes != NULL && onnx_rule_make(rule, 0, x->type, x->rank, sizes);
    }
    if (!onnx_rule_has(rule, scales_input)) {
        return onnx_rule_fault(rule, ONNX_OPERATOR, ONNX_NO_INPUT,
                               "scales as an attribute are not known here");
    }
    return read_scales(rule, scales_input, scales, &count) && make_scaled(rule, x, scales, count);
}

bool onnx_rule_depth_to_space(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const int64_t side = onnx_rule_integer(rule, "blocksize", 0);
    int64_t height = 0;
    int64_t width = 0;
    if (x == NULL) {
        return false;
    }
    if (x->rank != 4 || side < 1 || side > (1 << 20) || x->dims[1] % (side * side) != 0 ||
        !checked_mul(x->dims[2], side, &height) || !checked_mul(x->dims[3], side, &width)) {
        return onnx_rule_fault(rule, ONNX_SHAPE, 0, "%s has no blocks of %lld",
                               onnx_shape_text(x).text, (long long)side);
    }
    const int64_t dims[4] = {x->dims[0], x->dims[1] / (side * side), height, width};
    return onnx_rule_make(rule, 0, x->type, 4, dims);
}

bool onnx_rule_space_to_depth(struct onnx_rule *rule)
{
    const struct onnx_fact *x = onnx_rule_input(rule, 0);
    const int64_t side = onnx_rule_integer(rule, "blocksize", 0);
    int64_t channels = 0;
    if (x == NULL) {
        return false;
    }
    if (x->rank != 4 || side < 1 || side > (1 << 20) || x->dims[2] % side != 0 ||
        x->dims[3] % side != 0 || !checked_mul(x->dims[1], side * side, &channels)) {
        return onnx_rule_fault(rule, ONNX_SHAPE, 0, "%s has no blocks of %lld",
                               onnx_shape_text(x).text, (long long)side);
    }
    const int64_t dims[4] = {x->dims[0], channels, x->dims[2] / side, x->dims[3] / side};
    return onnx_rule_make(rule, 0, x->type, 4, dims);
}
