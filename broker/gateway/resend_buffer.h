/* A kept message was sent on a session, and the session's client has not yet acknowledged it.
 *
 * A client that returns on another connection gets the messages that it missed (P15,
 * docs/protocol.md section 7, Resuming). Messages have numbers without a gap, and the newest are
 * kept. Above a cap the oldest are dropped; a client that needs those is told GAP_TOO_OLD. The
 * functions take over the bodies. Time and sockets are the caller's. */
#ifndef BOURSE_BROKER_GATEWAY_KEPT_H
#define BOURSE_BROKER_GATEWAY_KEPT_H

#include "base/id.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEPT_MESSAGES = 1024,         /* messages of one session */
    KEPT_BYTES = 2 << 20,         /* of one session, bodies and entries together */
    KEPT_ACCOUNT_BYTES = 8 << 20, /* of all sessions of an account, and of all strangers */
    KEPT_TOTAL_BYTES = 128 << 20, /* of all sessions */
};

struct kept_message {
    enum message_type type;
    struct id128 id;
    uint8_t *body; /* owned; may be NULL when length is 0 */
    size_t length;
};

struct kept {
    struct kept_message *items; /* a ring buffer */
    uint32_t start, count, capacity;
    uint64_t last; /* sequence of the newest, kept or not; 0: none was added */
    size_t bytes;
};

/* Adds the message after the last one. `total_bytes` counts over all sessions. Takes the body over,
 * even when the message cannot be kept. */
void kept_add(struct kept *kept, size_t *total_bytes, const struct kept_message *message);
/* Drops the oldest messages until at least `bytes` are free, or none is left. */
void kept_trim(struct kept *kept, size_t *total_bytes, size_t bytes);
/* Returns the size that a message counts towards the caps. */
size_t kept_weight(const struct kept_message *message);
/* Drops all messages up to `sequence`, which the client has seen. */
void kept_seen(struct kept *kept, size_t *total_bytes, uint64_t sequence);
/* Returns a message, valid until the next call, or NULL when it is not kept or not yet sent. */
const struct kept_message *kept_find(const struct kept *kept, uint64_t sequence);
/* Returns true when `sequence` was sent and everything after it is kept. */
bool kept_reaches(const struct kept *kept, uint64_t sequence);
void kept_fini(struct kept *kept, size_t *total_bytes);

#endif
