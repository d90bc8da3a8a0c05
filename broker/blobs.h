/* broker/blobs.h - the thread on the blob port: who may store and read which bytes.
 *
 * Accounts read what they own. A provider that serves a job reads what the job's manifest names, as far as the
 * job's owner owns it, and stores outputs for that owner. A put is acknowledged only when it is durable:
 * puts that arrive together share one commit. Large blobs travel in chunks, so that none delays others. There are
 * no sessions here: every message stands alone, under the connection's key. */
#ifndef BOURSE_BROKER_BLOBS_H
#define BOURSE_BROKER_BLOBS_H

#include "broker/blob_store.h"
#include "broker/directory.h"
#include "broker/logtime.h"
#include "broker/queue.h"
#include "broker/refusals.h"
#include "broker/room.h"
#include "broker/serves.h"
#include "runtime/router.h"

struct blobs;

struct blobs_config {
    struct router *router;    /* the thread's alone while it runs */
    struct blob_store *store; /* taken over, as are the next two */
    struct directory *directory;
    struct serves *serves;
    struct queue *notes;       /* outgoing: serve, unserve, account */
    const struct room *room;   /* moved by the committer */
    struct logtime *clock;     /* shared */
    struct refusals *refusals; /* what members are refused is noted there */
};

struct blobs *blobs_start(const struct blobs_config *config); /* the process ends when that fails */
/* Closes `notes`, ends the thread. */
void blobs_stop(struct blobs **self);

#endif
