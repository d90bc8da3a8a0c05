#include "broker/storage/etcd/proto.h"

#include <string.h>

enum {
    VARINT_BYTES_MAX = 10,
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5,
    WIRE_BITS = 3
};

/* ---- writing */

static size_t varint_size(uint64_t value)
{
    size_t size = 1;
    while (value >= 0x80) {
        value >>= 7;
        size++;
    }
    return size;
}

static void put_varint(uint8_t *bytes, uint64_t value)
{
    while (value >= 0x80) {
        *bytes++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *bytes = (uint8_t)value;
}

static void add_varint(struct proto_writer *out, uint64_t value)
{
    const size_t size = varint_size(value);
    if (out->is_full || out->capacity - out->length < size) {
        out->is_full = true;
        return;
    }
    put_varint(out->bytes + out->length, value);
    out->length += size;
}

static void add_key(struct proto_writer *out, unsigned field, unsigned wire)
{
    add_varint(out, (uint64_t)field << WIRE_BITS | wire);
}

void proto_varint(struct proto_writer *out, unsigned field, uint64_t value)
{
    add_key(out, field, WIRE_VARINT);
    add_varint(out, value);
}

void proto_bytes(struct proto_writer *out, unsigned field, const void *bytes, size_t length)
{
    add_key(out, field, WIRE_BYTES);
    add_varint(out, length);
    if (out->is_full || out->capacity - out->length < length) {
        out->is_full = true;
        return;
    }
    if (length > 0) {
        memcpy(out->bytes + out->length, bytes, length);
    }
    out->length += length;
}

size_t proto_begin(struct proto_writer *out, unsigned field)
{
    add_key(out, field, WIRE_BYTES);
    return out->length;
}

void proto_end(struct proto_writer *out, size_t mark)
{
    if (out->is_full) {
        return;
    }
    const size_t length = out->length - mark;
    const size_t size = varint_size(length);
    if (out->capacity - out->length < size) {
        out->is_full = true;
        return;
    }
    memmove(out->bytes + mark + size, out->bytes + mark, length);
    put_varint(out->bytes + mark, length);
    out->length += size;
}

/* ---- reading */

struct proto_reader proto_over(const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    return (struct proto_reader){.at = at, .end = length == 0 ? at : at + length};
}

static bool take_varint(struct proto_reader *in, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < VARINT_BYTES_MAX && in->at < in->end; i++) {
        const uint8_t byte = *in->at++;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if ((byte & 0x80) == 0) {
            *ret_value = value;
            return true;
        }
    }
    in->is_broken = true;
    return false;
}

static bool skip(struct proto_reader *in, size_t length)
{
    if ((size_t)(in->end - in->at) < length) {
        in->is_broken = true;
        return false;
    }
    in->at += length;
    return true;
}

static bool take_bytes(struct proto_reader *in, struct proto_field *ret_field)
{
    uint64_t length;
    if (!take_varint(in, &length) || length > (uint64_t)(in->end - in->at)) {
        in->is_broken = true;
        return false;
    }
    ret_field->kind = PROTO_BYTES;
    ret_field->bytes = in->at;
    ret_field->length = (size_t)length;
    in->at += length;
    return true;
}

bool proto_next(struct proto_reader *in, struct proto_field *ret_field)
{
    uint64_t key;
    if (in->is_broken || in->at == in->end || !take_varint(in, &key)) {
        return false;
    }
    const uint64_t number = key >> WIRE_BITS;
    if (number == 0 || number > UINT32_MAX) {
        in->is_broken = true;
        return false;
    }
    *ret_field = (struct proto_field){.number = (unsigned)number, .kind = PROTO_SKIPPED};
    switch (key & ((1U << WIRE_BITS) - 1)) {
    case WIRE_VARINT:
        ret_field->kind = PROTO_VARINT;
        return take_varint(in, &ret_field->value);
    case WIRE_FIXED64:
        return skip(in, 8);
    case WIRE_BYTES:
        return take_bytes(in, ret_field);
    case WIRE_FIXED32:
        return skip(in, 4);
    default:
        in->is_broken = true;
        return false;
    }
}
