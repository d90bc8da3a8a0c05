/* broker/blob/handover.h - open files handed over to peers on this machine, for tickets: blobs, and
 * ways to send some.
 *
 * A ticket is promised on the blob port, where the peer's identity and rights are known, for one
 * blob, once, and for TICKET_LIFE_NS. Whoever brings it to the socket beside the port gets the
 * blob's file, opened anew to be read only: files of the store are whole, durable and never written
 * again. Or he gets the end of a stream that is read here (broker/blob/intake.h). Time is an
 * argument; one thread. */
#ifndef BOURSE_BROKER_BLOB_HANDOVER_H
#define BOURSE_BROKER_BLOB_HANDOVER_H

#include "base/checked.h"
#include "base/id.h"
#include "broker/blob/blob_store.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TICKETS_MAX = 256,        /* open at a time */
    TICKETS_PER_ACCOUNT = 32, /* of these, of one account */
    HANDOVER_BATCH = 64,      /* answered before others have their turn */
};
#define TICKET_LIFE_NS (10 * NS_PER_S)

struct ticket {
    struct id128 token;
    struct hash32 blob;
    uint32_t account;
    bool has_end;
    int end;          /* of a stream, instead of the blob's file; owned */
    int64_t until_ns; /* good before; 0: none */
};

struct handover {
    int port; /* of runtime/descriptor.h; -1: none, and no ticket is promised */
    struct ticket tickets[TICKETS_MAX];
};

/* `token` is random. False: too many are open, and the blob has to go another way. */
bool handover_promise(struct handover *handover, const struct id128 *token, uint32_t account,
                      const struct hash32 *blob, int64_t now_ns);
/* The same for `end`, which is the handover's in any case: closed when it was handed over, when its
 * time is over, or at once when too many are open. */
bool handover_promise_end(struct handover *handover, const struct id128 *token, uint32_t account,
                          int end, int64_t now_ns);
void handover_fini(struct handover *handover);
/* Answers those who wait at the port. */
void handover_serve(struct handover *handover, struct blob_store *store, int64_t now_ns);

#endif
