#include "formats/onnx/onnx_npy.h"

#include <assert.h>

static_assert((int)NPY_DIMENSIONS == (int)ONNX_RANK_MOST, "an array of a file fits a tensor");

struct pair {
    char kind;
    uint32_t item_bytes;
    enum onnx_type type;
};

static const struct pair pairs[] = {
    {'f', 4, ONNX_FLOAT},     {'u', 1, ONNX_UINT8},      {'i', 1, ONNX_INT8},
    {'u', 2, ONNX_UINT16},    {'i', 2, ONNX_INT16},      {'i', 4, ONNX_INT32},
    {'i', 8, ONNX_INT64},     {'b', 1, ONNX_BOOL},       {'f', 2, ONNX_FLOAT16},
    {'f', 8, ONNX_DOUBLE},    {'u', 4, ONNX_UINT32},     {'u', 8, ONNX_UINT64},
    {'c', 8, ONNX_COMPLEX64}, {'c', 16, ONNX_COMPLEX128}};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

bool onnx_npy_read(const struct npy *npy, enum onnx_type *ret_type,
                   int64_t ret_dims[ONNX_RANK_MOST], struct problem *ret_problem)
{
    char text[NPY_TYPE_SIZE];
    enum onnx_type type = ONNX_UNDEFINED;
    npy_type_text(npy, text);
    for (size_t i = 0; i < PAIRS; i++) {
        type = pairs[i].kind == npy->kind && pairs[i].item_bytes == npy->item_bytes ? pairs[i].type
                                                                                    : type;
    }
    if (type == ONNX_UNDEFINED || (npy->is_big_endian && npy->item_bytes > 1)) {
        problem_set(ret_problem,
                    "its elements are %s, which models do not take; convert them with "
                    "NumPy's astype",
                    text);
        return false;
    }
    if (npy->is_fortran && npy->dimension_count > 1) {
        problem_set(ret_problem, "its first index runs fastest; save it with "
                                 "numpy.ascontiguousarray");
        return false;
    }
    for (uint32_t i = 0; i < npy->dimension_count; i++) {
        if (npy->shape[i] > (uint64_t)ONNX_DIM_MOST) {
            problem_set(ret_problem, "one of its dims is above 2^40");
            return false;
        }
        ret_dims[i] = (int64_t)npy->shape[i];
    }
    *ret_type = type;
    return true;
}

bool onnx_npy_describe(enum onnx_type type, uint32_t rank, const int64_t *dims, struct npy *ret_npy)
{
    for (size_t i = 0; i < PAIRS; i++) {
        if (pairs[i].type == type) {
            *ret_npy = (struct npy){
                .kind = pairs[i].kind, .item_bytes = pairs[i].item_bytes, .dimension_count = rank};
            for (uint32_t k = 0; k < rank; k++) {
                ret_npy->shape[k] = (uint64_t)dims[k];
            }
            return true;
        }
    }
    return false;
}
