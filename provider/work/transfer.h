/* provider/work/transfer.h - blobs to and from the broker: fetching for the store, storing what
 * subtasks left.
 *
 * An absent broker fails nothing: both sides try again until it is back, until the broker refuses,
 * or until transfer_stop. A blob that it says it cannot read for ten seconds is missing. Outcomes
 * that wait are stored in groups, one call for all the small outputs of many subtasks of a job: a
 * round trip and a sync cost more than the bytes. */
#ifndef BOURSE_PROVIDER_WORK_TRANSFER_H
#define BOURSE_PROVIDER_WORK_TRANSFER_H

#include "base/id.h"
#include "base/problem.h"
#include "protocol/identity.h"
#include "provider/work/outcome.h"
#include "provider/work/store.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    TRANSFER_FETCHERS = 2,
    TRANSFER_STORERS = 2,
    TRANSFER_GROUP = 32, /* outcomes stored in one call */
};

/* The outputs are durable at the broker, or the outcomes say why not. Called on a storing thread,
 * or within transfer_submit when there is nothing to store; takes the outcomes of the list over. */
typedef void transfer_done(void *context, struct list_link *outcomes);

struct transfer_config {
    void *zmq;            /* a zmq context */
    const char *endpoint; /* of the blob port; copied */
    struct key32 server;
    const struct identity *identity; /* borrowed */
    transfer_done *done;
    void *context;
};

struct transfer;
bool transfer_open(const struct transfer_config *config, struct transfer **ret_transfer,
                   struct problem *ret_problem);
/* Interrupts what is under way; what waits is handed to `done` as it is. */
void transfer_stop(struct transfer *transfer);
void transfer_close(struct transfer **self);

/* For store_config.fetch, with the transfer as its context and TRANSFER_FETCHERS threads. */
store_fetch transfer_fetch;
store_lend transfer_lend; /* likewise for store_config.lend */
/* Stores what the outcomes keep, then calls `done`. Takes the outcomes of the list over. */
void transfer_submit(struct transfer *transfer, struct list_link *outcomes);

#endif
