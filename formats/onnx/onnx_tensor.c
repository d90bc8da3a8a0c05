/* This file reads TensorProto, which is the header of weights and where their bytes lie. It decodes
 * small tensors of numbers. The bytes of weights are counted and not copied. */
#include "formats/onnx/onnx_internal.h"

#include "base/checked.h"

#include <string.h>

/* Numbers of fields in onnx.proto. */
enum {
    DIMS = 1,
    DATA_TYPE = 2,
    SEGMENT = 3,
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    STRING_DATA = 6,
    INT64_DATA = 7,
    NAME = 8,
    RAW_DATA = 9,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11,
    EXTERNAL_DATA = 13,
    DATA_LOCATION = 14,
    KEY = 1,
    VALUE = 2,
    IS_EXTERNAL = 1,
};

/* The elements that a tensor carries, counted before they are compared with its header. */
struct carried {
    size_t elements; /* in the typed lists */
    size_t raw_bytes;
    bool has_raw, has_list;
    uint32_t list;  /* number of the field of the list */
    int64_t length; /* external: bytes; -1: it does not say */
};

static bool add_dim(struct onnx_reading *reading, struct onnx_tensor *tensor, uint64_t value,
                    const char *what)
{
    if (tensor->rank == ONNX_RANK_MOST) {
        return onnx_fault(reading, ONNX_TOO_LARGE, "%s has more than %d dims", what,
                          ONNX_RANK_MOST);
    }
    if (value > (uint64_t)ONNX_DIM_MOST) {
        return onnx_fault(reading, ONNX_WEIGHTS, "%s has a dim of %lld; a dim is 0 to 2^40", what,
                          (long long)(int64_t)value);
    }
    tensor->dims[tensor->rank++] = (int64_t)value;
    return true;
}

/* A list of numbers is packed, or one number a field. */
static bool read_dims(struct onnx_reading *reading, struct onnx_tensor *tensor,
                      const struct onnx_field *field, const char *what)
{
    if (field->kind == ONNX_WIRE_NUMBER) {
        return add_dim(reading, tensor, field->value, what);
    }
    struct onnx_wire packed = onnx_wire_over(field->bytes);
    uint64_t value = 0;
    while (onnx_wire_number(&packed, &value)) {
        if (!add_dim(reading, tensor, value, what)) {
            return false;
        }
    }
    return packed.is_bad || field->kind != ONNX_WIRE_BYTES
               ? onnx_fault(reading, ONNX_MALFORMED, "the dims of %s are cut short", what)
               : true;
}

/* Counts one field of a typed list. */
static bool count_list(struct onnx_reading *reading, const struct onnx_field *field,
                       const char *what, struct carried *carried)
{
    static const size_t sizes[UINT64_DATA + 1] = {[FLOAT_DATA] = 4, [DOUBLE_DATA] = 8};
    const size_t size = sizes[field->number];
    size_t count = 1;
    if (carried->has_list && carried->list != field->number) {
        return onnx_fault(reading, ONNX_WEIGHTS, "%s has its elements in two lists", what);
    }
    carried->has_list = true;
    carried->list = field->number;
    if (field->kind == ONNX_WIRE_BYTES && field->number != STRING_DATA) {
        count = size > 0 ? field->bytes.size / size : onnx_wire_count(field->bytes);
        if (count == SIZE_MAX || (size > 0 && field->bytes.size % size != 0)) {
            return onnx_fault(reading, ONNX_MALFORMED, "the elements of %s are cut short", what);
        }
    }
    carried->elements += count;
    return true;
}

/* Reads a decimal number of at most 18 digits. */
static bool read_decimal(struct onnx_span text, int64_t *ret_value)
{
    int64_t value = 0;
    if (text.size == 0 || text.size > 18) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') {
            return false;
        }
        value = 10 * value + (text.at[i] - '0');
    }
    *ret_value = value;
    return true;
}

