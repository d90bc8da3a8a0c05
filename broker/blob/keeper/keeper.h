/* The keeper is the thread that tells accounts what they store, and forgets the blobs of jobs.
 *
 * It answers StorageRequest and ForgetRequest. When it is idle, it forgets jobs that expired, and
 * removes condemned blobs after the grace (broker/blob/blob_forget.h). It only reads the ledger
 * and blobs.db; the blob port's thread makes the changes (broker/blob/port/forget_order.h). The
 * keeper works out anew each time which blobs a job needs, from the ledger and the job's manifest.
 * So there is no table that could be wrong. The cost of forgetting is one walk over the results of
 * the account's other jobs. */
#ifndef BOURSE_BROKER_BLOB_KEEPER_KEEPER_H
#define BOURSE_BROKER_BLOB_KEEPER_KEEPER_H

#include "broker/core/logtime.h"
#include "broker/core/queue.h"
#include "broker/core/watermark.h"
#include "broker/gateway/budget.h"
#include "broker/gateway/directory.h"

#include <stdint.h>

enum {
    KEEPER_HASHES_MAX = 1 << 20, /* blobs that are looked at together: 40 MiB */
    /* A StorageReply adds up the sizes of so many blobs, and finishes the job it is at. */
    KEEPER_LOOKS_MAX = 100000,
    KEEPER_EXPIRY_S = 10,           /* between two searches for jobs that expired */
    KEEPER_MANIFESTS_AT_ONCE = 256, /* manifests that one search reads for times of expiry */
    KEEPER_RETRY_S = 60,            /* until a removal that failed is tried again */
};

struct keeper;

struct keeper_config {
    char database[4096];    /* the ledger's file */
    char blobs[4096];       /* folder of the blobs */
    struct queue *inbound;  /* requests */
    struct queue *notes;    /* outgoing: orders for the blob port */
    struct queue *releases; /* answers */
    struct budget *budget;  /* shared with the core; NULL: none */
    struct logtime *clock;  /* shared with the core */
    /* The newest entry that HEAD holds, and the newest that the tables have. The keeper looks at
     * the ledger only when it has what was acknowledged. */
    struct watermark *durable, *applied;
    int64_t quota_bytes;
    /* The blobs of a job expire this long after its end. A job may say another time, up to
     * `retain_most_ms`. INT64_MAX: they do not expire. No blobs expire before `retain_least_ms`,
     * because whoever runs the job must be able to fetch its outputs. */
    int64_t retain_ms, retain_most_ms, retain_least_ms;
    int64_t grace_ms;
};

/* Starts the thread. The process ends when memory or threads are short. */
struct keeper *keeper_start(const struct keeper_config *config);
/* Closes `inbound`, answers the rest, and ends the thread. The blob port must still run. */
void keeper_stop(struct keeper **self);

#endif
