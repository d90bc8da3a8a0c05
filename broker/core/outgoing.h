/* An outgoing message travels to a peer or to another thread; broker/core/request.h shows the ways.
 *
 * The thread that pops an element from a queue owns it, with all that the element points to. */
#ifndef BOURSE_BROKER_CORE_OUTGOING_H
#define BOURSE_BROKER_CORE_OUTGOING_H

#include "base/id.h"
#include "broker/core/outage/quorum_note.h"
#include "broker/core/queue.h"
#include "broker/gateway/directory.h"
#include "formats/value.h"
#include "protocol/codec.h"
#include "protocol/message.h"
#include "protocol/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;
struct forget_order;

enum outgoing_kind {
    OUTGOING_REPLY,   /* to `session`, under `id` */
    OUTGOING_PUSH,    /* to the live session of provider `account` */
    OUTGOING_EVENT,   /* to `session`, unasked */
    OUTGOING_ACCOUNT, /* an account was opened or changed: `opened` */
    /* Blob port only: provider `account` has `lease` of `job`, said again now and then. */
    OUTGOING_SERVE,
    OUTGOING_UNSERVE, /* blob port only: `lease` of provider `account` has ended */
    /* Blob port and check of results: the holder of `lease` runs subtask `index`, and may read the
     * blobs whose hashes are in `body`. */
    OUTGOING_GIVEN,
    /* Blob port only: a result of provider `account` for `job` names the hashes in
     * `body`. */
    OUTGOING_NAMED,
    OUTGOING_FORGET, /* blob port only: `order` is to be done */
    /* Gateway only: provider `account` may not keep its asks. Its agent has to greet again. */
    OUTGOING_DOUBT,
    OUTGOING_INDEX, /* `index`, of log time `log_time_ns`, is durable */
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
    uint64_t index;      /* of a REPLY, too: the state that it is made from, and the log time; */
    int64_t log_time_ns; /* both are 0 where the broker leads */
    struct directory_account opened; /* `body` owns its frozen_why */
    uint64_t lease;
    struct id128 job;
    struct hash32 manifest;
    struct key32 owner;
    uint32_t owner_number;
    struct forget_order *order; /* its sender's, who waits until it is done */
    /* The next two fields describe a refusal of `account` for the audit log. They are the code of
     * the refusal and the type of the refused message (0: unknown). */
    enum reject_code refused;
    enum message_type refused_type;
};

/* Returns NULL when memory is short. */
struct outgoing *outgoing_create(enum outgoing_kind kind);
void outgoing_destroy(struct outgoing **self);
/* Returns a note that the account was opened or changed, with its own copy of the reason, or NULL
 * when memory is short. */
struct outgoing *outgoing_account(const struct directory_account *account);
/* Encodes `body` for `type`. Returns NULL when memory is short. */
struct outgoing *outgoing_message(enum outgoing_kind kind, enum message_type type,
                                  const ProtobufCMessage *body);

/* Sets the session and the request that an answer is for, and returns the answer. The process ends
 * when `outgoing` is NULL, because memory was short. */
struct outgoing *outgoing_address(struct outgoing *outgoing, uint64_t session,
                                  const struct id128 *id);

/* Encodes the answer to `request`, under its id and to its session. */
struct outgoing *outgoing_reply(const struct request *request, enum message_type type,
                                const ProtobufCMessage *body);

/* Returns a refusal of a request; its text is the advice of the code, the field and the limit. */
struct outgoing *outgoing_reject(uint64_t session, const struct id128 *id, enum reject_code code,
                                 const char *field, int64_t value, int64_t limit);
/* Returns a refusal of a broker that follows. `leader` is where the one that leads is; a text that
 * is no endpoint is left out. */
struct outgoing *outgoing_not_leader(uint64_t session, const struct id128 *id, char *leader);
/* Returns a refusal NO_QUORUM of `request`, with the sentence of the note. */
struct outgoing *outgoing_no_quorum(const struct request *request, struct quorum_note *note,
                                    int64_t now_ns);
/* The same for a command that is applied already, and may be done later. */
struct outgoing *outgoing_unsettled(uint64_t session, const struct id128 *id,
                                    struct quorum_note *note, int64_t now_ns);
/* Returns a refusal of a put that `copies` brokers did not confirm in time; `who` says which are
 * silent. */
struct outgoing *outgoing_not_copied(const struct id128 *id, unsigned copies, const char *who);
/* Returns a refusal because of a freeze or a halt, with the operator's reason; NULL: none. */
struct outgoing *outgoing_reject_reason(uint64_t session, const struct id128 *id,
                                        enum reject_code code, const char *field,
                                        const char *reason);
/* Returns a refusal of a limit by value: `value` has a rate, and the limit is credits per
 * slot-hour. */
struct outgoing *outgoing_reject_value(uint64_t session, const struct id128 *id,
                                       enum reject_code code, bool is_of_parts,
                                       const struct value *value, int64_t limit_micro);
/* Returns a refusal of `request`, under its id, to its session, for its account. */
struct outgoing *outgoing_refuse(const struct request *request, enum reject_code code,
                                 const char *field, int64_t value, int64_t limit);

/* Frees all elements that are left in a queue that no thread pops any more. */
void outgoing_drain(struct queue *queue);

#endif
