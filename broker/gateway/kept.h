/* broker/gateway/kept.h - what was sent on a session and its client has not said that it saw: so
 * that one who comes back on another connection gets what it missed (P15, docs/protocol.md section
 * 7, Resuming).
 *
 * Messages are numbered without a gap. What is kept is always the newest ones: over a cap the
 * oldest go, and whoever needs those is told GAP_TOO_OLD. Bodies are taken over. Time and sockets
 * are the caller's. */
#ifndef BOURSE_BROKER_GATEWAY_KEPT_H
#define BOURSE_BROKER_GATEWAY_KEPT_H

#include "base/id.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEPT_MESSAGES = 1024,         /* of one session */
    KEPT_BYTES = 2 << 20,         /* of one session: bodies and their places */
    KEPT_ACCOUNT_BYTES = 8 << 20, /* of all sessions of an account, and of all strangers' */
    KEPT_TOTAL_BYTES = 128 << 20, /* of all sessions */
};

struct kept_message {
    enum message_type type;
    struct id128 id;
    uint8_t *body; /* owned; may be NULL when length is 0 */
    size_t length;
};

struct kept {
    struct kept_message *items; /* a ring */
    uint32_t start, count, capacity;
    uint64_t last; /* sequence of the newest, kept or not; 0: none was added */
    size_t bytes;
};

/* The message after the last. `total_bytes` counts over all sessions. Takes the body, also when it
 * cannot be kept. */
void kept_add(struct kept *kept, size_t *total_bytes, const struct kept_message *message);
/* Lets go the oldest, at least `bytes` of them or all. */
void kept_trim(struct kept *kept, size_t *total_bytes, size_t bytes);
/* What it takes of the caps. */
size_t kept_weight(const struct kept_message *message);
/* The client has seen all up to `sequence`. */
void kept_seen(struct kept *kept, size_t *total_bytes, uint64_t sequence);
/* Borrowed until the next call; NULL: not kept (any more), or not sent yet. */
const struct kept_message *kept_find(const struct kept *kept, uint64_t sequence);
/* True when everything after `sequence` is there, and `sequence` itself was sent. */
bool kept_reaches(const struct kept *kept, uint64_t sequence);
void kept_fini(struct kept *kept, size_t *total_bytes);

#endif
