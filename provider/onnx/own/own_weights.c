#include "provider/onnx/own/own_weights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Numbers of fields in onnx.proto. */
enum {
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    INT64_DATA = 7,
    RAW_DATA = 9,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11
};
enum { PATH_SIZE = 4096 };

bool own_type_is_held(enum onnx_type type)
{
    switch (type) {
    case ONNX_UNDEFINED:
    case ONNX_STRING:
    case ONNX_COMPLEX64:
    case ONNX_COMPLEX128:
    case ONNX_TYPES:
        return false;
    default:
        return true;
    }
}

static bool is_list(uint32_t number)
{
    return number == FLOAT_DATA || number == INT32_DATA || number == INT64_DATA ||
           number == DOUBLE_DATA || number == UINT64_DATA;
}

/* ---------------------------------------------------------------- in the model */

/* Finds the bytes of a tensor where they lie in one piece as memory has them. */
static struct onnx_span raw_of(const struct onnx_tensor *from)
{
    struct onnx_wire wire = onnx_wire_over(from->message);
    struct onnx_field field;
    struct onnx_span raw = {NULL, 0};
    while (onnx_wire_next(&wire, &field)) {
        const bool is_fixed =
            field.number == RAW_DATA || field.number == FLOAT_DATA || field.number == DOUBLE_DATA;
        if (is_fixed && field.kind == ONNX_WIRE_BYTES && field.bytes.size == (size_t)from->bytes) {
            raw = field.bytes;
        }
    }
    return raw;
}

/* Puts the low bytes of a number at an element's place. */
static void put(void *to, int64_t at, int64_t size, uint64_t bits)
{
    const uint8_t one = (uint8_t)bits;
    const uint16_t two = (uint16_t)bits;
    const uint32_t four = (uint32_t)bits;
    switch (size) {
    case 1:
        ((uint8_t *)to)[at] = one;
        break;
    case 2:
        ((uint16_t *)to)[at] = two;
        break;
    case 4:
        ((uint32_t *)to)[at] = four;
        break;
    default:
        ((uint64_t *)to)[at] = bits;
        break;
    }
}

/* Reads one element of a packed list. */
static bool next(struct onnx_wire *list, uint32_t number, uint64_t *ret_bits)
{
    const size_t size = number == FLOAT_DATA ? 4 : number == DOUBLE_DATA ? 8 : 0;
    if (size == 0) {
        return onnx_wire_number(list, ret_bits);
    }
    if ((size_t)(list->end - list->at) < size) {
        return false;
    }
    uint32_t four = 0;
    uint64_t eight = 0;
    memcpy(size == 4 ? (void *)&four : (void *)&eight, list->at, size);
    *ret_bits = size == 4 ? four : eight;
    list->at += size;
    return true;
}

/* Copies the lists of a tensor. The reader has counted their elements. */
static bool copy_lists(const struct onnx_tensor *from, struct own_tensor *to)
{
    struct onnx_wire wire = onnx_wire_over(from->message);
    struct onnx_field field;
    const int64_t size = onnx_type_bytes(to->type);
    int64_t count = 0;
    while (onnx_wire_next(&wire, &field)) {
        if (!is_list(field.number)) {
            continue;
        }
        const bool is_packed = field.kind == ONNX_WIRE_BYTES;
        struct onnx_wire list =
            onnx_wire_over(is_packed ? field.bytes : (struct onnx_span){NULL, 0});
        uint64_t bits = field.value;
        while (is_packed ? next(&list, field.number, &bits) : true) {
            if (count == to->elements) {
                return false;
            }
            put(to->to, count++, size, bits);
            if (!is_packed) {
                break;
            }
        }
    }
    return count == to->elements;
}

/* A boolean is 0 or 1, and an operator may rely on that. */
static void clean(struct own_tensor *tensor)
{
    uint8_t *bytes = tensor->to;
    for (int64_t i = 0; tensor->type == ONNX_BOOL && i < tensor->elements; i++) {
        bytes[i] = bytes[i] != 0;
    }
}

/* ---------------------------------------------------------------- in another file */

