#include "formats/onnx/onnx_shapes.h"

#include "base/array.h"
#include "base/checked.h"

#include <stdlib.h>

struct onnx_shape_text onnx_shape_text(const struct onnx_fact *fact)
{
    struct onnx_shape_text shape;
    int used = snprintf(shape.text, sizeof shape.text, "%s[", onnx_type_name(fact->type));
    for (uint32_t i = 0; i < fact->rank; i++) {
        used += snprintf(shape.text + used, sizeof shape.text - (size_t)used, "%s%lld",
                         i > 0 ? "," : "", (long long)fact->dims[i]);
    }
    (void)snprintf(shape.text + used, sizeof shape.text - (size_t)used, "]");
    return shape;
}

bool onnx_type_is_integer(enum onnx_type type)
{
    return type == ONNX_INT64 || type == ONNX_INT32 || type == ONNX_BOOL || type == ONNX_UINT8 ||
           type == ONNX_INT8 || type == ONNX_INT16 || type == ONNX_UINT16 || type == ONNX_UINT32;
}

enum onnx_status onnx_shapes_set(struct onnx_fact *fact, enum onnx_type type, uint32_t rank,
                                 const int64_t *dims)
{
    int64_t elements = 1;
    int64_t bytes = 0;
    if (rank > ONNX_RANK_MOST) {
        return ONNX_TOO_LARGE;
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] < 0 || dims[i] > ONNX_DIM_MOST || !checked_mul(elements, dims[i], &elements)) {
            return ONNX_OVERFLOW;
        }
    }
    if (elements > ONNX_TENSOR_BYTES || !checked_mul(elements, onnx_type_bytes(type), &bytes) ||
        bytes > ONNX_TENSOR_BYTES) {
        return ONNX_OVERFLOW;
    }
    *fact = (struct onnx_fact){.is_known = true,
                               .type = type,
                               .rank = rank,
                               .elements = elements,
                               .bytes = bytes,
                               .first_value = ONNX_NONE};
    for (uint32_t i = 0; i < rank; i++) {
        fact->dims[i] = dims[i];
    }
    return ONNX_OK;
}

bool onnx_shapes_keep(struct onnx_shapes *shapes, struct onnx_fact *fact, const int64_t *values)
{
    if (fact->elements > ONNX_VALUES_MOST || !onnx_type_is_integer(fact->type)) {
        return true;
    }
    const size_t first = shapes->value_count;
    for (size_t i = 0; i < (size_t)fact->elements; i++) {
        int64_t *room = array_with_room(shapes->values, shapes->value_count,
                                        &shapes->value_capacity, sizeof *room);
        if (room == NULL) {
            return false;
        }
        shapes->values = room;
        room[shapes->value_count++] = values[i];
    }
    if (shapes->values != NULL) {
        fact->first_value = (uint32_t)first;
    }
    return true;
}

void onnx_shapes_destroy(struct onnx_shapes **self)
{
    struct onnx_shapes *shapes = *self;
    if (shapes != NULL) {
        free(shapes->facts);
        free(shapes->values);
        free(shapes);
        *self = NULL;
    }
}
