/* protocol/codec_check.h - shapes of messages, and the check of raw bytes against them.
 *
 * A shape lists one rule per field of a protobuf message, in the order of the field numbers, of
 * which some may be left out. codec_check walks the encoded bytes with it before anything is unpacked:
 * no memory is taken, and the depth of its recursion is the depth of the schema, which has no
 * recursive type. Inner to the codec. Pure. */
#ifndef BOURSE_PROTOCOL_CODEC_CHECK_H
#define BOURSE_PROTOCOL_CODEC_CHECK_H

#include "protocol/codec_error.h"
#include "protocol/message.h"

#include "protocol/bourse.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rule_kind {
    RULE_NUMBER, /* least .. most; without further bound where most is INT64_MAX and the field
                    unsigned */
    RULE_BYTES,  /* length least .. most */
    RULE_NAME,   /* UTF-8 of least .. most bytes, no control characters, no bidirectional marks */
    RULE_LINE,   /* UTF-8 of least .. most bytes, no control characters */
    RULE_TEXT,   /* the same, but tab, newline and carriage return are allowed */
    RULE_NESTED, /* another message */
    RULE_PACKED, /* numbers, least .. most each, in one piece of at most count_max */
};

struct shape;

struct rule {
    enum rule_kind kind;
    int64_t least;
    int64_t most;
    uint32_t count_max;        /* of a repeated field; 0: not repeated */
    const struct shape *shape; /* of NESTED */
};

enum { SHAPE_FIELDS_MAX = 32 };

/* What a walk saw of one message: how often each field stood there, and its (last) number. Of
 * packed numbers: how many there are, and their sum. */
struct sighting {
    uint32_t counts[SHAPE_FIELDS_MAX];
    int64_t numbers[SHAPE_FIELDS_MAX];
};

struct shape {
    const ProtobufCMessageDescriptor *descriptor;
    const struct rule *rules;
    unsigned rule_count;
    /* What rules of single fields cannot say; NULL: nothing. Fills field, value and limit. */
    bool (*check)(const struct sighting *sighting, struct codec_error *ret_error);
};

/* True when `bytes` is an encoding of the shape in which every rule holds, every required field
 * stands and no singular field stands twice. Unknown fields are allowed (a newer peer) and not
 * looked into. False: *ret_error names the field by its path. */
bool codec_check(const struct shape *shape, const uint8_t *bytes, size_t length,
                 struct codec_error *ret_error);

/* True when the shape agrees with the schema's descriptor, nested shapes too: for tests. */
bool codec_shape_agrees(const struct shape *shape);

struct message_row {
    const char *name; /* NULL: no such type */
    const struct shape *shape;
    uint32_t body_cap;
    bool is_signed;
    unsigned roles;
    enum message_type answer; /* 0: none, or not a request */
};

enum { MESSAGE_TYPE_END = 128 };

/* The row of a type, or NULL for an unknown one. */
const struct message_row *message_row(enum message_type type);

extern const struct shape codec_result_shape;
extern const struct shape codec_manifest_shape;

#endif
