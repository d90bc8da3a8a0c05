#include "protocol/codec_check.h"

#include "protocol/route/endpoint.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct walk { /* a position in one message's bytes */
    const uint8_t *bytes;
    size_t length;
    size_t at;
};

/* Puts "parent." before the field that a nested check named. A path that is too long loses its
 * end. */
static void prefix_field(struct codec_error *ret_error, const char *parent)
{
    char path[2 * sizeof ret_error->field];
    const char *dot = ret_error->field[0] == '\0' ? "" : ".";
    (void)snprintf(path, sizeof path, "%.63s%s%s", parent, dot, ret_error->field);
    memcpy(ret_error->field, path, sizeof ret_error->field - 1);
    ret_error->field[sizeof ret_error->field - 1] = '\0';
}

/* Reads at most ten bytes and 64 bits, never past the end. */
static bool walk_varint(struct walk *walk, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (walk->at == walk->length) {
            return false;
        }
        uint8_t byte = walk->bytes[walk->at++];
        if (shift == 63 && byte > 1) {
            return false;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool walk_skip(struct walk *walk, size_t length)
{
    if (length > walk->length - walk->at) {
        return false;
    }
    walk->at += length;
    return true;
}

static bool walk_view(struct walk *walk, const uint8_t **ret_bytes, size_t *ret_length)
{
    uint64_t length;
    if (!walk_varint(walk, &length) || length > walk->length - walk->at) {
        return false;
    }
    *ret_bytes = walk->bytes + walk->at;
    *ret_length = (size_t)length;
    walk->at += (size_t)length;
    return true;
}

static bool walk_unknown(struct walk *walk, unsigned wire)
{
    uint64_t value;
    const uint8_t *bytes;
    size_t length;
    switch (wire) {
    case WIRE_VARINT:
        return walk_varint(walk, &value);
    case WIRE_64:
        return walk_skip(walk, 8);
    case WIRE_BYTES:
        return walk_view(walk, &bytes, &length);
    case WIRE_32:
        return walk_skip(walk, 4);
    default: /* two group types, long out of use, and two that do not exist */
        return false;
    }
}

/* Reads one code point of well-formed UTF-8 (RFC 3629: shortest form, no surrogates). Returns its
 * bytes, or 0 when the text is not well formed. */
static size_t utf8_next(const uint8_t *bytes, size_t length, uint32_t *ret_point)
{
    static const uint32_t least_of_size[5] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t first = bytes[0];
    if (first < 0x80) {
        *ret_point = first;
        return 1;
    }
    size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length < size) {
        return 0;
    }
    uint32_t point = first & (0x7fU >> size);
    for (size_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
        point = point << 6 | (bytes[i] & 0x3fU);
    }
    if (point < least_of_size[size] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) {
        return 0;
    }
    *ret_point = point;
    return size;
}

static bool point_allowed(enum rule_kind kind, uint32_t point)
{
    bool is_control = point < 0x20 || (point >= 0x7f && point < 0xa0);
    bool is_space = point == '\t' || point == '\n' || point == '\r';
    bool is_line_end = point == 0x2028 || point == 0x2029;
    bool is_bidirectional = point == 0x061c || point == 0x200e || point == 0x200f ||
                            (point >= 0x202a && point <= 0x202e) ||
                            (point >= 0x2066 && point <= 0x2069);
    switch (kind) {
    case RULE_NAME:
        return !is_control && !is_line_end && !is_bidirectional;
    case RULE_LINE:
        return !is_control && !is_line_end;
    case RULE_TEXT:
        return !is_control || is_space;
    case RULE_NUMBER:
    case RULE_BYTES:
    case RULE_ENDPOINT:
    case RULE_NESTED:
    case RULE_PACKED:
        break;
    }
    return false;
}

static bool check_text(const struct rule *rule, const char *name, const uint8_t *bytes,
                       size_t length, struct codec_error *ret_error)
{
    size_t at = 0;
    while (at < length) {
        uint32_t point = bytes[at];
        size_t size = utf8_next(bytes + at, length - at, &point);
        if (size == 0 || !point_allowed(rule->kind, point)) {
            return codec_check_refuse(ret_error, name, (int64_t)point, 0);
        }
        at += size;
    }
    return true;
}

/* Decodes the number of a varint. Returns false when the field's type cannot hold it. Unsigned
 * numbers above INT64_MAX become INT64_MAX, which only an unbounded rule allows. */
static bool number_of(ProtobufCType type, uint64_t varint, int64_t *ret_number)
{
    int64_t zigzag = (int64_t)(varint >> 1) ^ -(int64_t)(varint & 1);
    int64_t unsigned_number = varint > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)varint;
    switch (type) {
    case PROTOBUF_C_TYPE_BOOL:
        *ret_number = unsigned_number;
        return varint <= 1;
    case PROTOBUF_C_TYPE_UINT32:
        *ret_number = unsigned_number;
        return varint <= UINT32_MAX;
    case PROTOBUF_C_TYPE_UINT64:
        *ret_number = unsigned_number;
        return true;
    case PROTOBUF_C_TYPE_SINT32:
        *ret_number = zigzag;
        return varint <= UINT32_MAX;
    case PROTOBUF_C_TYPE_SINT64:
        *ret_number = zigzag;
        return true;
    default: /* the schema uses no other numbers: codec_shape_agrees */
        return false;
    }
}

