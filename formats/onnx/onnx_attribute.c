/* This file reads AttributeProto. An attribute has one value, or a list that stays in
 * the file. */
#include "formats/onnx/onnx_internal.h"

#include <string.h>

enum {
    NAME = 1,
    REAL = 2,
    INTEGER = 3,
    TEXT = 4,
    TENSOR = 5,
    GRAPH = 6,
    REALS = 7,
    INTEGERS = 8,
    GRAPHS = 11
};

/* Takes one field. A field of another kind than onnx.proto's is wrong. */
static bool take(const struct onnx_field *field, struct onnx_attribute *attribute)
{
    const uint32_t low = (uint32_t)field->value;
    switch (field->number) {
    case NAME:
        attribute->name = field->bytes;
        return field->kind == ONNX_WIRE_BYTES;
    case REAL:
        attribute->has_real = true;
        memcpy(&attribute->real, &low, sizeof attribute->real);
        return field->kind == ONNX_WIRE_32;
    case INTEGER:
        attribute->has_integer = true;
        attribute->integer = (int64_t)field->value;
        return field->kind == ONNX_WIRE_NUMBER;
    case TEXT:
        attribute->has_text = true;
        attribute->text = field->bytes;
        return field->kind == ONNX_WIRE_BYTES;
    case TENSOR:
        attribute->has_tensor = true;
        attribute->tensor = field->bytes;
        return field->kind == ONNX_WIRE_BYTES;
    case GRAPH:
    case GRAPHS:
        attribute->has_graph = true;
        return field->kind == ONNX_WIRE_BYTES;
    default:
        return true;
    }
}

bool onnx_attribute_read(struct onnx_reading *reading, struct onnx_span message,
                         const struct onnx_node *node, struct onnx_attribute *ret_attribute)
{
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    *ret_attribute = (struct onnx_attribute){.message = message};
    while (onnx_wire_next(&wire, &field)) {
        if (!take(&field, ret_attribute)) {
            return onnx_fault(reading, ONNX_MALFORMED, "an attribute of node \"%s\" (%s) is wrong",
                              onnx_label(node->name).text, onnx_label(node->operator).text);
        }
    }
    if (wire.is_bad) {
        return onnx_fault(reading, ONNX_MALFORMED, "an attribute of node \"%s\" (%s) is cut short",
                          onnx_label(node->name).text, onnx_label(node->operator).text);
    }
    return onnx_name_is_good(reading, ret_attribute->name, "an attribute");
}

const struct onnx_attribute *onnx_attribute_of(const struct onnx_model *model,
                                               const struct onnx_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const struct onnx_attribute *attribute = &model->attributes[node->first_attribute + i];
        if (onnx_span_is(attribute->name, name)) {
            return attribute;
        }
    }
    return NULL;
}

bool onnx_attribute_integers(const struct onnx_attribute *attribute, size_t most,
                             int64_t *ret_values, size_t *ret_count)
{
    struct onnx_wire wire = onnx_wire_over(attribute->message);
    struct onnx_field field;
    *ret_count = 0;
    while (onnx_wire_next(&wire, &field)) {
        struct onnx_wire packed = onnx_wire_over(field.bytes);
        uint64_t value = field.value;
        if (field.number != INTEGERS) {
            continue;
        }
        bool is_there = field.kind == ONNX_WIRE_NUMBER || onnx_wire_number(&packed, &value);
        while (is_there) {
            if (*ret_count == most) {
                return false;
            }
            ret_values[(*ret_count)++] = (int64_t)value;
            is_there = onnx_wire_number(&packed, &value);
        }
        if (packed.is_bad) {
            return false;
        }
    }
    return true;
}

size_t onnx_attribute_reals(const struct onnx_attribute *attribute)
{
    struct onnx_wire wire = onnx_wire_over(attribute->message);
    struct onnx_field field;
    size_t count = 0;
    while (onnx_wire_next(&wire, &field)) {
        if (field.number == REALS && field.kind == ONNX_WIRE_BYTES && field.bytes.size % 4 != 0) {
            return SIZE_MAX;
        }
        count += field.number != REALS ? 0 : field.kind == ONNX_WIRE_32 ? 1 : field.bytes.size / 4;
    }
    return count;
}
