/* provider/onnx/own/own_copy.h copies elements of any type to another place. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_COPY_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_COPY_H

#include "provider/onnx/own/own_call.h"

/* Fills the whole output with elements of `from`: the first is at `offset`, and one more in a dim
 * of the output is `strides[dim]` elements further, which may be 0 or negative. All places are in
 * the tensor. Works on the call's threads. */
void own_copy_out(struct own_call *call, const struct own_tensor *from, int64_t offset,
                  const int64_t *strides, struct own_tensor *to);

/* Copies `count` elements of `size` bytes; steps are in elements. */
void own_copy_row(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t count,
                  int64_t size);

#endif