static bool check_number(const struct rule *rule, const ProtobufCFieldDescriptor *field,
                         uint64_t varint, int64_t *ret_number, struct codec_error *ret_error)
{
    int64_t number = varint > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)varint;
    if (!number_of(field->type, varint, &number) || number > rule->most) {
        return codec_check_refuse(ret_error, field->name, number, rule->most);
    }
    if (number < rule->least) {
        return codec_check_refuse(ret_error, field->name, number, rule->least);
    }
    *ret_number = number;
    return true;
}

static bool check_bytes(const struct rule *rule, const ProtobufCFieldDescriptor *field,
                        const uint8_t *bytes, size_t length, struct codec_error *ret_error)
{
    if (rule->kind == RULE_NESTED) {
        if (!codec_check(rule->shape, bytes, length, ret_error)) {
            prefix_field(ret_error, field->name);
            return false;
        }
        return true;
    }
    int64_t size = (int64_t)length;
    if (size < rule->least || size > rule->most) {
        return codec_check_refuse(ret_error, field->name, size,
                                  size < rule->least ? rule->least : rule->most);
    }
    if (rule->kind == RULE_ENDPOINT) {
        return endpoint_is_tcp((const char *)bytes, length) ||
               codec_check_refuse(ret_error, field->name, size, rule->most);
    }
    return rule->kind == RULE_BYTES || check_text(rule, field->name, bytes, length, ret_error);
}

/* Packed numbers stand in one piece, though protobuf would allow several. */
static bool check_packed(const struct rule *rule, const ProtobufCFieldDescriptor *field,
                         struct walk *numbers, uint32_t *ret_count, int64_t *ret_sum,
                         struct codec_error *ret_error)
{
    while (numbers->at < numbers->length) {
        uint64_t varint;
        int64_t number = 0;
        if (*ret_count == rule->count_max) {
            return codec_check_refuse(ret_error, field->name, (int64_t)rule->count_max + 1,
                                      (int64_t)rule->count_max);
        }
        if (!walk_varint(numbers, &varint)) {
            return codec_check_refuse(ret_error, "", 0, 0);
        }
        if (!check_number(rule, field, varint, &number, ret_error)) {
            return false;
        }
        *ret_count += 1;
        *ret_sum += number; /* no overflow: uint32 numbers, as many as fit a body */
    }
    return true;
}

static bool check_field(const struct shape *shape, unsigned index, unsigned wire, struct walk *walk,
                        struct sighting *sighting, struct codec_error *ret_error)
{
    const struct rule *rule = &shape->rules[index];
    const ProtobufCFieldDescriptor *field = &shape->descriptor->fields[index];
    uint32_t count_max = rule->count_max == 0 || rule->kind == RULE_PACKED ? 1 : rule->count_max;
    if (sighting->counts[index] >= count_max) {
        return codec_check_refuse(ret_error, field->name, (int64_t)count_max + 1,
                                  (int64_t)count_max);
    }
    sighting->counts[index] += rule->kind != RULE_PACKED;

