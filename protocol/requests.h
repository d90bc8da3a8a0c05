/* protocol/requests.h - the requests of a dialogue that have no answer yet, in the order asked.
 *
 * What a resend repeats (time, signature, body) is fixed once, by request_stamp. Inner to the
 * dialogue. Pure. */
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
    bool is_stamped; /* created_ms, and the signature where one is needed, are made */
    bool is_sent;    /* on this connection */
    int64_t created_ms;
    bool is_signed;
    struct signature64 signature;
    uint8_t *body; /* owned */
    uint32_t body_length;
};

enum request_status { REQUEST_OK, REQUEST_TOO_LARGE, REQUEST_OUT_OF_MEMORY };

/* Encodes the body. Any status but OK leaves *ret_request alone. */
enum request_status requests_make(enum message_type type, const struct id128 *id,
                                  const ProtobufCMessage *body, struct request **ret_request);
/* Frees a request that is in no list. */
void requests_free(struct request **self);
/* The envelope, without session and sequence; the body stays the request's. */
struct envelope request_envelope(const struct request *request);
/* Fixes what a resend repeats, unless it is fixed. False when out of memory. */
bool request_stamp(struct request *request, const struct identity *identity,
                   const struct id128 *cluster, int64_t created_ms);

struct requests {
    struct list_link list;
    size_t count;
    size_t bytes; /* of the bodies */
};

void requests_init(struct requests *requests);
void requests_fini(struct requests *requests);
/* Takes the request over. */
void requests_add(struct requests *requests, struct request *request);
void requests_drop(struct requests *requests, struct request *request);
/* NULL when there is none. Answers come in the order asked, near enough: the search ends early. */
struct request *requests_find(const struct requests *requests, const struct id128 *id);
/* The first that is not sent; NULL when all are. They go out in order, so it looks from the end. */
struct request *requests_next_unsent(const struct requests *requests);
/* Nothing is sent: on a new connection, or where the broker dropped some. */
void requests_unsend(struct requests *requests);
/* Stamps all, those anew that would be from the future: log time stands still while the broker is
 * away, ours went on. The id stays, and the broker tells a repeat by id and body, so nothing is
 * done twice. False when out of memory. */
bool requests_stamp(struct requests *requests, const struct identity *identity,
                    const struct id128 *cluster, int64_t created_ms);

#endif
