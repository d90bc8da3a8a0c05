/* This file has the words of onnx.h. Statuses and types have names, and names of the file become
 * text for people. */
#include "formats/onnx/onnx_internal.h"

#include "base/text.h"

#include <string.h>

const char *onnx_status_name(enum onnx_status status)
{
    static const char *const names[] = {
        [ONNX_OK] = "OK",
        [ONNX_MALFORMED] = "MALFORMED",
        [ONNX_TOO_LARGE] = "TOO_LARGE",
        [ONNX_VERSION] = "VERSION",
        [ONNX_NAME] = "NAME",
        [ONNX_TWICE] = "TWICE",
        [ONNX_UNMADE] = "UNMADE",
        [ONNX_CYCLE] = "CYCLE",
        [ONNX_ORDER] = "ORDER",
        [ONNX_WEIGHTS] = "WEIGHTS",
        [ONNX_PATH] = "PATH",
        [ONNX_UNSUPPORTED] = "UNSUPPORTED",
        [ONNX_OPERATOR] = "OPERATOR",
        [ONNX_DIM] = "DIM",
        [ONNX_SHAPE] = "SHAPE",
        [ONNX_DYNAMIC] = "DYNAMIC",
        [ONNX_OVERFLOW] = "OVERFLOW",
        [ONNX_NO_MEMORY] = "NO_MEMORY",
    };
    return names[status];
}

const char *onnx_type_name(enum onnx_type type)
{
    static const char *const names[ONNX_TYPES] = {
        "undefined", "float32", "uint8",     "int8",       "uint16",  "int16",
        "int32",     "int64",   "string",    "bool",       "float16", "float64",
        "uint32",    "uint64",  "complex64", "complex128", "bfloat16"};
    return names[type];
}

int64_t onnx_type_bytes(enum onnx_type type)
{
    static const uint8_t bytes[ONNX_TYPES] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2};
    return bytes[type];
}

bool onnx_fault(struct onnx_reading *reading, enum onnx_status status, const char *format, ...)
{
    if (reading->status == ONNX_OK) {
        reading->status = status;
        if (reading->problem != NULL) {
            va_list arguments;
            va_start(arguments, format);
            (void)vsnprintf(reading->problem->text, sizeof reading->problem->text, format,
                            arguments);
            va_end(arguments);
        }
    }
    return false;
}

bool onnx_span_is(struct onnx_span span, const char *text)
{
    return span.size == strlen(text) && (span.size == 0 || memcmp(span.at, text, span.size) == 0);
}

int onnx_span_compare(struct onnx_span span, const char *text)
{
    const size_t size = strlen(text);
    const int order = memcmp(span.at, text, span.size < size ? span.size : size);
    return order != 0 ? order : (span.size > size) - (span.size < size);
}

bool onnx_span_equals(struct onnx_span a, struct onnx_span b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.at, b.at, a.size) == 0);
}

struct onnx_label onnx_label(struct onnx_span name)
{
    struct onnx_label label = {""};
    if (name.size > 0) {
        text_printable((const char *)name.at, name.size, label.text, sizeof label.text);
    }
    return label;
}

struct onnx_span onnx_node_name(const struct onnx_model *model, const struct onnx_node *node)
{
    for (uint32_t i = 0; node->name.size == 0 && i < node->output_count; i++) {
        const uint32_t value = model->makes[node->first_output + i];
        if (value != ONNX_NONE && value < model->value_count) {
            return model->values[value].name;
        }
    }
    return node->name.size > 0 ? node->name : node->operator;
}

struct onnx_label onnx_node_label(const struct onnx_model *model, const struct onnx_node *node)
{
    return onnx_label(onnx_node_name(model, node));
}

bool onnx_name_is_good(struct onnx_reading *reading, struct onnx_span name, const char *what)
{
    if (name.size == 0) {
        return onnx_fault(reading, ONNX_NAME, "%s has no name", what);
    }
    if (name.size > ONNX_NAME_BYTES) {
        return onnx_fault(reading, ONNX_NAME, "the name of %s has %zu bytes; at most %d are read",
                          what, name.size, ONNX_NAME_BYTES);
    }
    if (!text_is_plain((const char *)name.at, name.size)) {
        return onnx_fault(reading, ONNX_NAME, "the name of %s, \"%s\", is not plain UTF-8 text",
                          what, onnx_label(name).text);
    }
    return true;
}
