/* consumer/client/client.h - inside of a connection, for the other files of libbourse. Not
 * installed.
 *
 * The pump moves bytes between the link and the pure session; everything else asks it for one
 * event, or for the answer to one request. */
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

struct bourse {
    void *zmq;
    struct market market;
    struct identity *identity;
    struct consumer_session *session;
    struct link *link;
    struct blob_client *blobs; /* opened when first needed */
    char program[64];
    int timeout_ms;
    bool was_ready;                /* the broker has been heard at least once */
    int64_t reopen_at_ns;          /* 0: the link stands */
    const struct bourse_job *kept; /* submit_keep; NULL: none */
    atomic_bool interrupted;
    atomic_uintptr_t
        blobs_busy; /* the blob client while a call is inside it, for bourse_interrupt */
};

/* Fills an error; false, so that a failing call can return it. */
__attribute__((format(printf, 3, 4))) bool
client_fail(struct bourse_error *error, enum bourse_status status, const char *format, ...);
/* An error for what the broker refused. */
bool client_refused(struct bourse_error *error, enum reject_code reject, const char *text);
/* The same with what the refusal names. */
bool client_rejected(struct bourse_error *error, const struct consumer_event *event);
/* An error for a call that takes a problem and a reject code, such as the blob client's. */
bool client_blob_failed(struct bourse *client, struct bourse_error *error, enum reject_code reject,
                        const struct problem *problem);

/* Opens for an identity and a market that are at hand; takes the identity over, also when it fails.
 */
bool client_open(const struct market *market, struct identity *identity, const char *program,
                 int timeout_ms, struct bourse **ret_client, struct bourse_error *error);

enum client_wait { CLIENT_EVENT, CLIENT_TIMEOUT, CLIENT_INTERRUPTED, CLIENT_FAILED };
/* The next event that means something, until `deadline_ns`. FAILED fills the error. A LOST event
 * starts a reconnect by itself; the caller may still tell somebody. */
enum client_wait client_next(struct bourse *client, int64_t deadline_ns,
                             struct consumer_event *ret_event, struct bourse_error *error);

/* Sends a request and waits for its answer. With `reply_type` 0 an Accepted is expected, and
 * `ret_body` is NULL; else *ret_body is the reply's, freed with codec_free. */
bool client_call(struct bourse *client, enum message_type type, const ProtobufCMessage *body,
                 enum message_type reply_type, ProtobufCMessage **ret_body,
                 struct bourse_error *error);
/* The same under an id of the caller's. */
bool client_call_as(struct bourse *client, const struct id128 *id, enum message_type type,
                    const ProtobufCMessage *body, enum message_type reply_type,
                    ProtobufCMessage **ret_body, struct bourse_error *error);
/* Waits until the session stands. */
bool client_ready(struct bourse *client, struct bourse_error *error);
/* Lets heartbeats through during long work elsewhere; never waits. */
void client_breathe(struct bourse *client);
bool client_interrupted(const struct bourse *client);

/* The blob client, opened on the first call; NULL with the error filled. Between client_blobs_begin
 * and client_blobs_end an interrupt reaches into it. */
struct blob_client *client_blobs_begin(struct bourse *client, struct bourse_error *error);
void client_blobs_end(struct bourse *client);

/* bourse_outcomes by pages of `page_rows`: who wants one row asks for one. */
bool client_outcomes(struct bourse *client, const char *id, uint32_t from, uint32_t page_rows,
                     bourse_outcome_visitor *visitor, void *context, struct bourse_error *error);

/* The error of a subtask without a result: it has none yet, or its job ended before it had one. */
bool client_no_result(struct bourse *client, const char *id, uint32_t index,
                      struct bourse_error *error);

/* Every result that bourse_outcomes leaves out: attempts before the one that counts, and late ones.
 * As they came. */
bool client_other_outcomes(struct bourse *client, const char *id, bourse_outcome_visitor *visitor,
                           void *context, struct bourse_error *error);

/* The manifest of a job, decoded; the caller frees it with client_manifest_free. */
bool client_manifest(struct bourse *client, const char *id, Bourse__V1__Manifest **ret_manifest,
                     struct bourse_error *error);
void client_manifest_free(Bourse__V1__Manifest **self);

/* bourse_devices, of those that satisfy `needs`, which is the caller's. */
bool client_devices(struct bourse *client, Bourse__V1__Requirement *needs,
                    bourse_device_visitor *visitor, void *context, struct bourse_error *error);

/* Text to ids and back; `what` is for the error. */
bool client_id_read(const char *text, struct id128 *ret_id, struct bourse_error *error);
/* What a unit of work is worth, as a job file says it; NULL: nothing is said. */
struct value;
bool client_value(const char *text, struct value *ret_value, struct bourse_error *error);
bool client_key_read(const char *text, struct key32 *ret_key, struct bourse_error *error);
void client_copy(char *ret_text, size_t capacity, const char *text);
static inline ProtobufCBinaryData client_bytes(void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.len = length, .data = bytes};
}

/* Whether `name` (NULL: none) may name an account: false with the reason where it has control
 * characters. */
bool client_name_fits(const char *name, struct bourse_error *ret_error);

#endif
