/* provider/onnx/own/own_weights.h makes tensors out of TensorProto messages. Weights are such
 * messages, and so are the tensors of attributes.
 *
 * Bytes that lie in the model as they lie in memory are borrowed, if they are aligned for their
 * type. The rest is copied: lists of numbers, bytes at an odd place, and bytes in other files. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_WEIGHTS_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_WEIGHTS_H

#include "base/problem.h"
#include "provider/onnx/own/own_tensor.h"

/* Makes a tensor, which the caller drops. `folder` has the files of other data; NULL: there are
 * none. Returns ONNX_OK, UNSUPPORTED for strings and complex numbers, PATH when a file cannot be
 * read, WEIGHTS when it is too short, and NO_MEMORY. */
enum onnx_status own_weights_load(const struct onnx_tensor *from, const char *folder,
                                  struct own_memory *memory, struct own_tensor *ret_tensor,
                                  struct problem *ret_problem);

/* Returns true for a type that tensors of a run can have. */
bool own_type_is_held(enum onnx_type type);

#endif
