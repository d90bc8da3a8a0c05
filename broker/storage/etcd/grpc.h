/* broker/storage/etcd/grpc.h is the part of gRPC that needs no socket.
 *
 * A message on the wire has one byte that says whether it is compressed, which we never ask for,
 * and its length in four bytes, the highest first. The status comes in headers after the body. The
 * code is pure. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_GRPC_H
#define BOURSE_BROKER_STORAGE_ETCD_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GRPC_PREFIX_BYTES = 5, GRPC_TEXT_SIZE = 200 };

void grpc_prefix_write(size_t length, uint8_t ret_prefix[GRPC_PREFIX_BYTES]);
/* Finds the one message of a unary answer. Returns false when the bytes are not exactly one
 * uncompressed message. */
bool grpc_message_find(const uint8_t *bytes, size_t length, const uint8_t **ret_message,
                       size_t *ret_length);

struct grpc_status {
    bool is_known;             /* the server sent a status */
    unsigned code;             /* 0: ok */
    char text[GRPC_TEXT_SIZE]; /* printable ASCII, cut */
};
/* Looks at one line of the headers or trailers, and keeps the status where the line has it. */
void grpc_status_note(struct grpc_status *status, const char *line, size_t length);

/* An outcome says what is known of a call: the journal decides by nothing else. */
enum grpc_outcome {
    GRPC_ANSWERED,
    GRPC_UNSENT,    /* the member could not be reached: it has executed nothing */
    GRPC_LOST,      /* the request may have been executed, may be still, or never */
    GRPC_NO_SPACE,  /* etcd has reached its quota: it has executed nothing */
    GRPC_TOO_LARGE, /* the request is larger than etcd takes */
    GRPC_OTHER,     /* the member belongs to another etcd cluster than the others */
    GRPC_REFUSED    /* the member refuses the call as such; `text` has its reason */
};
/* Returns the outcome of a call with this status, by etcd's own use of the codes. */
enum grpc_outcome grpc_status_outcome(const struct grpc_status *status);

#endif
