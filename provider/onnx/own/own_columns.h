/* provider/onnx/own/own_columns.h lays the windows of an image out as the columns of a matrix, so
 * that a convolution is a product; and adds such columns up to an image again. Elements have four
 * bytes: float32, or int32. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_COLUMNS_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_COLUMNS_H

#include "provider/onnx/own/own_window.h"

/* Fills `to`, which has channels * kernel_size rows. Each row has one element for each place of the
 * output in rows `first` to `last` of its last dim; outside of the image it is 0. */
void own_columns_fill(const struct own_window *window, const uint32_t *image, int64_t channels,
                      int64_t first, int64_t last, unsigned threads, uint32_t *to);

/* Adds columns to the image whose windows they are. All places of the output are there. */
void own_columns_add(const struct own_window *window, const float *columns, int64_t channels,
                     float *image);

#endif