/* Reads one key and value of where a tensor's bytes lie. */
static bool read_external(struct onnx_reading *reading, struct onnx_tensor *tensor,
                          struct onnx_span message, const char *what, struct carried *carried)
{
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    struct onnx_span key = {NULL, 0};
    struct onnx_span value = {NULL, 0};
    while (onnx_wire_next(&wire, &field)) {
        if (field.kind == ONNX_WIRE_BYTES) {
            key = field.number == KEY ? field.bytes : key;
            value = field.number == VALUE ? field.bytes : value;
        }
    }
    if (wire.is_bad) {
        return onnx_fault(reading, ONNX_MALFORMED, "where %s lies is cut short", what);
    }
    if (onnx_span_is(key, "location")) {
        tensor->path = value;
    }
    if ((onnx_span_is(key, "offset") && !read_decimal(value, &tensor->offset)) ||
        (onnx_span_is(key, "length") && !read_decimal(value, &carried->length))) {
        return onnx_fault(reading, ONNX_WEIGHTS, "the %s of %s in its file is \"%s\", no number",
                          onnx_label(key).text, what, onnx_label(value).text);
    }
    return true;
}

/* Returns true when a path stays in the model's folder, as it is written. */
static bool path_is_inside(struct onnx_span path)
{
    size_t begin = 0;
    if (path.size == 0 || path.at[0] == '/') {
        return false;
    }
    for (size_t i = 0; i <= path.size; i++) {
        if (i < path.size && path.at[i] == '\\') {
            return false; /* a folder's mark on other systems */
        }
        if (i == path.size || path.at[i] == '/') {
            const struct onnx_span part = {path.at + begin, i - begin};
            if (part.size == 0 || onnx_span_is(part, ".") || onnx_span_is(part, "..")) {
                return false;
            }
            begin = i + 1;
        }
    }
    return true;
}

static bool check_external(struct onnx_reading *reading, const struct onnx_tensor *tensor,
                           const char *what, const struct carried *carried)
{
    int64_t end = 0;
    if (!path_is_inside(tensor->path)) {
        return onnx_fault(reading, ONNX_PATH,
                          "%s lies in \"%s\"; the path of other data is relative, without \"..\"",
                          what, onnx_label(tensor->path).text);
    }
    if (!onnx_name_is_good(reading, tensor->path, "the file of other data")) {
        return false;
    }
    if (carried->has_list || carried->has_raw) {
        return onnx_fault(reading, ONNX_WEIGHTS, "%s lies in a file of its own and in this one",
                          what);
    }
    if (carried->length >= 0 && carried->length != tensor->bytes) {
        return onnx_fault(reading, ONNX_WEIGHTS, "%s has %lld bytes by its dims and %lld in \"%s\"",
                          what, (long long)tensor->bytes, (long long)carried->length,
                          onnx_label(tensor->path).text);
    }
    return checked_add(tensor->offset, tensor->bytes, &end)
               ? true
               : onnx_fault(reading, ONNX_OVERFLOW, "%s ends beyond 2^63 bytes", what);
}

/* Returns the list in which onnx.proto puts elements of a type; a complex element is two. */
static uint32_t list_of(enum onnx_type type)
{
    switch (type) {
    case ONNX_FLOAT:
    case ONNX_COMPLEX64:
        return FLOAT_DATA;
    case ONNX_DOUBLE:
    case ONNX_COMPLEX128:
        return DOUBLE_DATA;
    case ONNX_INT64:
        return INT64_DATA;
    case ONNX_UINT32:
    case ONNX_UINT64:
        return UINT64_DATA;
    case ONNX_STRING:
        return STRING_DATA;
    case ONNX_UINT8:
    case ONNX_INT8:
    case ONNX_UINT16:
    case ONNX_INT16:
    case ONNX_INT32:
    case ONNX_BOOL:
    case ONNX_FLOAT16:
    case ONNX_BFLOAT16:
    case ONNX_UNDEFINED:
    case ONNX_TYPES:
        break;
    }
    return INT32_DATA;
}

/* Compares what the header says with what is there. */
static bool check_carried(struct onnx_reading *reading, const struct onnx_tensor *tensor,
                          const char *what, const struct carried *carried)
{
    const bool is_complex = tensor->type == ONNX_COMPLEX64 || tensor->type == ONNX_COMPLEX128;
    const uint64_t elements = (uint64_t)tensor->elements * (is_complex ? 2 : 1);
    if (carried->has_raw && carried->has_list) {
        return onnx_fault(reading, ONNX_WEIGHTS, "%s has its elements twice", what);
    }
    if (carried->has_raw &&
        (tensor->type == ONNX_STRING || carried->raw_bytes != (uint64_t)tensor->bytes)) {
        return onnx_fault(reading, ONNX_WEIGHTS,
                          "%s has %lld bytes by its dims, and the file has %zu of it", what,
                          (long long)tensor->bytes, carried->raw_bytes);
    }
    if (carried->has_list && carried->list != list_of(tensor->type)) {
        return onnx_fault(reading, ONNX_WEIGHTS, "%s is %s, and its elements are of another type",
                          what, onnx_type_name(tensor->type));
    }
    if (!carried->has_raw && carried->elements != elements) {
        return onnx_fault(reading, ONNX_WEIGHTS,
                          "%s has %lld elements by its dims, and the file has %zu of it", what,
                          (long long)tensor->elements, carried->elements);
    }
    return true;
}

