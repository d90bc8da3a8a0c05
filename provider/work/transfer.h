/* provider/work/transfer.h moves blobs to and from the broker. The module fetches for the store,
 * and stores the outputs of subtasks.
 *
 * An absent broker fails nothing. Both directions try again until the broker is back, until it
 * refuses, or until transfer_stop. A blob that the broker cannot read for ten seconds is missing.
 * Waiting outcomes are stored in groups, with one call for all the small outputs of many subtasks
 * of a job. A round trip and a sync cost more than the bytes. */
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

/* Reports that the outputs are durable at the broker, or that the outcomes say why not. Called on a
 * storing thread, or within transfer_submit when there is nothing to store. Takes over the outcomes
 * of the list. */
typedef void transfer_done(void *context, struct list_link *outcomes);

struct transfer_config {
    void *zmq;            /* a zmq context */
    const char *endpoint; /* endpoint of the blob port; copied */
    struct key32 server;
    const struct identity *identity; /* borrowed */
    transfer_done *done;
    void *context;
};

struct transfer;
bool transfer_open(const struct transfer_config *config, struct transfer **ret_transfer,
                   struct problem *ret_problem);
/* Interrupts what is under way. Waiting outcomes are handed to `done` as they are. */
void transfer_stop(struct transfer *transfer);
void transfer_close(struct transfer **self);

/* store_config.fetch may be this function, with the transfer as its context and TRANSFER_FETCHERS
 * threads. */
store_fetch transfer_fetch;
store_lend transfer_lend; /* likewise, for store_config.lend */
/* Stores the outputs of the outcomes, then calls `done`. Takes over the outcomes of the list. */
void transfer_submit(struct transfer *transfer, struct list_link *outcomes);

#endif
