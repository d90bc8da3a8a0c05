/* broker/blob/intake.h - large blobs whose bytes come through a stream of their own, from peers on
 * this machine.
 *
 * What comes in pieces over the blob port is sealed, sent, unsealed, and stored by one thread after
 * the other. Here the peer was handed one end of a socket pair (broker/blob/handover.h), and two
 * threads for this blob alone read the other, hash and write. The peer has nothing open that is the
 * store's, and what is hashed and written is the threads' own copy: what he changes later changes
 * nothing. Whatever goes wrong just ends the upload: he sends pieces then, and their answers say
 * why. Streams are few, and an account has its share; who finds none sends pieces, so that none is
 * worth holding.
 *
 * One thread owns the intakes; what has ended waits in a queue for it. */
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
    INTAKE_SILENCE_MS = 10000, /* without a byte: the stream ends */
};

struct intake_facts {
    struct id128 token;
    uint32_t account; /* of the peer */
    struct hash32 hash;
    uint64_t size;
    size_t upload; /* as blob_store_lend has it */
    int fd;        /* the file, empty; borrowed until the intake has ended */
};

enum intake_status {
    INTAKE_WHOLE,    /* all bytes are in the file, durable, and have the hash */
    INTAKE_ENDED,    /* they are not */
    INTAKE_UNSYNCED, /* the disk failed: stop (P11) */
};

struct intakes;

/* `room` is looked at all along: while it is not free no bytes are taken. NULL: out of memory or
 * descriptors. */
struct intakes *intakes_create(const struct room *room);
/* Ends all streams and waits for their threads; the files are as they are. */
void intakes_destroy(struct intakes **self);

bool intakes_have_room(const struct intakes *intakes, uint32_t account);
/* Starts one for which there is room. *ret_end is the peer's end, which the caller hands over or
 * closes. False: no threads or descriptors. */
bool intakes_begin(struct intakes *intakes, const struct intake_facts *facts, int *ret_end);
/* The place, below INTAKES_MAX, of the account's intake of that token; -1: there is none, or it was
 * taken when ended. */
int intakes_find(const struct intakes *intakes, uint32_t account, const struct id128 *token);

/* Readable when one has ended. */
int intakes_descriptor(const struct intakes *intakes);
struct intake_end {
    int place; /* free again */
    size_t upload;
    struct hash32 hash;
    uint64_t size;
    enum intake_status status;
};
/* The next one that ended; false: none. */
bool intakes_take_ended(struct intakes *intakes, struct intake_end *ret_end);

#endif
