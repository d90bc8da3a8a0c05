/* A handover gives a peer on this machine an open file in exchange for a ticket. Through the file,
 * the peer reads a blob or sends a blob.
 *
 * The blob port gives out tickets, because it knows the peer's identity and rights. A ticket serves
 * for one blob, once, within TICKET_LIFE_NS. The peer brings the ticket to the socket beside the
 * port. To read, the peer gets the blob's file, opened for reading only. Files of the store are
 * whole, durable and never written again. To send, the peer gets the end of a stream that the
 * broker reads (broker/blob/intake.h). Time is an argument. Only one thread calls these
 * functions. */
#ifndef BOURSE_BROKER_BLOB_HANDOVER_H
#define BOURSE_BROKER_BLOB_HANDOVER_H

#include "base/checked.h"
#include "base/id.h"
#include "broker/blob/blob_store.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TICKETS_MAX = 256,        /* open at a time */
    TICKETS_PER_ACCOUNT = 32, /* open at a time for one account */
    HANDOVER_BATCH = 64,      /* answers before others have their turn */
};
#define TICKET_LIFE_NS (10 * NS_PER_S)

struct ticket {
    struct id128 token;
    struct hash32 blob;
    uint32_t account;
    bool has_end;
    /* The end of a stream, instead of the blob's file; owned. */
    int end;
    int64_t until_ns; /* the ticket's end; 0: this entry has no ticket */
};

struct handover {
    /* The port of runtime/descriptor.h; -1: there is none, and no ticket is promised. */
    int port;
    struct ticket tickets[TICKETS_MAX];
};

/* Promises a blob's file for the random `token`. Returns false when too many tickets are open. The
 * blob then goes over the blob port. */
bool handover_promise(struct handover *handover, const struct id128 *token, uint32_t account,
                      const struct hash32 *blob, int64_t now_ns);
/* Promises `end` for the random `token`, and owns `end` after either result. Returns false, and
 * closes `end` at once, when too many tickets are open. Else `end` is closed after the handover, or
 * when the ticket's time is over. */
bool handover_promise_end(struct handover *handover, const struct id128 *token, uint32_t account,
                          int end, int64_t now_ns);
void handover_fini(struct handover *handover);
/* Answers the peers that wait at the port. */
void handover_serve(struct handover *handover, struct blob_store *store, int64_t now_ns);

#endif
