/* broker/core/messages.h - what travels between the broker's threads, over their queues.
 *
 *   gateway --request--> worker --request--> core --group--> committer --outgoing--> gateway
 *                          \--outgoing (refused)--------------------------------------^
 *                                      core --request--> reader --outgoing------------^
 *   committer --serve, account--> blobs      committer --account--> reader      committer --mark--> snapshots
 *
 * Who pops an element owns it, with all it points to. */
#ifndef BOURSE_BROKER_CORE_MESSAGES_H
#define BOURSE_BROKER_CORE_MESSAGES_H

#include "base/id.h"
#include "broker/core/queue.h"
#include "broker/core/translate.h"
#include "broker/gateway/directory.h"
#include "formats/value.h"
#include "protocol/envelope.h"
#include "protocol/message.h"
#include "protocol/reject.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---------------------------------------------------------------- requests: inwards */

enum request_kind {
    REQUEST_MESSAGE,  /* of a client or an agent */
    REQUEST_PRESENCE, /* a provider was missed, spoke again, or left: `presence`, `account` */
    REQUEST_CLOSED,   /* `session` is over: forget its watches */
};

struct request {
    struct queue_link link;
    enum request_kind kind;
    enum entry_command_kind presence; /* ENTRY_SUSPECT, ENTRY_RETURNED, ENTRY_GOODBYE */
    uint64_t session;
    uint32_t account; /* EXCHANGE_NO_ACCOUNT while anonymous */
    uint32_t roles;
    struct key32 key;       /* the account's Ed25519 key; of no meaning while anonymous */
    struct key32 transport; /* the connection's X25519 key */
    uint8_t *message;       /* owned; the envelope borrows from it */
    size_t length;
    atomic_size_t *budget; /* gives `length` back when destroyed; may be NULL */
    struct envelope envelope;
    struct translation translation;
};

struct request *request_create(void); /* NULL when out of memory */
void request_destroy(struct request **self);

/* ---------------------------------------------------------------- outgoing: to peers and
 * directories */

enum outgoing_kind {
    OUTGOING_REPLY,   /* to `session`, under `id` */
    OUTGOING_PUSH,    /* to the live session of provider `account` */
    OUTGOING_EVENT,   /* to `session`, unasked */
    OUTGOING_ACCOUNT, /* an account was opened or changed: `opened` */
    OUTGOING_SERVE, /* blobs only: provider `account` has `lease` of `job`; said again now and then
                     */
    OUTGOING_UNSERVE, /* blobs only: `lease` of provider `account` has ended */
    OUTGOING_GIVEN,   /* blobs only: who has `lease` may read the hashes in `body` too */
    OUTGOING_NAMED,   /* blobs only: a result of provider `account` for `job` names the hashes in
                         `body` */
    OUTGOING_INDEX,   /* `index` is durable, of log time `log_time_ns` */
};

struct outgoing {
    struct queue_link link;
    enum outgoing_kind kind;
    uint64_t session;
    uint32_t account;
    enum message_type type;
    struct id128 id;
    uint8_t *body; /* owned; may be NULL when length is 0 */
    size_t length;
    uint64_t index;
    int64_t log_time_ns;
    struct directory_account opened;
    uint64_t lease;
    struct id128 job;
    struct hash32 manifest;
    struct key32 owner;
    uint32_t owner_number;
    /* A refusal, for the audit log: its code, what was refused (0: not said), and to whom
     * (`account`). */
    enum reject_code refused;
    enum message_type refused_type;
};

struct outgoing *outgoing_create(enum outgoing_kind kind); /* NULL when out of memory */
void outgoing_destroy(struct outgoing **self);
/* Encodes `body` for `type`; NULL when out of memory. */
struct outgoing *outgoing_message(enum outgoing_kind kind, enum message_type type,
                                  const ProtobufCMessage *body);

/* The same as the answer to `request`: under its id, to its session. */
struct outgoing *outgoing_reply(const struct request *request, enum message_type type,
                                const ProtobufCMessage *body);

/* A refusal of a request, with the advice of the code, the field and the limit as its text. */
struct outgoing *outgoing_reject(uint64_t session, const struct id128 *id, enum reject_code code,
                                 const char *field, int64_t value, int64_t limit);
/* Of a limit by value: `value` is one of that rate, and the limit is credits per slot-hour. */
struct outgoing *outgoing_reject_value(uint64_t session, const struct id128 *id,
                                       enum reject_code code, bool is_of_parts,
                                       const struct value *value, int64_t limit_micro);
/* The same for `request`: under its id, to its session, of its account. */
struct outgoing *outgoing_refuse(const struct request *request, enum reject_code code,
                                 const char *field, int64_t value, int64_t limit);

/* Ends all that is left in a queue that nobody pops any more. */
void drain_requests(struct queue *queue);
void drain_outgoing(struct queue *queue);

#endif
