/* provider/work/transfer.h moves blobs to and from the broker. The module fetches for the store,
 * and stores the outputs of subtasks.
 *
 * A transfer does not fail because the broker is absent. Both directions try again until the broker
 * is back, until the broker refuses, or until transfer_stop(). A blob counts as missing when the
 * broker cannot read it for ten seconds. Waiting outcomes of a job are stored in groups: one call
 * stores all the small outputs of many subtasks, because a round trip and a sync cost more than the
 * bytes. */
#ifndef BOURSE_PROVIDER_WORK_TRANSFER_H
#define BOURSE_PROVIDER_WORK_TRANSFER_H

#include "base/id.h"
#include "base/problem.h"
#include "protocol/identity.h"
#include "provider/work/outcome.h"
#include "provider/work/store.h"
#include "runtime/blob/blob_client.h"
#include "runtime/blob/blob_port.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    TRANSFER_FETCHERS = 2,
    TRANSFER_STORERS = 2,
    TRANSFER_GROUP = 32, /* outcomes stored in one call */
};

/* Reports that the outputs are durable at the broker, or that the outcomes say why they are not.
 * The function is called on a storing thread, or within transfer_submit() when there is nothing to
 * store. The function takes over the outcomes of the list. */
typedef void transfer_done(void *context, struct list_link *outcomes);

struct transfer_config {
    void *zmq;              /* a zmq context */
    struct blob_port *port; /* borrowed */
    struct key32 server;
    const struct identity *identity; /* borrowed */
    blob_meter *meter;               /* counts the bytes, and may wait; NULL: none */
    void *meter_context;
    transfer_done *done;
    void *context;
};

struct transfer;
/* Starts the storing threads. Returns false with a problem when memory or a thread is missing. */
bool transfer_open(const struct transfer_config *config, struct transfer **ret_transfer,
                   struct problem *ret_problem);
/* Interrupts running transfers. Outcomes that still wait get one try, and then go to `done`. */
void transfer_stop(struct transfer *transfer);
void transfer_close(struct transfer **self);

/* These functions may be store_config.fetch and store_config.lend, with the transfer as the context
 * and TRANSFER_FETCHERS threads. */
store_fetch transfer_fetch;
store_lend transfer_lend;
/* Stores the outputs of the outcomes, then calls `done`. Takes over the outcomes of the list. */
void transfer_submit(struct transfer *transfer, struct list_link *outcomes);

#endif
