/* formats/onnx/onnx_npy.h says which type of ONNX the elements of a .npy file have, and the
 * reverse. */
#ifndef BOURSE_FORMATS_ONNX_ONNX_NPY_H
#define BOURSE_FORMATS_ONNX_ONNX_NPY_H

#include "base/problem.h"
#include "formats/npy.h"
#include "formats/onnx/onnx.h"

#include <stdbool.h>

/* Reads the type and dims of an array that a model can take: in this machine's byte order, with the
 * last dim running fastest. Returns false with what to do about it otherwise. */
bool onnx_npy_read(const struct npy *npy, enum onnx_type *ret_type,
                   int64_t ret_dims[ONNX_RANK_MOST], struct problem *ret_problem);

/* Fills in a header for npy_write. Returns false for a type that NumPy has no name for: bfloat16
 * and strings. */
bool onnx_npy_describe(enum onnx_type type, uint32_t rank, const int64_t *dims,
                       struct npy *ret_npy);

#endif
