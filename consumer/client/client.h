/* consumer/client/client.h opens the inside of a connection to the other files of libbourse. The
 * header is not installed.
 *
 * The pump moves bytes between the link and the pure session. Every other file asks the pump for
 * one event, or for the answer to one request. */
#ifndef BOURSE_CONSUMER_CLIENT_CLIENT_H
#define BOURSE_CONSUMER_CLIENT_CLIENT_H

#include "base/id.h"
#include "base/problem.h"
#include "consumer/client/bourse.h"
#include "consumer/client/session.h"
#include "protocol/codec.h"
#include "protocol/identity.h"
#include "protocol/limits.h"
#include "runtime/blob/blob_client.h"
#include "runtime/link.h"
#include "runtime/market.h"

#include <stdatomic.h>

/* Live output of one job. A request is always under way; its answer waits here until bourse_wait
 * hands it over. */
struct client_listening {
    bourse_listener *listener; /* NULL: nobody listens */
    void *context;
    struct id128 job;
    struct id128 request; /* zero: none is under way */
    Bourse__V1__OutputReply *reply;
    bool has_feed;
    uint64_t feed, after; /* what the last answer said */
    int64_t again_ns;     /* next request */
};

struct bourse {
    void *zmq;
    struct market market;
    struct identity *identity;
    struct consumer_session *session;
    struct link *link;
    struct blob_client *blobs; /* opened when first needed */
    char program[64];
    int timeout_ms;
    int64_t until_ns;           /* the end of all calls; INT64_MAX: none */
    bourse_silence *on_silence; /* NULL: nobody is told */
    void *silence_context;
    bourse_moved *on_moved; /* NULL: nobody is told */
    bourse_stalled *on_stalled;
    /* The call asks for news, which the broker keeps back until there are some. */
    bool is_following;
    bool has_answers;              /* since the last bourse_state ... */
    struct dialogue_state answers; /* ... from this state, the oldest of brokers that follow */
    bool was_ready;                /* the broker was heard at least once */
    char no_quorum[256];           /* why the present request waits; "": it does not */
    int64_t reopen_at_ns;          /* 0: the link stands */
    const struct bourse_job *kept; /* set by submit_keep; NULL: none */
    struct client_listening listening;
    atomic_bool interrupted;
    /* The blob client while a call is inside it, so that bourse_interrupt can reach it. */
    atomic_uintptr_t blobs_busy;
};

/* Fills an error and returns false, so that a failing call can return the value. */
__attribute__((format(printf, 3, 4))) bool
client_fail(struct bourse_error *error, enum bourse_status status, const char *format, ...);
/* Returns true when the market's log key signed the checkpoint, for the market's log and of the
 * size that the reply says. */
bool client_check_checkpoint(const struct market *market, const Bourse__V1__CheckpointReply *reply,
                             struct bourse_error *error);
/* Copies bytes and puts a NUL after them; the caller frees the copy. */
bool client_copy_text(ProtobufCBinaryData from, char **ret_text, struct bourse_error *error);
/* Returns true when the provider's result in a receipt is about what the receipt's leaf says. */
struct receipt;
bool client_receipt_agrees(const struct receipt *receipt);
/* Fills an error for a refusal of the broker, and returns false. */
bool client_refused(struct bourse_error *error, enum reject_code reject, const char *text);
/* Fills an error for a refusal, with the field and the figures that it names, and returns false. */
bool client_rejected(struct bourse_error *error, const struct consumer_event *event);
/* Fills an error for a call that reports a problem and a reject code, such as the blob client's.
 * Returns false. */
bool client_blob_failed(struct bourse *client, struct bourse_error *error, enum reject_code reject,
                        const struct problem *problem);

/* Names the blob of an error that client_blob_failed has filled: `what` with its job, as in "the
 * output 'a' of subtask 2 of job X". A lost blob, and one that cannot be read now, get a text that
 * says what to do. Other errors stay. Returns false. */
bool client_blob_named(struct bourse_error *error, const struct hash32 *hash, const char *what);

/* Opens a connection for an identity and a market that are already loaded. The call takes the
 * identity over, on failure too. */
bool client_open(const struct market *market, struct identity *identity,
                 const struct bourse_options *options, struct bourse **ret_client,
                 struct bourse_error *error);

