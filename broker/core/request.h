/* A request travels inwards, from the gateway to the core; broker/core/outgoing.h has the way out.
 *
 *   gateway --request--> worker --request--> core --group--> committer --outgoing--> gateway
 *                          \--outgoing (refused)--------------------------------------^
 *                                      core --request--> reader --outgoing------------^
 *   committer --serve, account--> blobs, --account--> reader, --mark--> snapshots
 *
 * The thread that pops an element owns it, with all that the element points to. */
#ifndef BOURSE_BROKER_CORE_REQUEST_H
#define BOURSE_BROKER_CORE_REQUEST_H

#include "base/id.h"
#include "broker/core/queue.h"
#include "broker/core/translation.h"
#include "broker/storage/entry.h"
#include "protocol/envelope.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum request_kind {
    REQUEST_MESSAGE, /* from a client or an agent */
    /* Provider `account` missed heartbeats, returned, or left: `presence` says which. */
    REQUEST_PRESENCE,
    REQUEST_CLOSED, /* `session` is over, and its watches end */
};

struct request {
    struct queue_link link;
    enum request_kind kind;
    enum entry_command_kind presence; /* ENTRY_SUSPECT, ENTRY_RETURNED, ENTRY_GOODBYE */
    uint64_t session;
    uint32_t account; /* EXCHANGE_NO_ACCOUNT while anonymous */
    uint32_t roles;
    struct key32 key;       /* the account's Ed25519 key; no meaning while anonymous */
    struct key32 transport; /* the connection's X25519 key */
    /* The answer of a broker that follows has this command at least, whose log time this is. */
    uint64_t state_index;
    int64_t state_ns;
    int64_t arrived_ns; /* monotonic: when the gateway read the message */
    uint8_t *message;   /* owned; the envelope borrows from it */
    size_t length;
    /* request_destroy subtracts `length` from this counter; may be NULL. */
    atomic_size_t *budget;
    struct envelope envelope;
    struct translation translation;
};

/* Returns NULL when memory is short. */
struct request *request_create(void);
void request_destroy(struct request **self);
/* Frees all requests that are left in a queue that no thread pops any more. */
void request_drain(struct queue *queue);

#endif
