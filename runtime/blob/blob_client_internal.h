/* runtime/blob/blob_client_internal.h keeps track of requests in flight on the blob port. Puts and
 * gets share the functions; the header is private to the blob client. */
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
    FLIGHT_CHUNK_BYTES = 1 << 20, /* data in one request */
    FLIGHT_TRIES = 3,             /* new connections in a row without an answer */
    FLIGHT_SILENCE_MS = 5000,     /* after so long the connection is given up */
    FLIGHT_BUSY_MS = 100,         /* wait before a retry at a busy broker */
    FLIGHT_BUSY_MAX = 300,        /* times in a row */
    FLIGHT_NO_FILES_S = 60,       /* pause without files after no answer to a ticket */
};

struct flight {
    struct id128 id;
    size_t source; /* puts: index of the source */
    uint64_t offset;
    uint32_t length;
    bool is_stale; /* true: its answer no longer matters */
};

struct flights { /* in the order asked */
    struct flight list[FLIGHT_MAX];
    size_t count;
};

enum flight_status {
    FLIGHT_ANSWERED,
    FLIGHT_ROOM, /* nothing was in flight; now the connection takes messages */
    /* The connection was silent or broken: a fresh one is open, and nothing is in flight. */
    FLIGHT_LOST,
    FLIGHT_ENDED, /* interrupted, or tried too often; the problem has the reason */
};

struct flight_answer {
    struct flight flight;
    enum message_type type; /* the expected one, or MESSAGE_REJECT */
    ProtobufCMessage *body; /* the caller frees it with codec_free */
};

/* Returns the socket for file tickets. Returns NULL when there is none, and for FLIGHT_NO_FILES_S
 * after flight_no_files. */
const char *flight_files(const struct blob_client *client);
void flight_no_files(struct blob_client *client);
/* Returns the hasher for large pieces; may be NULL. */
struct hasher *flight_hasher(struct blob_client *client);
/* Returns true with the problem when the client must give up. */
bool flight_interrupted(const struct blob_client *client, struct problem *ret_problem);

/* Sends a request and records it as in flight (there is room). Returns false when it cannot go out
 * now. */
bool flight_send(struct blob_client *client, struct flights *flights, const struct flight *what,
                 enum message_type type, const ProtobufCMessage *body);
/* The two functions send in two steps, for a body with a field that points to `hole`.
 * flight_draft() returns room for the field's bytes, which the caller writes before flight_leave().
 * flight_draft() returns NULL when memory is short. */
uint8_t *flight_draft(struct blob_client *client, struct flight *flight, enum message_type type,
                      const ProtobufCMessage *body, const uint8_t *hole);
bool flight_leave(struct blob_client *client, struct flights *flights, const struct flight *flight);
/* Waits for the next answer to a flight, and removes the flight. With nothing in flight, it waits
 * until the connection takes messages. *ret_answer is written for FLIGHT_ANSWERED. */
enum flight_status flight_await(struct blob_client *client, struct flights *flights,
                                enum message_type expected, struct flight_answer *ret_answer,
                                struct problem *ret_problem);

/* Passes all bytes of a blob of `size` bytes from an open file to `take`. Returns false when the
 * file does not hold the blob. With *ret_fatal and the problem the client must give up, or `take`
 * failed. Several calls may run on threads of their own. */
bool flight_take_file(struct blob_client *client, const struct blob_want *want, uint64_t size,
                      int fd, blob_take *take, bool *ret_fatal, struct problem *ret_problem);

/* Returns true when a refusal says "not now". The call then waits a little and counts, so that the
 * caller asks again. */
bool flight_is_passing(struct blob_client *client, const Bourse__V1__Reject *reject);
/* Reports a final refusal. Always returns false. */
bool flight_refused(const Bourse__V1__Reject *reject, enum reject_code *ret_reject,
                    struct problem *ret_problem);

#endif
