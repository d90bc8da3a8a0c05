/* `struct blobs` is the state of the blob port's thread, which the units blobs*.c share. */
#ifndef BOURSE_BROKER_BLOB_PORT_BLOBS_INTERNAL_H
#define BOURSE_BROKER_BLOB_PORT_BLOBS_INTERNAL_H

#include "broker/blob/port/blobs.h"

#include "broker/blob/blob_check.h"
#include "broker/blob/port/blob_ticket.h"
#include "broker/blob/port/turns.h"
#include "broker/blob/port/upload_stream.h"
#include "broker/copies/copy_peers.h"
#include "broker/core/outgoing.h"
#include "broker/gateway/allowance.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "runtime/blob/blob_client.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BATCH_MESSAGES = 128,
    UNREAD_TOLD = BLOB_LOST_MAX, /* unread blobs of which the log was told lately */
};

struct answer { /* to a put, held back until the commit */
    struct route route;
    struct key32 client;
    uint64_t session;
    struct outgoing *outgoing;
    bool is_promise; /* it says that a blob is stored */
};

struct claim { /* a put whose bytes come through a stream: answered when they are here */
    bool is_made;
    struct route route;
    struct key32 client;
    uint64_t session;
    struct id128 id;
};

/* The blob port keeps this about the brokers that follow (blobs_copies.c). */
struct copying {
    struct directory_account peer; /* stands for every other broker of the market */
    struct copy_peers peers;
    struct feed { /* a question that waits for news */
        bool waits;
        struct claim to;
        uint64_t after, until;
        int64_t due_ns;
    } feeds[COPY_PEERS_MAX];
    struct promise { /* an answer that other brokers have to confirm */
        uint64_t version;
        int64_t due_ns;
        struct claim to;
        struct outgoing *outgoing;
    } * promises; /* BLOBS_PROMISES_MAX */
    size_t promise_count;
    struct hash32 wanted_after; /* the wants of the next answer have higher hashes */
    int64_t began_ns, next_warning_ns;
};

struct blobs {
    struct blobs_config config;
    pthread_t thread;
    bool in_batch;
    struct forget_order *order; /* of the keeper, who waits for it; NULL: none */
    bool is_swept;              /* no file without a row is looked for any more */
    struct answer answers[BATCH_MESSAGES];
    size_t answer_count;
    uint8_t *buffer;                  /* LIMIT_BLOB_MESSAGE_BYTES: what is sent */
    struct allowance_list allowances; /* requests */
    struct turns turns;               /* of messages: struct asked */
    struct paused {
        int descriptor;
        uint32_t account;
        int64_t until_ns;
    } paused[BLOBS_PAUSED_MAX]; /* connections that nothing is read from */
    size_t paused_count;
    int64_t next_resume_ns;
    uint64_t steps; /* cost so far of the message that is being answered */
    struct blob_tickets tickets;
    struct upload_streams *streams;
    struct blob_checks *checks;
    struct claim claims[UPLOAD_STREAMS_MAX]; /* by the stream's place */
    struct outgoing **names;                 /* notes of results; owned */
    size_t name_count, name_capacity, named_hashes;
    struct unread {
        struct hash32 hash;
        int64_t until_ns; /* the log has it until then */
    } unread[UNREAD_TOLD];
    struct keeper {
        uint32_t account;
        int64_t until_ns;
    } keepers[BLOBS_KEEPERS_MAX];
    struct lender { /* a provider that may have files of a job that it serves */
        uint32_t provider;
        struct id128 job;
        int64_t until_ns; /* 0: free */
    } lenders[BLOBS_KEEPERS_MAX];
    struct copying copying;
    bool has_unread; /* a blob was found lost, which other brokers may have */
};

struct asked { /* one message with its sender, from when it comes until it is answered */
    struct turn turn;
    struct router_kept *kept; /* owns the message's bytes; NULL while it is the router's */
    struct router_message message;
    bool is_local;
    struct envelope envelope;
    const struct directory_account *account; /* looked up anew when it is its turn */
    ProtobufCMessage *body;                  /* NULL until it is its turn; owned */
    ProtobufCBinaryData *missing;            /* of a BlobHave, so far; owned */
    size_t missing_count, looked_up;
    size_t stored_bytes; /* of a BlobPut's data, so far */
    int64_t behind_ns;   /* a BlobGet stays behind since then; 0: it does not */
};

/* ---------------------------------------------------------------- blobs_answers.c */

/* Returns the head of an answer; body and body_length are left to the caller. */
struct envelope blobs_head(const struct blobs *blobs, enum message_type type, uint64_t session,
                           const struct id128 *id);
/* Ends the process when `outgoing` is NULL, for memory was short. */
struct outgoing *blobs_checked(struct outgoing *outgoing);
/* Sends an answer now, and destroys it. */
void blobs_reply(struct blobs *blobs, const struct asked *asked, struct outgoing *outgoing);
/* Counts a refusal of the sender for the audit log. */
void blobs_note_refused(struct blobs *blobs, const struct asked *asked, enum reject_code code);
/* Refuses the message now, and counts that. */
void blobs_refuse(struct blobs *blobs, const struct asked *asked, enum reject_code code,
                  const char *field, int64_t value, int64_t limit);
