/* A peer on this machine gets an open file in exchange for a blob ticket. Through the file,
 * the peer reads a blob or sends a blob.
 *
 * The blob port gives out tickets, because it knows the peer's identity and rights. A ticket serves
 * for one blob, once, within BLOB_TICKET_LIFE_NS. The peer brings the ticket to the socket beside
 * the port. To read, the peer gets the blob's file, opened for reading only. Files of the store are
 * whole, durable and never written again. To send, the peer gets the end of a stream that the
 * broker reads (broker/blob/port/upload_stream.h). Time is an argument. Only one thread calls these
 * functions. */
#ifndef BOURSE_BROKER_BLOB_PORT_BLOB_TICKET_H
#define BOURSE_BROKER_BLOB_PORT_BLOB_TICKET_H

#include "base/checked.h"
#include "base/id.h"
#include "broker/blob/blob_store.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BLOB_TICKETS_MAX = 256,        /* open at a time */
    BLOB_TICKETS_PER_ACCOUNT = 32, /* open at a time for one account */
    BLOB_TICKETS_BATCH = 64,       /* answers before others have their turn */
};
#define BLOB_TICKET_LIFE_NS (10 * NS_PER_S)

struct blob_ticket {
    struct id128 token;
    struct hash32 blob;
    uint32_t account;
    bool has_end;
    /* The end of a stream, instead of the blob's file; owned. */
    int end;
    int64_t until_ns; /* the ticket's end; 0: this entry has no ticket */
};

struct blob_tickets {
    /* The port of runtime/descriptor.h; -1: there is none, and no ticket is promised. */
    int port;
    struct blob_ticket list[BLOB_TICKETS_MAX];
};

/* Promises a blob's file for the random `token`. Returns false when too many tickets are open. The
 * blob then goes over the blob port. */
bool blob_ticket_promise(struct blob_tickets *tickets, const struct id128 *token, uint32_t account,
                         const struct hash32 *blob, int64_t now_ns);
/* Promises `end` for the random `token`, and owns `end` after either result. Returns false, and
 * closes `end` at once, when too many tickets are open. Else `end` is closed after it was handed
 * over, or when the ticket's time is over. */
bool blob_ticket_promise_end(struct blob_tickets *tickets, const struct id128 *token,
                             uint32_t account, int end, int64_t now_ns);
void blob_tickets_fini(struct blob_tickets *tickets);
/* Answers the peers that wait at the port. */
void blob_tickets_serve(struct blob_tickets *tickets, struct blob_store *store, int64_t now_ns);

#endif
