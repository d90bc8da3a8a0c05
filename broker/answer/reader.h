/* The reader is the thread that answers from committed data, and measures work when it is idle.
 *
 * Its answers are statements, outcomes, receipts, the checkpoint and measured times. It has its own
 * connection, so a long read delays no commit. The core has checked before that the asker may read.
 * The tables follow the journal. So the reader first waits until they have all that was
 * acknowledged when it took the question. The connection sees rows between their commit and HEAD.
 * No answer leaves before HEAD holds everything that the answer may be made from. */
#ifndef BOURSE_BROKER_ANSWER_READER_H
#define BOURSE_BROKER_ANSWER_READER_H

#include "base/id.h"
#include "broker/core/queue.h"
#include "broker/core/watermark.h"
#include "broker/gateway/budget.h"
#include "broker/gateway/directory.h"
#include "broker/storage/disk_reserve.h"

struct reader_thread;

struct reader_config {
    char database[4096];
    /* `history` is measuring.h's file, `blobs` the folder of blobs. */
    char history[4096];
    char blobs[4096];
    struct id128 cluster;
    /* The reader takes it over; it names counterparties. */
    struct directory *directory;
    struct queue *inbound; /* requests */
    struct queue *names;   /* outgoing: accounts, from the committer */
    struct queue *releases;
    struct watermark *durable; /* newest entry that HEAD holds */
    struct watermark *applied; /* newest entry that the tables have, as HEAD knows */
    struct watermark *synced;  /* newest entry that the tables have after a power cut, too */
    /* Says whether the disk keeps the tables back: then the reader refuses. NULL: it never does. */
    const struct disk_reserve *reserve;
    struct budget *budget; /* shared with the gateway and the core; NULL: none */
};

/* Starts the thread. The process ends when memory or threads are short. */
struct reader_thread *reader_start(const struct reader_config *config);
/* Closes `inbound`, answers the rest, and ends the thread. */
void reader_stop(struct reader_thread **self);

#endif
