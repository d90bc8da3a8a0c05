/* broker/storage/etcd/proto.h writes and reads the wire format of protobuf, field by field.
 *
 * Only the two kinds of field that etcd's messages have are known: varints, and lengths with bytes.
 * Fields of other kinds are skipped. A reader never passes the end of its bytes. The code is
 * pure. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_PROTO_H
#define BOURSE_BROKER_STORAGE_ETCD_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proto_writer {
    uint8_t *bytes;
    size_t capacity, length;
    bool is_full; /* a field did not fit, so the bytes are useless */
};

void proto_varint(struct proto_writer *out, unsigned field, uint64_t value);
void proto_bytes(struct proto_writer *out, unsigned field, const void *bytes, size_t length);
/* Begins a message inside the message. Returns the mark that proto_end takes. */
size_t proto_begin(struct proto_writer *out, unsigned field);
/* Ends the inner message: moves its bytes behind their length. */
void proto_end(struct proto_writer *out, size_t mark);

struct proto_reader {
    const uint8_t *at, *end;
    bool is_broken; /* the bytes do not follow the wire format */
};

enum proto_kind { PROTO_VARINT, PROTO_BYTES, PROTO_SKIPPED };

struct proto_field {
    unsigned number;
    enum proto_kind kind;
    uint64_t value;       /* VARINT */
    const uint8_t *bytes; /* BYTES: borrowed from the reader's bytes */
    size_t length;
};

struct proto_reader proto_over(const void *bytes, size_t length);
/* Reads the next field. Returns false at the end, or when the bytes are broken. */
bool proto_next(struct proto_reader *in, struct proto_field *ret_field);

#endif
