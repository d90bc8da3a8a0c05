/* broker/handover.h - blobs handed over as open files to peers on this machine, for tickets.
 *
 * A ticket is promised on the blob port, where the peer's identity and rights are known, for one blob, once, and for
 * TICKET_LIFE_NS. Whoever brings it to the socket beside the port gets the blob's file, opened anew to be read only:
 * files of the store are whole, durable and never written again. Time is an argument; one thread. */
#ifndef BOURSE_BROKER_HANDOVER_H
#define BOURSE_BROKER_HANDOVER_H

#include "base/checked.h"
#include "base/id.h"
#include "broker/blob_store.h"

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
    int64_t until_ns; /* good before; 0: none */
};

struct handover {
    int port; /* of runtime/descriptor.h; -1: none, and no ticket is promised */
    struct ticket tickets[TICKETS_MAX];
};

/* `token` is random. False: too many are open, and the blob has to go another way. */
bool handover_promise(struct handover *handover, const struct id128 *token, uint32_t account,
                      const struct hash32 *blob, int64_t now_ns);
/* Answers those who wait at the port. */
void handover_serve(struct handover *handover, struct blob_store *store, int64_t now_ns);

#endif
