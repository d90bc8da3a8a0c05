/* A thread of its own writes snapshots with a second exchange (docs/architecture.md).
 *
 * For each mark the thread loads the last snapshot and applies the journal up to the mark, over its
 * own read-only connection. Then it compares state hashes. So the market never pauses, and every
 * snapshot checks itself. A hash that differs ends the broker at once, before anything more is
 * built on it (P10). */
#ifndef BOURSE_BROKER_STORAGE_SNAPSHOT_SNAPSHOTS_H
#define BOURSE_BROKER_STORAGE_SNAPSHOT_SNAPSHOTS_H

#include "base/problem.h"
#include "broker/core/queue.h"
#include "broker/storage/snapshot/snapshot_file.h"

#include <sqlite3.h>

struct snapshots;

struct snapshot_request {
    struct queue_link link;
    struct snapshot_mark mark;
};

/* Starts the thread. `database` is the ledger's path, `folder` holds the snapshots. The process
 * ends when memory or threads are short. */
struct snapshots *snapshots_start(const char *database, const char *folder,
                                  const struct exchange_limits *limits, struct queue *requests);
/* Closes `requests`, drops those not begun, and ends the thread. If `end` is not NULL, a snapshot
 * of this moment, the last of the journal, is made before the call returns. */
void snapshots_stop(struct snapshots **self, const struct snapshot_mark *end);

/* Applies the journal entries from `first` to `last` of `database` to `exchange`. Returns false
 * with a problem. */
bool snapshots_apply(sqlite3 *database, struct exchange *exchange, uint64_t first, uint64_t last,
                     struct problem *ret_problem);

#endif