/* Refuses the message of a frozen account with the operator's reason, and counts that. */
void blobs_refuse_frozen(struct blobs *blobs, const struct asked *asked);
/* Opens a transaction of the store, unless one is open. */
void blobs_begin_batch(struct blobs *blobs);
/* Commits the transaction, and then sends the answers that waited for it. */
void blobs_end_batch(struct blobs *blobs);
/* Keeps an answer until the commit; takes it over. */
void blobs_hold_answer(struct blobs *blobs, const struct claim *to, struct outgoing *outgoing);
void blobs_hold_back(struct blobs *blobs, const struct asked *asked, struct outgoing *outgoing);
/* Marks the answer that was kept last as a promise that a blob is stored. */
void blobs_make_promise(struct blobs *blobs);
struct claim blobs_claim_of(const struct asked *asked);
/* Sends an answer, and destroys it. */
void blobs_send_to(struct blobs *blobs, const struct claim *to, struct outgoing *outgoing);
/* Returns true when other accounts asked just now. */
bool blobs_others_ask(const struct blobs *blobs, uint32_t account, int64_t now_ns);

/* ---------------------------------------------------------------- blobs_rights.c */

/* Finds the owner of the blobs in question: the sender, or the owner of a job that the sender
 * serves. Returns false when the sender does not serve the job. */
bool blobs_owner_of(struct blobs *blobs, const struct asked *asked, bool has_job,
                    ProtobufCBinaryData job, uint32_t *ret_owner,
                    struct blob_access_job **ret_served);
/* Returns OK, NOT_FOUND, or that nobody knows now. */
enum blob_status blobs_may_read(struct blobs *blobs, const struct asked *asked, uint32_t owner,
                                struct blob_access_job *served, const struct hash32 *hash);
/* Returns the bounds of what the sender may store for the job, or NULL for the sender's own. */
const struct blob_lease *blobs_lease_of(struct blobs *blobs, const struct asked *asked,
                                        struct blob_access_job *served, struct blob_lease *lease);

/* ---------------------------------------------------------------- blobs_lost.c */

/* Names an unread blob in the log, once in a while. */
void blobs_log_unread(struct blobs *blobs, const struct hash32 *hash);
/* Refuses a blob that was not read. A lost one is not found, unless its owner may send it. */
void blobs_refuse_unread(struct blobs *blobs, const struct asked *asked, enum blob_status status,
                         uint32_t owner, const struct hash32 *hash);
/* Lets a thread hash the blob's file. Returns true when that is under way, or has to wait. */
bool blobs_check_file(struct blobs *blobs, const struct hash32 *hash);
/* Looks at a blob whose bytes a peer calls wrong. Returns true when that is not done yet. */
bool blobs_recheck(struct blobs *blobs, const struct hash32 *hash);
/* Takes what the hashing threads have found. */
void blobs_end_checks(struct blobs *blobs);
/* Answers which lost blobs are wanted again from a sender that may have their files. */
void blobs_tell_lost(struct blobs *blobs, const struct asked *asked, uint32_t owner,
                     struct blob_access_job *served);

/* ---------------------------------------------------------------- blobs_copies.c */

bool blobs_copies_start(struct blobs *blobs); /* false: memory is short */
void blobs_copies_stop(struct blobs *blobs);
/* Returns the account of a sender: its own, or that of another broker; NULL: a stranger. */
const struct directory_account *blobs_sender(const struct blobs *blobs, const struct key32 *key);
bool blobs_is_peer(const struct blobs *blobs, const struct directory_account *account);
/* Returns true when other brokers have all that is committed, or none have to. */
bool blobs_are_copied(const struct blobs *blobs);
/* Keeps a promise until other brokers have what is committed by now. Takes the answer over. */
void blobs_promise(struct blobs *blobs, const struct claim *to, struct outgoing *outgoing);
/* Answers a question of another broker, or lets it wait for news. */
bool blobs_feed(struct blobs *blobs, struct asked *asked, const Bourse__V1__BlobFeed *body);
/* Sends news to those that wait, and refuses promises that waited too long. */
void blobs_copies_serve(struct blobs *blobs);
/* Forgets what is gone for long, from time to time. */
void blobs_copies_trim(struct blobs *blobs);
/* Returns how long the thread may wait for messages, at most `most_ms`. */
long blobs_copies_wait_ms(const struct blobs *blobs, long most_ms);
/* Returns true when another broker than the sender may still bring the blob. `is_known`: the blob
 * has a row. */
bool blobs_copies_may_bring(const struct blobs *blobs, const struct asked *asked,
                            const struct hash32 *hash, bool is_known);

/* ------------------------------------------------- blobs_put.c and blobs_get.c: the messages */

/* Each function answers its message, or a slice of it. Returns false when more is to answer. */
bool blobs_have(struct blobs *blobs, struct asked *asked, const Bourse__V1__BlobHave *body);
bool blobs_put(struct blobs *blobs, struct asked *asked, const Bourse__V1__BlobPut *body);
bool blobs_get(struct blobs *blobs, struct asked *asked, const Bourse__V1__BlobGet *body);
/* Answers for the streams that have ended. */
void blobs_end_streams(struct blobs *blobs);

/* ---------------------------------------------------------------- blobs_notes.c */

/* Takes the notes of the other threads. */
void blobs_learn(struct blobs *blobs);
/* Blobs that results have named since the last call become their owners'. Returns false when the
 * disk is full; the caller tries again later. */
bool blobs_write_names(struct blobs *blobs);
/* Does the order that the keeper waits for, if there is one. */
void blobs_do_order(struct blobs *blobs);
/* Drops blobs of one ended lease that no result has named. */
void blobs_drop_unnamed(struct blobs *blobs, int64_t now_ns);
/* Looks through one folder for files without a row. */
void blobs_sweep(struct blobs *blobs);

#endif
