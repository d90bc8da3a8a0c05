#include "provider/onnx/own/own_window.h"

#include <string.h>

/* Reads a list with `count` numbers, or `usual` for each. */
static bool read_list(struct own_call *call, const char *name, uint32_t count, int64_t usual,
                      int64_t *ret_values)
{
    int64_t values[2 * ONNX_RANK_MOST];
    size_t given = 0;
    if (!onnx_rule_list(&call->rule, name, values, &given, NULL)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        ret_values[i] = given == count ? values[i] : usual;
    }
    return true;
}

void own_window_same(struct own_call *call, int64_t total, int64_t *ret_before, int64_t *ret_behind)
{
    const int64_t pads = total > 0 ? total : 0;
    const bool is_lower = onnx_span_is(own_text(call, "auto_pad", "NOTSET"), "SAME_LOWER");
    *ret_before = is_lower ? pads - pads / 2 : pads / 2;
    *ret_behind = pads - *ret_before;
}

static void set_pads(struct own_call *call, struct own_window *window, const int64_t *said)
{
    const struct onnx_span auto_pad = own_text(call, "auto_pad", "NOTSET");
    const bool is_said = onnx_span_is(auto_pad, "NOTSET");
    const bool is_valid = onnx_span_is(auto_pad, "VALID");
    for (uint32_t i = 0; i < window->dims; i++) {
        const int64_t extent = (window->kernel[i] - 1) * window->dilations[i] + 1;
        if (is_said) {
            window->before[i] = said[i];
            window->behind[i] = said[window->dims + i];
        } else if (!is_valid) {
            own_window_same(call,
                            (window->out[i] - 1) * window->strides[i] + extent - window->in[i],
                            &window->before[i], &window->behind[i]);
        }
    }
}

/* Bounds what coordinates are computed of, so that no sum of products overflows. */
static bool is_bounded(struct own_call *call, const struct own_window *window, const int64_t *said)
{
    enum { SIDE_BITS = 30 };
    const int64_t most = INT64_C(1) << SIDE_BITS;
    for (uint32_t i = 0; i < window->dims; i++) {
        if (window->kernel[i] > most || window->strides[i] > most || window->dilations[i] > most ||
            said[i] > most || said[window->dims + i] > most || window->in[i] > most ||
            window->out[i] > most) {
            return own_fault(call, ONNX_TOO_LARGE, ONNX_NO_INPUT,
                             "a side, stride, dilation or pad of dim %u is above 2^%d",
                             i + OWN_BESIDE, SIDE_BITS);
        }
    }
    return true;
}

bool own_window_read(struct own_call *call, const struct own_tensor *in,
                     const struct own_tensor *out, const int64_t *kernel,
                     struct own_window *ret_window)
{
    int64_t said[2 * OWN_SPACE_MOST] = {0};
    struct own_window window = {.dims = in->rank - OWN_BESIDE,
                                .in_size = own_tensor_span(in, OWN_BESIDE, in->rank),
                                .out_size = own_tensor_span(out, OWN_BESIDE, out->rank),
                                .kernel_size = 1};
    const uint32_t dims = window.dims;
    memcpy(window.in, in->dims + OWN_BESIDE, dims * sizeof *window.in);
    memcpy(window.out, out->dims + OWN_BESIDE, dims * sizeof *window.out);
    if (!read_list(call, "kernel_shape", dims, 1, window.kernel) ||
        !read_list(call, "strides", dims, 1, window.strides) ||
        !read_list(call, "dilations", dims, 1, window.dilations) ||
        !read_list(call, "pads", 2 * dims, 0, said)) {
        return false;
    }
    if (kernel != NULL) {
        memcpy(window.kernel, kernel, dims * sizeof *kernel);
    }
    if (!is_bounded(call, &window, said)) {
        return false;
    }
    for (uint32_t i = 0; i < dims; i++) {
        if (window.kernel_size > ONNX_TENSOR_BYTES / window.kernel[i]) {
            return own_fault(call, ONNX_TOO_LARGE, ONNX_NO_INPUT, "the kernel is too large");
        }
        window.kernel_size *= window.kernel[i];
    }
    set_pads(call, &window, said);
    *ret_window = window;
    return true;
}

void own_window_place(const struct own_window *window, const int64_t *sizes, int64_t index,
                      int64_t *ret_place)
{
    for (uint32_t i = window->dims; i > 0; i--) {
        ret_place[i - 1] = index % sizes[i - 1];
        index /= sizes[i - 1];
    }
}