/* Computes elements and bytes, without a product that wraps. */
static bool measure(struct onnx_reading *reading, struct onnx_tensor *tensor, const char *what)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (!checked_mul(elements, tensor->dims[i], &elements)) {
            return onnx_fault(reading, ONNX_WEIGHTS, "%s has more than 2^63 - 1 elements", what);
        }
    }
    if (!checked_mul(elements, onnx_type_bytes(tensor->type), &tensor->bytes) ||
        tensor->bytes > ONNX_TENSOR_BYTES || elements > ONNX_TENSOR_BYTES) {
        return onnx_fault(reading, ONNX_WEIGHTS, "%s has more than 2^46 bytes", what);
    }
    tensor->elements = elements;
    return true;
}

static bool read_type(struct onnx_reading *reading, struct onnx_tensor *tensor, uint64_t value,
                      const char *what)
{
    if (value == ONNX_UNDEFINED || value >= ONNX_TYPES) {
        return onnx_fault(reading, ONNX_UNSUPPORTED, "%s has elements of the unknown type %llu",
                          what, (unsigned long long)value);
    }
    tensor->type = (enum onnx_type)value;
    return true;
}

static bool read_field(struct onnx_reading *reading, struct onnx_tensor *tensor,
                       const struct onnx_field *field, const char *what, struct carried *carried)
{
    switch (field->number) {
    case DIMS:
        return read_dims(reading, tensor, field, what);
    case DATA_TYPE:
        return read_type(reading, tensor, field->value, what);
    case SEGMENT:
        return onnx_fault(reading, ONNX_UNSUPPORTED, "%s is a segment of a tensor", what);
    case FLOAT_DATA:
    case INT32_DATA:
    case STRING_DATA:
    case INT64_DATA:
    case DOUBLE_DATA:
    case UINT64_DATA:
        return count_list(reading, field, what, carried);
    case NAME:
        tensor->name = field->bytes;
        return true;
    case RAW_DATA:
        carried->has_raw = true;
        carried->raw_bytes = field->bytes.size;
        return true;
    case EXTERNAL_DATA:
        return read_external(reading, tensor, field->bytes, what, carried);
    case DATA_LOCATION:
        tensor->is_external = field->value == IS_EXTERNAL;
        return true;
    default:
        return true;
    }
}

/* The name comes first, so that every message can say it. */
static struct onnx_span name_of(struct onnx_span message)
{
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    struct onnx_span name = {NULL, 0};
    while (onnx_wire_next(&wire, &field)) {
        name = field.number == NAME && field.kind == ONNX_WIRE_BYTES ? field.bytes : name;
    }
    return name;
}

bool onnx_tensor_head(struct onnx_reading *reading, struct onnx_span message, const char *kind,
                      struct onnx_tensor *ret_tensor)
{
    struct onnx_wire wire = onnx_wire_over(message);
    struct onnx_field field;
    struct carried carried = {.length = -1};
    char what[ONNX_LABEL_SIZE + 32];
    *ret_tensor = (struct onnx_tensor){.message = message};
    (void)snprintf(what, sizeof what, "%s \"%s\"", kind, onnx_label(name_of(message)).text);
    while (onnx_wire_next(&wire, &field)) {
        if (!read_field(reading, ret_tensor, &field, what, &carried)) {
            return false;
        }
    }
    if (wire.is_bad) {
        return onnx_fault(reading, ONNX_MALFORMED, "%s is cut short", what);
    }
    if (ret_tensor->type == ONNX_UNDEFINED) {
        return onnx_fault(reading, ONNX_UNSUPPORTED, "%s says no type of elements", what);
    }
    if (!measure(reading, ret_tensor, what)) {
        return false;
    }
    return ret_tensor->is_external ? check_external(reading, ret_tensor, what, &carried)
                                   : check_carried(reading, ret_tensor, what, &carried);
}

enum onnx_status onnx_tensor_read(struct onnx_span message, struct onnx_tensor *ret_tensor,
                                  struct problem *ret_problem)
{
    struct onnx_reading reading = {.problem = ret_problem};
    (void)onnx_tensor_head(&reading, message, "tensor", ret_tensor);
    return reading.status;
}

