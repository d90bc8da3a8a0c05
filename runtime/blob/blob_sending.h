/* runtime/blob/blob_sending.h - a put under way: what pieces (blob_put.c) and streams
 * (blob_stream.c) share. Inner to the blob client. */
#ifndef BOURSE_RUNTIME_BLOB_BLOB_SENDING_H
#define BOURSE_RUNTIME_BLOB_BLOB_SENDING_H

#include "runtime/blob/blob_client_internal.h"

struct item {
    bool is_done;
    unsigned rewinds;
    uint64_t sent; /* up to here, on this connection */
};

struct put {
    struct blob_client *client;
    const struct blob_source *sources;
    size_t count;
    const struct id128 *job;
    blob_progress *progress;
    void *context;
    struct item *items;
    struct flights flights;
    size_t cursor; /* every item before it is done, or sent whole */
    uint64_t done_bytes;
    uint64_t total_bytes;
    bool is_unread; /* a source could not be */
};

/* The broker has it. */
void sending_finish(struct put *put, size_t index);
void sending_set_job(const struct put *put, protobuf_c_boolean *ret_has,
                     ProtobufCBinaryData *ret_job);
/* `length` bytes of a source from `offset`. */
bool sending_read(const struct blob_source *source, uint64_t offset, size_t length,
                  uint8_t *ret_chunk, struct problem *ret_problem);

/* Sends what is wanted and large through streams, as far as the broker has any: what is not done
 * afterwards goes in pieces, and nothing is in flight. False with the problem: a source could not
 * be read, or the client is to give up. */
bool sending_by_stream(struct put *put, struct problem *ret_problem);

#endif
