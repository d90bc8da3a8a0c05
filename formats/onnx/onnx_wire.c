#include "formats/onnx/onnx_wire.h"

enum { NUMBER_BYTES = 10, CONTINUES = 0x80, LOW_BITS = 7, FIELD_MOST = (1 << 29) - 1 };

struct onnx_wire onnx_wire_over(struct onnx_span span)
{
    static const uint8_t nothing[1];
    const uint8_t *at = span.at != NULL ? span.at : nothing;
    return (struct onnx_wire){.at = at, .end = at + (span.at != NULL ? span.size : 0)};
}

bool onnx_wire_number(struct onnx_wire *wire, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (wire->is_bad || wire->at == wire->end) {
        return false;
    }
    for (unsigned i = 0; i < NUMBER_BYTES && wire->at < wire->end; i++) {
        const uint8_t byte = *wire->at++;
        const uint64_t bits = byte & (CONTINUES - 1U);
        if (i == NUMBER_BYTES - 1 && bits > 1) {
            break; /* more than 64 bits */
        }
        value |= bits << (LOW_BITS * i);
        if ((byte & CONTINUES) == 0) {
            *ret_value = value;
            return true;
        }
    }
    wire->is_bad = true;
    return false;
}

/* Reads so many bytes, the least significant first. */
static bool read_fixed(struct onnx_wire *wire, size_t size, uint64_t *ret_value)
{
    uint64_t value = 0;
    if ((size_t)(wire->end - wire->at) < size) {
        wire->is_bad = true;
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        value |= (uint64_t)wire->at[i] << (8 * i);
    }
    wire->at += size;
    *ret_value = value;
    return true;
}

static bool read_bytes(struct onnx_wire *wire, struct onnx_span *ret_bytes)
{
    uint64_t size = 0;
    if (!onnx_wire_number(wire, &size) || size > (uint64_t)(wire->end - wire->at)) {
        wire->is_bad = true;
        return false;
    }
    *ret_bytes = (struct onnx_span){wire->at, (size_t)size};
    wire->at += size;
    return true;
}

bool onnx_wire_next(struct onnx_wire *wire, struct onnx_field *ret_field)
{
    uint64_t key = 0;
    if (!onnx_wire_number(wire, &key)) {
        return false;
    }
    const unsigned kind = key & 7;
    *ret_field = (struct onnx_field){.number = 0};
    if (key >> 3 == 0 || key >> 3 > FIELD_MOST) {
        wire->is_bad = true;
        return false;
    }
    ret_field->number = (uint32_t)(key >> 3);
    ret_field->kind = (enum onnx_wire_kind)kind;
    switch (kind) {
    case ONNX_WIRE_NUMBER:
        wire->is_bad = !onnx_wire_number(wire, &ret_field->value);
        return !wire->is_bad;
    case ONNX_WIRE_64:
        return read_fixed(wire, 8, &ret_field->value);
    case ONNX_WIRE_32:
        return read_fixed(wire, 4, &ret_field->value);
    case ONNX_WIRE_BYTES:
        return read_bytes(wire, &ret_field->bytes);
    default: /* a group, or no kind at all */
        wire->is_bad = true;
        return false;
    }
}

size_t onnx_wire_count(struct onnx_span packed)
{
    size_t count = 0;
    for (size_t i = 0; i < packed.size; i++) {
        count += (packed.at[i] & CONTINUES) == 0;
    }
    return packed.size > 0 && (packed.at[packed.size - 1] & CONTINUES) != 0 ? SIZE_MAX : count;
}

size_t onnx_wire_put_number(uint8_t *to, uint64_t value)
{
    size_t size = 0;
    for (; value >= CONTINUES; value >>= LOW_BITS) {
        to[size++] = (uint8_t)(value | CONTINUES);
    }
    to[size++] = (uint8_t)value;
    return size;
}
