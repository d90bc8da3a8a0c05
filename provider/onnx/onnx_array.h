/* provider/onnx/onnx_array.h holds one tensor in memory, which goes into a model or comes out.
 *
 * Elements lie one after another with the last dim running fastest, in this machine's byte order. A
 * bool is one byte, 0 or 1. There are no arrays of strings. An array knows who owns its bytes, so
 * that an engine can hand out memory of its own without a copy. */
#ifndef BOURSE_PROVIDER_ONNX_ONNX_ARRAY_H
#define BOURSE_PROVIDER_ONNX_ONNX_ARRAY_H

#include "base/problem.h"
#include "formats/onnx/onnx.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ONNX_ARRAY_ALIGNMENT = 64, /* of the bytes that onnx_array_make makes */
};

struct onnx_array {
    enum onnx_type type;
    uint32_t rank; /* 0: a scalar, which has one element */
    int64_t dims[ONNX_RANK_MOST];
    int64_t elements; /* product of the dims */
    uint64_t size;    /* of the bytes: elements times onnx_type_bytes(type) */
    void *bytes;      /* at the natural alignment of an element; may be NULL where the size is 0 */
    /* Called once with `owner` by onnx_array_release. NULL: the bytes belong to somebody else, who
     * keeps them as long as the array is used. */
    void (*release)(void *owner);
    void *owner;
};

/* Fills in type, rank, dims, elements and size; the array has no bytes and no owner. Returns false
 * with the reason when a dim is negative, the rank is above ONNX_RANK_MOST, the type has no
 * elements of fixed size, or the size passes ONNX_TENSOR_BYTES. The array is then empty. */
bool onnx_array_describe(enum onnx_type type, uint32_t rank, const int64_t *dims,
                         struct onnx_array *ret_array, struct problem *ret_problem);

/* Describes an array and allocates its bytes, which are zero. The caller owns the array. Returns
 * false with the reason, and an empty array, also when memory is short. */
bool onnx_array_make(enum onnx_type type, uint32_t rank, const int64_t *dims,
                     struct onnx_array *ret_array, struct problem *ret_problem);

/* Gives the bytes back to their owner, and empties the array. An empty array may be released. */
void onnx_array_release(struct onnx_array *array);

/* Writes type and dims as people read them: "float32[1,3,224,224]"; of a dim below 0 "?". */
enum { ONNX_ARRAY_TEXT_SIZE = 200 };
void onnx_array_text(enum onnx_type type, uint32_t rank, const int64_t *dims,
                     char ret_text[ONNX_ARRAY_TEXT_SIZE]);

#endif
