/* An intake is the upload of one large blob by a peer on this machine, through a stream of its own.
 *
 * Over the blob port, one thread after the other seals, sends, unseals and stores the pieces of a
 * blob. For an intake, the peer gets one end of a socket pair (broker/blob/handover.h). Two threads
 * for this blob alone read the other end, hash and write. The peer has no file of the store open.
 * The threads hash and write their own copy, so later changes by the peer have no effect.
 *
 * Every failure ends the intake. The peer then sends pieces over the blob port, and the answers
 * give the reason. Streams are few, and each account has its share. A peer without a stream sends
 * pieces, so holding a stream gains nothing. One thread owns the intakes, and ended intakes wait in
 * a queue for this thread. */
#ifndef BOURSE_BROKER_BLOB_INTAKE_H
#define BOURSE_BROKER_BLOB_INTAKE_H

#include "base/id.h"
#include "broker/storage/room.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INTAKES_MAX = 16,
    INTAKES_PER_ACCOUNT = 4,
    INTAKE_SILENCE_MS = 10000, /* a stream ends after this time without a byte */
};

struct intake_facts {
    struct id128 token;
    uint32_t account; /* account of the peer */
    struct hash32 hash;
    uint64_t size;
    size_t upload; /* number from blob_store_lend */
    int fd;        /* the file, empty; the caller keeps it open until the end */
};

enum intake_status {
    INTAKE_WHOLE,    /* all bytes are in the file, durable, and have the hash */
    INTAKE_ENDED,    /* the bytes are not complete or not right */
    INTAKE_UNSYNCED, /* the disk failed, and the broker must stop (P11) */
};

struct intakes;

/* Creates the intakes. The threads read `room` all the time, and take no bytes while its state is
 * not FREE. Returns NULL when memory or descriptors are short. */
struct intakes *intakes_create(const struct room *room);
/* Ends all streams and waits for their threads; the files stay as they are. */
void intakes_destroy(struct intakes **self);

bool intakes_have_room(const struct intakes *intakes, uint32_t account);
/* Starts an intake; the caller has checked intakes_have_room. *ret_end is the peer's end, which the
 * caller hands over or closes. Returns false when threads or descriptors are short. */
bool intakes_begin(struct intakes *intakes, const struct intake_facts *facts, int *ret_end);
/* Returns the place, below INTAKES_MAX, of the account's intake with this token. Returns -1 when
 * there is no such intake, or when intakes_take_ended has taken it. */
int intakes_find(const struct intakes *intakes, uint32_t account, const struct id128 *token);

/* Returns a descriptor that is readable when an intake has ended. */
int intakes_descriptor(const struct intakes *intakes);
struct intake_end {
    int place; /* from now on free for another intake */
    size_t upload;
    struct hash32 hash;
    uint64_t size;
    enum intake_status status;
};
/* Takes the next ended intake. Returns false when there is none. */
bool intakes_take_ended(struct intakes *intakes, struct intake_end *ret_end);

#endif
