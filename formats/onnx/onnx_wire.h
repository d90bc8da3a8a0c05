/* formats/onnx/onnx_wire.h reads the wire format of protocol buffers, field by field, out of bytes
 * that strangers made.
 *
 *     struct onnx_wire wire = onnx_wire_over(bytes, length);
 *     struct onnx_field field;
 *     while (onnx_wire_next(&wire, &field)) { ... field.number ... }
 *     if (wire.is_bad) { the bytes are no message }
 *
 * The reader allocates nothing, copies nothing and does not recurse: a message within the message
 * is a span of the same bytes, which the caller reads with another reader. Groups are refused. */
#ifndef BOURSE_FORMATS_ONNX_ONNX_WIRE_H
#define BOURSE_FORMATS_ONNX_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct onnx_span { /* borrowed bytes of the file */
    const uint8_t *at;
    size_t size;
};

struct onnx_wire {
    const uint8_t *at, *end;
    bool is_bad; /* a field was cut short, or is of no known kind */
};

enum onnx_wire_kind {
    ONNX_WIRE_NUMBER = 0,
    ONNX_WIRE_64 = 1,
    ONNX_WIRE_BYTES = 2,
    ONNX_WIRE_32 = 5
};

struct onnx_field {
    uint32_t number;
    enum onnx_wire_kind kind;
    uint64_t value;         /* NUMBER, 64 and 32 */
    struct onnx_span bytes; /* BYTES */
};

struct onnx_wire onnx_wire_over(struct onnx_span span);

/* Reads the next field. Returns false at the end, and where the bytes are wrong: `is_bad` says
 * which. */
bool onnx_wire_next(struct onnx_wire *wire, struct onnx_field *ret_field);

/* Reads one number of 1 to 10 bytes, as a packed list has them. Returns false at the end and where
 * the bytes are wrong. */
bool onnx_wire_number(struct onnx_wire *wire, uint64_t *ret_value);

/* Returns how many numbers a packed list has, or SIZE_MAX when its last number is cut short. */
size_t onnx_wire_count(struct onnx_span packed);

/* Writes one number. Returns how many bytes it takes, at most 10. */
size_t onnx_wire_put_number(uint8_t *to, uint64_t value);

#endif
