#include "provider/onnx/onnx_array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool onnx_array_describe(enum onnx_type type, uint32_t rank, const int64_t *dims,
                         struct onnx_array *ret_array, struct problem *ret_problem)
{
    const int64_t item_bytes = onnx_type_bytes(type);
    *ret_array = (struct onnx_array){.type = ONNX_UNDEFINED};
    if (item_bytes <= 0) {
        problem_set(ret_problem, "an array of type %s is unknown here", onnx_type_name(type));
        return false;
    }
    if (rank > ONNX_RANK_MOST) {
        problem_set(ret_problem, "an array has %u dims, and at most %d are known here", rank,
                    ONNX_RANK_MOST);
        return false;
    }
    struct onnx_array array = {.type = type, .rank = rank, .elements = 1};
    bool good = true;
    bool is_empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        array.dims[i] = dims[i];
        good = good && dims[i] >= 0;
        is_empty = is_empty || dims[i] == 0;
    }
    for (uint32_t i = 0; i < rank && good && !is_empty; i++) {
        good = dims[i] <= ONNX_TENSOR_BYTES / item_bytes / array.elements;
        array.elements *= good ? dims[i] : 1;
    }
    if (!good) {
        char text[ONNX_ARRAY_TEXT_SIZE];
        onnx_array_text(type, rank, dims, text);
        problem_set(ret_problem, "an array %s is too large, or a dim is negative", text);
        return false;
    }
    array.elements = is_empty ? 0 : array.elements;
    array.size = (uint64_t)(array.elements * item_bytes);
    *ret_array = array;
    return true;
}

bool onnx_array_make(enum onnx_type type, uint32_t rank, const int64_t *dims,
                     struct onnx_array *ret_array, struct problem *ret_problem)
{
    if (!onnx_array_describe(type, rank, dims, ret_array, ret_problem)) {
        return false;
    }
    const size_t most = ONNX_ARRAY_ALIGNMENT;
    const size_t size = ((size_t)ret_array->size + most) / most * most;
    void *bytes = aligned_alloc(most, size);
    if (bytes == NULL) {
        problem_set(ret_problem, "memory is short: an array takes %llu bytes",
                    (unsigned long long)ret_array->size);
        *ret_array = (struct onnx_array){.type = ONNX_UNDEFINED};
        return false;
    }
    (void)memset(bytes, 0, size);
    ret_array->bytes = bytes;
    ret_array->owner = bytes;
    ret_array->release = free;
    return true;
}

void onnx_array_release(struct onnx_array *array)
{
    if (array->release != NULL) {
        array->release(array->owner);
    }
    *array = (struct onnx_array){.type = ONNX_UNDEFINED};
}

void onnx_array_text(enum onnx_type type, uint32_t rank, const int64_t *dims,
                     char ret_text[ONNX_ARRAY_TEXT_SIZE])
{
    int used = snprintf(ret_text, ONNX_ARRAY_TEXT_SIZE, "%s[", onnx_type_name(type));
    for (uint32_t i = 0; i < rank && i < ONNX_RANK_MOST; i++) {
        char dim[24] = "?";
        if (dims[i] >= 0) {
            (void)snprintf(dim, sizeof dim, "%lld", (long long)dims[i]);
        }
        used += snprintf(ret_text + used, (size_t)(ONNX_ARRAY_TEXT_SIZE - used), "%s%s",
                         i == 0 ? "" : ",", dim);
    }
    (void)snprintf(ret_text + used, (size_t)(ONNX_ARRAY_TEXT_SIZE - used), "]");
}
