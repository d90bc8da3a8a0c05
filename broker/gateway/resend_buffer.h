/* A kept message was sent on a session, and the session's client has not yet acknowledged it.
 *
 * A client that returns on another connection gets the messages that it missed (P15,
 * docs/protocol.md section 7, Resuming). Messages have numbers without a gap, and the newest are
 * kept. Above a cap the oldest are dropped; a client that needs those is told GAP_TOO_OLD. The
 * functions take over the bodies. Time and sockets are the caller's. */
#ifndef BOURSE_BROKER_GATEWAY_RESEND_BUFFER_H
#define BOURSE_BROKER_GATEWAY_RESEND_BUFFER_H

#include "base/id.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RESEND_BUFFER_MESSAGES = 1024,         /* messages of one session */
    RESEND_BUFFER_BYTES = 2 << 20,         /* of one session, bodies and entries together */
    RESEND_BUFFER_ACCOUNT_BYTES = 8 << 20, /* of all sessions of an account, and of all strangers */
    RESEND_BUFFER_TOTAL_BYTES = 128 << 20, /* of all sessions */
};

struct resend_message {
    enum message_type type;
    struct id128 id;
    uint8_t *body; /* owned; may be NULL when length is 0 */
    size_t length;
};

struct resend_buffer {
    struct resend_message *items; /* a ring buffer */
    uint32_t start, count, capacity;
    uint64_t last; /* sequence of the newest, kept or not; 0: none was added */
    size_t bytes;
};

/* Adds the message after the last one. `total_bytes` counts over all sessions. Takes the body over,
 * even when the message cannot be kept. */
void resend_buffer_add(struct resend_buffer *buffer, size_t *total_bytes,
                       const struct resend_message *message);
/* Drops the oldest messages until at least `bytes` are free, or none is left. */
void resend_buffer_trim(struct resend_buffer *buffer, size_t *total_bytes, size_t bytes);
/* Returns the size that a message counts towards the caps. */
size_t resend_buffer_weight(const struct resend_message *message);
/* Drops all messages up to `sequence`, which the client has seen. */
void resend_buffer_seen(struct resend_buffer *buffer, size_t *total_bytes, uint64_t sequence);
/* Returns a message, valid until the next call, or NULL when it is not kept or not yet sent. */
const struct resend_message *resend_buffer_find(const struct resend_buffer *buffer,
                                                uint64_t sequence);
/* Returns true when `sequence` was sent and everything after it is kept. */
bool resend_buffer_reaches(const struct resend_buffer *buffer, uint64_t sequence);
void resend_buffer_fini(struct resend_buffer *buffer, size_t *total_bytes);

#endif
