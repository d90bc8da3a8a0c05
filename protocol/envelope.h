/* protocol/envelope.h reads and writes the fixed head before every message body, docs/protocol.md
 * section 4.
 *
 *   offset size field
 *        0    4 magic "BRS1"
 *        4    2 version (1)
 *        6    2 type (enum message_type)
 *        8    8 session          0 before Welcome
 *       16    8 sequence         1, 2, 3 ... per direction and session
 *       24   16 id               made by the sender of a request; a reply carries the request's
 *       40    8 created_ms       log time as the sender knows it
 *       48    4 body length
 *       52    4 flags            bit 0: signed
 *       56   64 signature        Ed25519, zeros when not signed
 *      120    n body             protobuf, exactly `body length` bytes, then the end
 *
 * All integers are little endian. The signature (D5) covers the domain "bourse/message/v1" with its
 * NUL, cluster id (16), version, type, id, created_ms, body length, body. Session, sequence and
 * flags are outside, so that the same bytes can be sent again on another connection. */
#ifndef BOURSE_PROTOCOL_ENVELOPE_H
#define BOURSE_PROTOCOL_ENVELOPE_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ENVELOPE_VERSION = 1, ENVELOPE_HEAD_BYTES = 120 };

enum envelope_status {
    ENVELOPE_OK,
    ENVELOPE_SHORT, /* fewer bytes than the head, or than head and body */
    ENVELOPE_LONG,  /* bytes after the body */
    ENVELOPE_BAD_MAGIC,
    ENVELOPE_BAD_VERSION, /* well formed so far, but another version */
    ENVELOPE_BAD_FLAGS,   /* unknown flag, or a signature without the flag */
    ENVELOPE_TOO_LARGE,   /* body above the given cap */
};

struct envelope {
    uint16_t version;
    uint16_t type;
    uint64_t session;
    uint64_t sequence;
    struct id128 id;
    int64_t created_ms;
    bool is_signed;
    struct signature64 signature; /* zeros unless is_signed */
    const uint8_t *body;          /* borrowed from the message */
    uint32_t body_length;
};

/* Reads the head of `message`. *ret_envelope is written for ENVELOPE_OK only. */
enum envelope_status envelope_read(const void *message, size_t length, uint32_t body_cap,
                                   struct envelope *ret_envelope);

/* Returns the size of the whole message. */
size_t envelope_size(const struct envelope *envelope);
/* Writes the whole message, body included; `capacity` must be at least envelope_size. */
void envelope_write(const struct envelope *envelope, void *ret_message, size_t capacity);
/* Writes the head alone; the caller writes the `body_length` bytes of the body behind it. */
void envelope_write_head(const struct envelope *envelope, uint8_t ret_message[ENVELOPE_HEAD_BYTES]);

/* Writes the signed bytes before the body: Ed25519 covers head || body, without a SHA-512 pre-hash.
 * `ret_head` receives ENVELOPE_SIGNED_HEAD_BYTES. */
enum { ENVELOPE_SIGNED_HEAD_BYTES = 18 + 16 + 2 + 2 + 16 + 8 + 4 };
void envelope_signed_head(const struct envelope *envelope, const struct id128 *cluster,
                          uint8_t ret_head[ENVELOPE_SIGNED_HEAD_BYTES]);

#endif
