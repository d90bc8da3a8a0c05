/* provider/onnx/own/own_window.h reads the windows of convolutions and pools, whose attributes the
 * rules have checked. Dims after the first two are those of space. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_WINDOW_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_WINDOW_H

#include "provider/onnx/own/own_call.h"

enum { OWN_SPACE_MOST = ONNX_RANK_MOST - 2, OWN_BESIDE = 2 /* batch and channels */ };

struct own_window {
    uint32_t dims; /* of space */
    int64_t in[OWN_SPACE_MOST], out[OWN_SPACE_MOST];
    int64_t kernel[OWN_SPACE_MOST], strides[OWN_SPACE_MOST], dilations[OWN_SPACE_MOST];
    int64_t before[OWN_SPACE_MOST], behind[OWN_SPACE_MOST]; /* pads */
    int64_t in_size, out_size, kernel_size;                 /* products over space */
};

/* Reads the windows that make `out` of `in`. `kernel` has the dims of the filters, or is NULL: then
 * it is the attribute. Returns false after a fault. */
bool own_window_read(struct own_call *call, const struct own_tensor *in,
                     const struct own_tensor *out, const int64_t *kernel,
                     struct own_window *ret_window);

/* Splits what SAME pads of one dim into both sides. */
void own_window_same(struct own_call *call, int64_t total, int64_t *ret_before,
                     int64_t *ret_behind);

/* Turns an index over the dims of space into coordinates. */
void own_window_place(const struct own_window *window, const int64_t *sizes, int64_t index,
                      int64_t *ret_place);

#endif
