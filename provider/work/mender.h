/* The mender gives the broker back the blobs that it lost, if this agent still has them.
 *
 * A thread asks every MENDER_PERIOD_MS which blobs of the standing leases' jobs are lost and
 * wanted. The thread sends the blobs that are in the agent's store, after it has hashed them anew.
 * Other providers send the rest, so nothing here fails. */
#ifndef BOURSE_PROVIDER_WORK_MENDER_H
#define BOURSE_PROVIDER_WORK_MENDER_H

#include "base/id.h"
#include "base/problem.h"
#include "protocol/identity.h"
#include "provider/work/store.h"
#include "runtime/blob/blob_client.h"
#include "runtime/blob/blob_port.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    MENDER_PERIOD_MS = 2000,
    MENDER_JOBS_MAX = 16, /* jobs asked about in one round; more take turns */
};

struct mender_config {
    void *zmq;              /* a zmq context */
    struct blob_port *port; /* borrowed */
    struct key32 server;
    const struct identity *identity; /* borrowed */
    struct store *store;             /* borrowed, must outlive the mender */
    blob_meter *meter;               /* counts the bytes, and may wait; NULL: none */
    void *meter_context;
};

struct mender;
bool mender_open(const struct mender_config *config, struct mender **ret_mender,
                 struct problem *ret_problem);
/* Interrupts what is under way, and ends the thread. */
void mender_close(struct mender **self);

/* Adds a lease until mender_end. If memory is short, its job is not asked about. */
void mender_begin(struct mender *mender, uint64_t lease, const struct id128 *job);
void mender_end(struct mender *mender, uint64_t lease);

#endif
