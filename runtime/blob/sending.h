/* runtime/blob/sending.h describes a put under way. Pieces (blob_put.c) and streams
 * (blob_stream.c) share it; the header is private to the blob client. */
#ifndef BOURSE_RUNTIME_BLOB_SENDING_H
#define BOURSE_RUNTIME_BLOB_SENDING_H

#include "runtime/blob/flight.h"

struct item {
    bool is_done;
    unsigned rewinds;
    uint64_t sent; /* sent up to here, on this connection */
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
    size_t cursor; /* every item before it is done, or fully sent */
    uint64_t done_bytes;
    uint64_t total_bytes;
    bool is_unread; /* a source could not be read */
};

/* Marks an item as stored by the broker. */
void sending_finish(struct put *put, size_t index);
void sending_set_job(const struct put *put, protobuf_c_boolean *ret_has,
                     ProtobufCBinaryData *ret_job);
/* Reads `length` bytes of a source from `offset`. */
bool sending_read(const struct blob_source *source, uint64_t offset, size_t length,
                  uint8_t *ret_chunk, struct problem *ret_problem);

/* Sends large wanted blobs through streams, as far as the broker offers any. Blobs that are not
 * done afterwards go in pieces; nothing is in flight then. Returns false with the problem when a
 * source could not be read, or the client must give up. */
bool sending_by_stream(struct put *put, struct problem *ret_problem);

#endif
