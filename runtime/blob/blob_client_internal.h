/* `struct blob_client` is one connection; blob_client.c and flight.c share it. */
#ifndef BOURSE_RUNTIME_BLOB_BLOB_CLIENT_INTERNAL_H
#define BOURSE_RUNTIME_BLOB_BLOB_CLIENT_INTERNAL_H

#include "runtime/blob/blob_client.h"
#include "runtime/hasher.h"
#include "runtime/link.h"

#include <stdatomic.h>
#include <stdint.h>

struct blob_client {
    struct link *link;
    struct hasher *hasher; /* made at the first use */
    char files[108];       /* the socket for tickets; empty: none */
    int64_t files_from_ns;
    atomic_bool interrupted;
    uint64_t sequence;
    unsigned tries; /* connections in a row without an answer */
    unsigned busy;  /* refusals in a row that said "not now" */
    int64_t heard_ns;
    char endpoint[LIMIT_ENDPOINT_BYTES + 1];
    blob_where *where; /* NULL: the endpoint stays */
    void *where_context;
    bool is_astray;    /* the broker follows another one: the next wait begins elsewhere */
    blob_meter *meter; /* NULL: none */
    void *meter_context;
    uint64_t draft_bytes; /* of the message that flight_leave sends */
};

/* Notes the endpoint of the connection, and the socket for tickets beside it. */
void blob_client_use(struct blob_client *client, const char *endpoint);

#endif
