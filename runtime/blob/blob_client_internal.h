/* runtime/blob/blob_client_internal.h - requests of the blob port on their way: what puts and gets have in
 * common. Inner to the blob client. */
#ifndef BOURSE_RUNTIME_BLOB_BLOB_CLIENT_INTERNAL_H
#define BOURSE_RUNTIME_BLOB_BLOB_CLIENT_INTERNAL_H

#include "runtime/blob/blob_client.h"

#include "protocol/codec.h"
#include "runtime/hasher.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FLIGHT_MAX = 12,              /* requests without an answer */
    FLIGHT_CHUNK_BYTES = 1 << 20, /* data in one of them */
    FLIGHT_TRIES = 3,             /* new connections in a row that brought no answer */
    FLIGHT_SILENCE_MS = 5000,     /* after which the connection is given up */
    FLIGHT_BUSY_MS = 100,         /* wait before asking a busy broker again */
    FLIGHT_BUSY_MAX = 300,        /* times in a row */
    FLIGHT_NO_FILES_S = 60,       /* without files after nobody answered for a ticket */
};

struct flight {
    struct id128 id;
    size_t source; /* puts: which of the sources */
    uint64_t offset;
    uint32_t length;
    bool is_stale; /* its answer does not matter any more */
};

struct flights { /* in the order asked */
    struct flight list[FLIGHT_MAX];
    size_t count;
};

enum flight_status {
    FLIGHT_ANSWERED,
    FLIGHT_ROOM,  /* nothing was in flight; now something can be sent */
    FLIGHT_LOST,  /* silence or a broken connection: a fresh one stands, nothing is in flight */
    FLIGHT_ENDED, /* give up: interrupted, or tried too often; the problem says why */
};

struct flight_answer {
    struct flight flight;
    enum message_type type; /* the expected one, or MESSAGE_REJECT */
    ProtobufCMessage *body; /* the caller frees with codec_free */
};

/* Where tickets for files are taken to; NULL: nowhere, and for FLIGHT_NO_FILES_S after
 * flight_no_files. */
const char *flight_files(const struct blob_client *client);
void flight_no_files(struct blob_client *client);
/* For what comes in large pieces; may be NULL. */
struct hasher *flight_hasher(struct blob_client *client);
/* True with the problem once the client is to give up. */
bool flight_interrupted(const struct blob_client *client, struct problem *ret_problem);

/* Sends a request and notes it as in flight (there is room). False when it cannot go out now. */
bool flight_send(struct blob_client *client, struct flights *flights, const struct flight *what,
                 enum message_type type, const ProtobufCMessage *body);
/* The same in two steps, for a body with a field that points to `hole`: room for that field's
 * bytes, which are to be written before it leaves. NULL when there is no memory. */
uint8_t *flight_draft(struct blob_client *client, struct flight *flight, enum message_type type,
                      const ProtobufCMessage *body, const uint8_t *hole);
bool flight_leave(struct blob_client *client, struct flights *flights, const struct flight *flight);
/* Waits for the next answer to anything in flight, which is then no longer in flight; with nothing
 * in flight, until the connection takes messages. Writes *ret_answer when ANSWERED. */
enum flight_status flight_await(struct blob_client *client, struct flights *flights,
                                enum message_type expected, struct flight_answer *ret_answer,
                                struct problem *ret_problem);

/* All of a blob of `size` bytes out of an open file, to `take`. False: the file does not bring it,
 * or with *ret_fatal and the problem the client is to give up, or `take` said so. Several may be
 * under way on threads of their own. */
bool flight_take_file(struct blob_client *client, const struct blob_want *want, uint64_t size,
                      int fd, blob_take *take, bool *ret_fatal, struct problem *ret_problem);

/* True when a refusal says "not now": waits a little and counts, so that the caller asks again. */
bool flight_is_passing(struct blob_client *client, const Bourse__V1__Reject *reject);
/* Reports a refusal for good. Always false. */
bool flight_refused(const Bourse__V1__Reject *reject, enum reject_code *ret_reject,
                    struct problem *ret_problem);

#endif
