/* broker/storage/snapshots.h - the thread that writes snapshots with a second exchange
 * (docs/architecture.md).
 *
 * For each mark it loads the last snapshot, applies the journal up to the mark over its own
 * read-only connection, and compares state hashes: the market never pauses, and every snapshot is a
 * self-check. A hash that differs ends the broker at once, before anything more is built on it
 * (P10). */
#ifndef BOURSE_BROKER_STORAGE_SNAPSHOTS_H
#define BOURSE_BROKER_STORAGE_SNAPSHOTS_H

#include "base/problem.h"
#include "broker/core/queue.h"
#include "broker/storage/snapshot_file.h"

#include <sqlite3.h>

struct snapshots;

struct snapshot_request {
    struct queue_link link;
    struct snapshot_mark mark;
};

/* `database`: path of the ledger; `folder`: where snapshots lie. The process ends when that
 * fails. */
struct snapshots *snapshots_start(const char *database, const char *folder,
                                  const struct exchange_limits *limits, struct queue *requests);
/* Closes `requests`, drops those not begun, ends the thread. With `end` (else NULL) makes one of
 * that moment, the last of the journal, before it returns. */
void snapshots_stop(struct snapshots **self, const struct snapshot_mark *end);

/* Applies journal entries first .. last of `database` to `exchange`. */
bool snapshots_apply(sqlite3 *database, struct exchange *exchange, uint64_t first, uint64_t last,
                     struct problem *ret_problem);

#endif