static enum onnx_status read_file(const struct onnx_tensor *from, const char *path,
                                  struct own_tensor *to, struct problem *problem)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int64_t done = 0;
    if (file < 0) {
        problem_set(problem, "weights \"%s\" lie in \"%s\", which cannot be opened: %s",
                    onnx_label(from->name).text, onnx_label(from->path).text, strerror(errno));
        return ONNX_PATH;
    }
    while (done < from->bytes) {
        const ssize_t count = pread(file, (uint8_t *)to->to + done, (size_t)(from->bytes - done),
                                    (off_t)(from->offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        done += count;
    }
    (void)close(file); /* it was only read */
    if (done < from->bytes) {
        problem_set(problem, "weights \"%s\" end at byte %lld, and \"%s\" ends before",
                    onnx_label(from->name).text, (long long)(from->offset + from->bytes),
                    onnx_label(from->path).text);
        return ONNX_WEIGHTS;
    }
    return ONNX_OK;
}

static enum onnx_status load_external(const struct onnx_tensor *from, const char *folder,
                                      struct own_tensor *to, struct problem *problem)
{
    char path[PATH_SIZE];
    const int size = folder == NULL ? -1
                                    : snprintf(path, sizeof path, "%s/%.*s", folder,
                                               (int)from->path.size, (const char *)from->path.at);
    if (size < 0 || size >= PATH_SIZE) {
        problem_set(problem, "weights \"%s\" lie in \"%s\", which is not there",
                    onnx_label(from->name).text, onnx_label(from->path).text);
        return ONNX_PATH;
    }
    return read_file(from, path, to, problem);
}

/* ---------------------------------------------------------------- both */

/* Copies the elements from where they lie: another file, one piece of bytes, or lists. */
static enum onnx_status fill(const struct onnx_tensor *from, const char *folder,
                             struct onnx_span raw, struct own_tensor *tensor,
                             struct problem *problem)
{
    if (from->is_external) {
        return load_external(from, folder, tensor, problem);
    }
    if (raw.at != NULL) {
        memcpy(tensor->to, raw.at, raw.size);
        return ONNX_OK;
    }
    if (!copy_lists(from, tensor)) {
        problem_set(problem, "the elements of weights \"%s\" are wrong",
                    onnx_label(from->name).text);
        return ONNX_WEIGHTS;
    }
    return ONNX_OK;
}

enum onnx_status own_weights_load(const struct onnx_tensor *from, const char *folder,
                                  struct own_memory *memory, struct own_tensor *ret_tensor,
                                  struct problem *ret_problem)
{
    struct own_tensor tensor = {
        .type = from->type, .rank = from->rank, .elements = from->elements, .bytes = from->bytes};
    memcpy(tensor.dims, from->dims, sizeof tensor.dims);
    if (!own_type_is_held(from->type)) {
        problem_set(ret_problem, "weights \"%s\" are %s, which is not computed here",
                    onnx_label(from->name).text, onnx_type_name(from->type));
        return ONNX_UNSUPPORTED;
    }
    const struct onnx_span raw = from->is_external ? (struct onnx_span){NULL, 0} : raw_of(from);
    const bool is_aligned = (uintptr_t)raw.at % (uintptr_t)onnx_type_bytes(from->type) == 0;
    if (raw.at != NULL && is_aligned && from->type != ONNX_BOOL) {
        tensor.at = raw.at;
        *ret_tensor = tensor;
        return ONNX_OK;
    }
    if (!own_tensor_take(memory, &tensor)) {
        problem_set(ret_problem,
                    "weights \"%s\" need %lld bytes more than the %lld in use, and the bound is "
                    "%lld",
                    onnx_label(from->name).text, (long long)from->bytes, (long long)memory->used,
                    (long long)memory->limit);
        return ONNX_NO_MEMORY;
    }
    const enum onnx_status status = fill(from, folder, raw, &tensor, ret_problem);
    if (status != ONNX_OK) {
        own_tensor_drop(&tensor);
        return status;
    }
    clean(&tensor);
    tensor.to = NULL;
    *ret_tensor = tensor;
    return ONNX_OK;
}
