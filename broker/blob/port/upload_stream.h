/* An upload stream carries one large blob from a peer on this machine.
 *
 * Over the blob port, one thread after the other seals, sends, unseals and stores the pieces of a
 * blob. For a stream, the peer gets one end of a socket pair (broker/blob/port/blob_ticket.h). Two
 * threads for this blob alone read the other end, hash and write. The peer has no file of the store
 * open. The threads hash and write their own copy, so later changes by the peer have no effect.
 *
 * Every failure ends the stream. The peer then sends pieces over the blob port, and the answers
 * give the reason. Streams are few, and each account has its share. A peer without a stream sends
 * pieces, so holding a stream gains nothing. One thread owns the streams, and ended streams wait in
 * a queue for this thread. */
#ifndef BOURSE_BROKER_BLOB_PORT_UPLOAD_STREAM_H
#define BOURSE_BROKER_BLOB_PORT_UPLOAD_STREAM_H

#include "base/id.h"
#include "broker/storage/disk_reserve.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    UPLOAD_STREAMS_MAX = 16,
    UPLOAD_STREAMS_PER_ACCOUNT = 4,
    UPLOAD_STREAM_SILENCE_MS = 10000, /* a stream ends after this time without a byte */
};

struct upload_stream_facts {
    struct id128 token;
    uint32_t account; /* account of the peer */
    struct hash32 hash;
    uint64_t size;
    size_t upload; /* number from blob_store_lend */
    int fd;        /* the file, empty; the caller keeps it open until the end */
};

enum upload_stream_status {
    UPLOAD_STREAM_WHOLE,    /* all bytes are in the file, durable, and have the hash */
    UPLOAD_STREAM_ENDED,    /* the bytes are not complete or not right */
    UPLOAD_STREAM_UNSYNCED, /* the disk failed, and the broker must stop (P11) */
};

struct upload_streams;

/* Creates the streams. The threads read `reserve` all the time, and take no bytes while its state
 * is not UNUSED. Returns NULL when memory or descriptors are short. */
struct upload_streams *upload_streams_create(const struct disk_reserve *reserve);
/* Ends all streams and waits for their threads; the files stay as they are. */
void upload_streams_destroy(struct upload_streams **self);

bool upload_streams_have_room(const struct upload_streams *streams, uint32_t account);
/* Starts a stream; the caller has checked upload_streams_have_room. *ret_end is the peer's end,
 * which the caller hands over or closes. Returns false when threads or descriptors are short. */
bool upload_streams_begin(struct upload_streams *streams, const struct upload_stream_facts *facts,
                          int *ret_end);
/* Returns the place, below UPLOAD_STREAMS_MAX, of the account's stream with this token. Returns -1
 * when there is no such stream, or when upload_streams_take_ended has taken it. */
int upload_streams_find(const struct upload_streams *streams, uint32_t account,
                        const struct id128 *token);

/* Returns a descriptor that is readable when a stream has ended. */
int upload_streams_descriptor(const struct upload_streams *streams);
struct upload_stream_end {
    int place; /* from now on free for another stream */
    size_t upload;
    struct hash32 hash;
    uint64_t size;
    enum upload_stream_status status;
};
/* Takes the next ended stream. Returns false when there is none. */
bool upload_streams_take_ended(struct upload_streams *streams, struct upload_stream_end *ret_end);

#endif
