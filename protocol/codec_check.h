/* protocol/codec_check.h defines shapes of messages, and the check of raw bytes against them.
 *
 * A shape lists one rule per field of a protobuf message, in the order of the field numbers.
 * Numbers may be skipped. codec_check walks the encoded bytes with the shape before anything is
 * unpacked, and takes no memory. Its recursion is as deep as the schema, which has no recursive
 * type. The header is private to the codec. */
#ifndef BOURSE_PROTOCOL_CODEC_CHECK_H
#define BOURSE_PROTOCOL_CODEC_CHECK_H

#include "protocol/codec_error.h"
#include "protocol/message.h"

#include "protocol/bourse.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum rule_kind {
    /* The number is in least .. most. There is no bound where most is INT64_MAX and the field
     * unsigned. */
    RULE_NUMBER,
    RULE_BYTES,    /* length least .. most */
    RULE_NAME,     /* UTF-8 of least .. most bytes, no control characters, no bidirectional marks */
    RULE_LINE,     /* UTF-8 of least .. most bytes, no control characters */
    RULE_TEXT,     /* as RULE_LINE, but tab, newline and carriage return are allowed */
    RULE_ENDPOINT, /* tcp://HOST:PORT of least .. most bytes (route/endpoint.h) */
    RULE_NESTED,   /* another message */
    RULE_PACKED,   /* numbers, least .. most each, in one piece of at most count_max */
};

struct shape;

struct rule {
    enum rule_kind kind;
    int64_t least;
    int64_t most;
    uint32_t count_max;        /* most items of a repeated field; 0: not repeated */
    const struct shape *shape; /* for RULE_NESTED */
};

enum { SHAPE_FIELDS_MAX = 32 };

/* A sighting records a walk over one message: how often each field stood there, and its (last)
 * number. For packed numbers it holds their count and their sum. */
struct sighting {
    uint32_t counts[SHAPE_FIELDS_MAX];
    int64_t numbers[SHAPE_FIELDS_MAX];
};

struct shape {
    const ProtobufCMessageDescriptor *descriptor;
    const struct rule *rules;
    unsigned rule_count;
    /* Checks what rules of single fields cannot express; fills field, value and limit. NULL: no
     * check. */
    bool (*check)(const struct sighting *sighting, struct codec_error *ret_error);
};

/* Returns true when `bytes` encodes the shape: every rule holds, every required field is present,
 * and no singular field stands twice. Unknown fields, from a newer peer, are allowed and not
 * inspected. Otherwise returns false, and *ret_error names the field by its path. */
bool codec_check(const struct shape *shape, const uint8_t *bytes, size_t length,
                 struct codec_error *ret_error);

/* Returns true when the shape agrees with the schema's descriptor, nested shapes too. The function
 * is for tests. */
bool codec_shape_agrees(const struct shape *shape);

struct message_row {
    const char *name; /* NULL: no such type */
    const struct shape *shape;
    uint32_t body_cap;
    bool is_signed;
    unsigned roles;
    enum message_type answer; /* 0: none, or the message is not a request */
};

enum { MESSAGE_TYPE_END = 128 };

/* Returns the row of a type, or NULL for an unknown type. */
const struct message_row *codec_row(enum message_type type);

extern const struct shape codec_result_shape;
extern const struct shape codec_manifest_shape;
extern const struct shape codec_requirement_shape;
/* codec_shapes_terminal.c has these. */
extern const struct shape codec_manifest_terminal_shape, codec_terminal_send_shape,
    codec_terminal_taken_shape, codec_terminal_receive_shape, codec_terminal_bytes_shape;
/* codec_shapes_challenge.c has these. */
extern const struct shape codec_challenge_ready_shape, codec_challenge_shape, codec_blob_feed_shape,
    codec_blob_changes_shape;

/* Fills the error of a check that is false, and returns false. */
static inline bool codec_check_refuse(struct codec_error *ret_error, const char *field,
                                      int64_t value, int64_t limit)
{
    (void)snprintf(ret_error->field, sizeof ret_error->field, "%s", field);
    ret_error->value = value;
    ret_error->limit = limit;
    return false;
}

#endif
