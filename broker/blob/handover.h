/* A handover gives an open file to a peer on this machine, for a ticket. The peer reads a blob from
 * it, or sends one.
 *
 * The blob port promises a ticket, since it knows the peer's identity and rights. A ticket is for
 * one blob, once, and for TICKET_LIFE_NS. A peer that brings it to the socket beside the port gets
 * the blob's file, opened for reading only. Files of the store are whole, durable and never written
 * again. Or the peer gets the end of a stream that the broker reads (broker/blob/intake.h). Time is
 * an argument; one thread uses this. */
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
    int64_t until_ns; /* end of its life; 0: no ticket */
};

struct handover {
    /* The port of runtime/descriptor.h; -1: there is none, and no ticket is promised. */
    int port;
    struct ticket tickets[TICKETS_MAX];
};

/* Promises a blob's file for the random `token`. Returns false when too many tickets are open: the
 * blob must go another way. */
bool handover_promise(struct handover *handover, const struct id128 *token, uint32_t account,
                      const struct hash32 *blob, int64_t now_ns);
/* Promises `end` for the random `token`, and owns `end` after either result. It is closed after it
 * is handed over, when its time is over, or at once with false when too many tickets are open. */
bool handover_promise_end(struct handover *handover, const struct id128 *token, uint32_t account,
                          int end, int64_t now_ns);
void handover_fini(struct handover *handover);
/* Answers the peers that wait at the port. */
void handover_serve(struct handover *handover, struct blob_store *store, int64_t now_ns);

#endif