enum client_wait { CLIENT_EVENT, CLIENT_TIMEOUT, CLIENT_INTERRUPTED, CLIENT_FAILED };
/* Returns the next event that has a meaning, and waits until `deadline_ns` at most. FAILED fills
 * the error. A LOST event starts a reconnect by itself; the caller may still tell the user. */
enum client_wait client_next(struct bourse *client, int64_t deadline_ns,
                             struct consumer_event *ret_event, struct bourse_error *error);

/* Sends a request and waits for its answer. With `reply_type` 0 the answer is an Accepted, and
 * `ret_body` is NULL. Otherwise *ret_body is the body of the reply; the caller frees it with
 * codec_free. */
bool client_call(struct bourse *client, enum message_type type, const ProtobufCMessage *body,
                 enum message_type reply_type, ProtobufCMessage **ret_body,
                 struct bourse_error *error);
/* Sends the request under an id of the caller, otherwise like client_call. */
bool client_call_as(struct bourse *client, const struct id128 *id, enum message_type type,
                    const ProtobufCMessage *body, enum message_type reply_type,
                    ProtobufCMessage **ret_body, struct bourse_error *error);
/* Takes the body of an answer to the listener's request out of the event. */
void client_listening_take(struct bourse *client, struct consumer_event *event);
/* Hands an answer that has come to the listener of the job, and asks for the next. Returns the time
 * at which it must be called again, or INT64_MAX. */
int64_t client_listening_turn(struct bourse *client, const struct id128 *job);
/* Hands over what the broker has by now: all that the job's finished subtasks printed last. */
void client_listening_drain(struct bourse *client, const struct id128 *job);
/* Returns true when the event was an answer to the listener's request. */
bool client_listening_is(const struct consumer_event *event);
/* Waits until the session is ready. */
bool client_ready(struct bourse *client, struct bourse_error *error);
/* Lets heartbeats through during long work elsewhere, and never waits. */
void client_breathe(struct bourse *client);
bool client_interrupted(const struct bourse *client);

/* Returns the blob client and opens it on the first call; returns NULL and fills the error on
 * failure. An interrupt reaches into the blob client between client_blobs_begin and
 * client_blobs_end. */
struct blob_client *client_blobs_begin(struct bourse *client, struct bourse_error *error);
void client_blobs_end(struct bourse *client);

/* Visits results like bourse_outcomes, by pages of `page_rows`. A caller that needs one row asks
 * for one. */
bool client_outcomes(struct bourse *client, const char *id, uint32_t from, uint32_t page_rows,
                     bourse_outcome_visitor *visitor, void *context, struct bourse_error *error);

/* Fills the error about a subtask without a result: no result came yet, or its job ended before one
 * came. Returns false. */
bool client_no_result(struct bourse *client, const char *id, uint32_t index,
                      struct bourse_error *error);

/* Visits every result that bourse_outcomes leaves out, in the order of arrival: earlier attempts
 * and late results. */
bool client_other_outcomes(struct bourse *client, const char *id, bourse_outcome_visitor *visitor,
                           void *context, struct bourse_error *error);

/* Fetches and decodes the manifest of a job; the caller frees it with client_manifest_free. */
bool client_manifest(struct bourse *client, const char *id, Bourse__V1__Manifest **ret_manifest,
                     struct bourse_error *error);
void client_manifest_free(Bourse__V1__Manifest **self);

/* Visits devices like bourse_devices, but only those that satisfy `needs`. The caller owns
 * `needs`. */
bool client_devices(struct bourse *client, Bourse__V1__Requirement *needs,
                    bourse_device_visitor *visitor, void *context, struct bourse_error *error);

/* Reads an id from its text. Fails with USAGE when the text is no id. */
bool client_id_read(const char *text, struct id128 *ret_id, struct bourse_error *error);
/* Reads the value of a unit of work as a job file gives it. NULL means no value. */
struct value;
bool client_value(const char *text, struct value *ret_value, struct bourse_error *error);
bool client_key_read(const char *text, struct key32 *ret_key, struct bourse_error *error);
void client_copy(char *ret_text, size_t capacity, const char *text);
static inline ProtobufCBinaryData client_bytes(void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.len = length, .data = bytes};
}

/* Returns true when `name` may name an account; NULL may. Fills the error when the name has control
 * characters. */
bool client_name_fits(const char *name, struct bourse_error *ret_error);

#endif
