/* protocol/requests.h keeps the unanswered requests of a dialogue, in the order asked.
 *
 * request_stamp fixes the parts that a resend repeats: time, signature, body. The header is private
 * to the dialogue. */
#ifndef BOURSE_PROTOCOL_REQUESTS_H
#define BOURSE_PROTOCOL_REQUESTS_H

#include "base/list.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/identity.h"
#include "protocol/message.h"

struct request {
    struct list_link link;
    struct id128 id;
    enum message_type type;
    /* True when created_ms, and the signature where one is needed, are set. */
    bool is_stamped;
    bool is_sent;    /* on this connection */
    bool is_waiting; /* NO_QUORUM came: it is sent again after a pause */
    int64_t created_ms;
    bool is_signed;
    struct signature64 signature;
    uint8_t *body; /* owned */
    uint32_t body_length;
};

enum request_status { REQUEST_OK, REQUEST_TOO_LARGE, REQUEST_OUT_OF_MEMORY };

/* Encodes the body into a new request. Any status but REQUEST_OK leaves *ret_request alone. */
enum request_status requests_make(enum message_type type, const struct id128 *id,
                                  const ProtobufCMessage *body, struct request **ret_request);
/* Frees a request that is in no list. */
void requests_free(struct request **self);
/* Returns the envelope without session and sequence; the body stays the request's. */
struct envelope request_envelope(const struct request *request);
/* Fixes the parts that a resend repeats, unless they are fixed. Returns false when memory is
 * short. */
bool request_stamp(struct request *request, const struct identity *identity,
                   const struct id128 *cluster, int64_t created_ms);

struct requests {
    struct list_link list;
    size_t count;
    size_t bytes; /* bytes of the bodies */
};

void requests_init(struct requests *requests);
void requests_fini(struct requests *requests);
/* Adds the request and takes it over. */
void requests_add(struct requests *requests, struct request *request);
void requests_drop(struct requests *requests, struct request *request);
/* Returns the request, or NULL when there is none. Answers come nearly in the order asked, so the
 * search ends early. */
struct request *requests_find(const struct requests *requests, const struct id128 *id);
/* Returns the first unsent request, or NULL when all are sent. Requests go out in order, so the
 * search begins at the end. */
struct request *requests_next_unsent(const struct requests *requests);
/* Marks every request unsent: on a new connection, or after the broker dropped some. */
void requests_unsend(struct requests *requests);
/* Marks every waiting request unsent. */
void requests_unsend_waiting(struct requests *requests);
/* Stamps all requests, and stamps again those that would be from the future. Log time stands still
 * while the broker is away, but ours went on. The id stays, and the broker recognizes a repeat by
 * id and body, so nothing is done twice. Returns false when memory is short. */
bool requests_stamp(struct requests *requests, const struct identity *identity,
                    const struct id128 *cluster, int64_t created_ms);

#endif