/* ---------------------------------------------------------------- small tensors */

/* The elements of a tensor, one after the other, wherever they stand. */
struct elements {
    struct onnx_wire message, list;
    uint32_t from; /* number of the field */
    size_t size;   /* bytes of an element in the list; 0: a number of the wire */
};

static struct elements elements_of(const struct onnx_tensor *tensor)
{
    struct elements elements = {.message = onnx_wire_over(tensor->message),
                                .list = onnx_wire_over((struct onnx_span){NULL, 0}),
                                .from = list_of(tensor->type)};
    struct onnx_wire wire = elements.message;
    struct onnx_field field;
    elements.size = elements.from == FLOAT_DATA ? 4 : elements.from == DOUBLE_DATA ? 8 : 0;
    while (onnx_wire_next(&wire, &field)) {
        if (field.number == RAW_DATA) {
            elements.from = RAW_DATA;
            elements.size = (size_t)onnx_type_bytes(tensor->type);
        }
    }
    return elements;
}

static bool next_in_list(struct elements *elements, uint64_t *ret_bits)
{
    uint64_t bits = 0;
    if (elements->size == 0) {
        return onnx_wire_number(&elements->list, ret_bits);
    }
    if ((size_t)(elements->list.end - elements->list.at) < elements->size) {
        return false;
    }
    for (size_t i = 0; i < elements->size; i++) {
        bits |= (uint64_t)elements->list.at[i] << (8 * i);
    }
    elements->list.at += elements->size;
    *ret_bits = bits;
    return true;
}

static bool next_element(struct elements *elements, uint64_t *ret_bits)
{
    struct onnx_field field;
    while (!next_in_list(elements, ret_bits)) {
        if (!onnx_wire_next(&elements->message, &field)) {
            return false;
        }
        if (field.number == elements->from && field.kind != ONNX_WIRE_BYTES) {
            *ret_bits = field.value;
            return true;
        }
        if (field.number == elements->from) {
            elements->list = onnx_wire_over(field.bytes);
        }
    }
    return true;
}

static float real_of(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float value = 0;
    memcpy(&value, &low, sizeof value);
    return value;
}

/* Returns false for a type whose elements are no whole numbers. */
static bool integer_of(enum onnx_type type, uint64_t bits, int64_t *ret_value)
{
    const float real = real_of(bits);
    switch (type) {
    case ONNX_INT64:
    case ONNX_UINT64:
        *ret_value = (int64_t)bits;
        return type == ONNX_INT64 || bits <= INT64_MAX;
    case ONNX_INT32:
        *ret_value = (int32_t)(uint32_t)bits;
        return true;
    case ONNX_INT16:
        *ret_value = (int16_t)(uint16_t)bits;
        return true;
    case ONNX_INT8:
        *ret_value = (int8_t)(uint8_t)bits;
        return true;
    case ONNX_UINT8:
    case ONNX_UINT16:
    case ONNX_UINT32:
    case ONNX_BOOL:
        *ret_value = (int64_t)(uint32_t)bits;
        return true;
    case ONNX_FLOAT:
        if (real > -1e9F && real < 1e9F && (float)(int64_t)real == real) {
            *ret_value = (int64_t)real;
            return true;
        }
        return false;
    default:
        return false;
    }
}

bool onnx_tensor_integers(const struct onnx_tensor *tensor, size_t most, int64_t *ret_values)
{
    struct elements elements = elements_of(tensor);
    if (tensor->is_external || tensor->elements > (int64_t)most || tensor->elements < 0) {
        return false;
    }
    for (size_t i = 0; i < (size_t)tensor->elements; i++) {
        uint64_t bits = 0;
        if (!next_element(&elements, &bits) || !integer_of(tensor->type, bits, &ret_values[i])) {
            return false;
        }
    }
    return true;
}

bool onnx_tensor_reals(const struct onnx_tensor *tensor, size_t most, float *ret_values)
{
    struct elements elements = elements_of(tensor);
    if (tensor->is_external || tensor->type != ONNX_FLOAT || tensor->elements > (int64_t)most) {
        return false;
    }
    for (size_t i = 0; i < (size_t)tensor->elements; i++) {
        uint64_t bits = 0;
        if (!next_element(&elements, &bits)) {
            return false;
        }
        ret_values[i] = real_of(bits);
    }
    return true;
}