    if (rule->kind == RULE_NUMBER) {
        uint64_t varint;
        if (wire != WIRE_VARINT || !walk_varint(walk, &varint)) {
            return codec_check_refuse(ret_error, "", 0, 0);
        }
        return check_number(rule, field, varint, &sighting->numbers[index], ret_error);
    }
    const uint8_t *bytes;
    size_t length;
    if (wire != WIRE_BYTES || !walk_view(walk, &bytes, &length)) {
        return codec_check_refuse(ret_error, "", 0, 0);
    }
    if (rule->kind == RULE_PACKED) {
        struct walk numbers = {.bytes = bytes, .length = length};
        return check_packed(rule, field, &numbers, &sighting->counts[index],
                            &sighting->numbers[index], ret_error);
    }
    return check_bytes(rule, field, bytes, length, ret_error);
}

/* Returns the index of the rule for the field number, or rule_count for an unknown field. */
static unsigned rule_of(const struct shape *shape, unsigned number)
{
    const ProtobufCFieldDescriptor *fields = shape->descriptor->fields;
    unsigned index = number < shape->rule_count ? number : shape->rule_count;
    /* The schema skips some numbers before this one. */
    while (index > 0 && fields[index - 1].id > number) {
        index--;
    }
    return index > 0 && fields[index - 1].id == number ? index - 1 : shape->rule_count;
}

bool codec_check(const struct shape *shape, const uint8_t *bytes, size_t length,
                 struct codec_error *ret_error)
{
    struct walk walk = {.bytes = bytes, .length = length};
    struct sighting sighting = {0};
    while (walk.at < walk.length) {
        uint64_t tag;
        if (!walk_varint(&walk, &tag) || tag > UINT32_MAX || tag >> 3 == 0) {
            return codec_check_refuse(ret_error, "", 0, 0);
        }
        unsigned rule = rule_of(shape, (unsigned)(tag >> 3));
        unsigned wire = (unsigned)(tag & 7);
        if (rule == shape->rule_count) {
            if (!walk_unknown(&walk, wire)) {
                return codec_check_refuse(ret_error, "", 0, 0);
            }
        } else if (!check_field(shape, rule, wire, &walk, &sighting, ret_error)) {
            return false;
        }
    }
    for (unsigned i = 0; i < shape->rule_count; i++) {
        const ProtobufCFieldDescriptor *field = &shape->descriptor->fields[i];
        if (field->label == PROTOBUF_C_LABEL_REQUIRED && sighting.counts[i] == 0) {
            return codec_check_refuse(ret_error, field->name, 0, 1);
        }
    }
    return shape->check == NULL || shape->check(&sighting, ret_error);
}

static bool rule_agrees(const struct rule *rule, const ProtobufCFieldDescriptor *field)
{
    bool is_repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    if (is_repeated != (rule->count_max > 0) || rule->least > rule->most) {
        return false;
    }
    switch (rule->kind) {
    case RULE_NUMBER:
        return !is_repeated &&
               (field->type == PROTOBUF_C_TYPE_BOOL || field->type == PROTOBUF_C_TYPE_UINT32 ||
                field->type == PROTOBUF_C_TYPE_UINT64 || field->type == PROTOBUF_C_TYPE_SINT32 ||
                field->type == PROTOBUF_C_TYPE_SINT64);
    case RULE_PACKED:
        return is_repeated && field->type == PROTOBUF_C_TYPE_UINT32 &&
               (field->flags & PROTOBUF_C_FIELD_FLAG_PACKED) != 0;
    case RULE_BYTES:
        return field->type == PROTOBUF_C_TYPE_BYTES;
    case RULE_NAME:
    case RULE_LINE:
    case RULE_TEXT:
    case RULE_ENDPOINT:
        return field->type == PROTOBUF_C_TYPE_STRING;
    case RULE_NESTED:
        return field->type == PROTOBUF_C_TYPE_MESSAGE && rule->shape != NULL &&
               rule->shape->descriptor == field->descriptor && codec_shape_agrees(rule->shape);
    }
    return false;
}

bool codec_shape_agrees(const struct shape *shape)
{
    if (shape->rule_count > SHAPE_FIELDS_MAX || shape->rule_count != shape->descriptor->n_fields) {
        return false;
    }
    for (unsigned i = 0; i < shape->rule_count; i++) {
        const ProtobufCFieldDescriptor *field = &shape->descriptor->fields[i];
        if ((i > 0 && field->id <= field[-1].id) || !rule_agrees(&shape->rules[i], field)) {
            return false;
        }
    }
    return true;
}
