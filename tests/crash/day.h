/* tests/crash/day.h - a day in the life of a market's storage, as the broker would live it.
 *
 * Genesis, accounts, invitations, devices, asks, blobs, jobs, work, results, cancels, silence,
 * expiry, snapshots, a restart: every command goes through translate, exchange_step and
 * storage_append, and later through storage_apply, as on the broker's own threads, but one after
 * the other in this one. So the tables are often behind. What was acknowledged is noted in a diary
 * in shared memory, so that it outlives whoever wrote it. A day that cannot go on ends its process
 * as the broker does: a line on stderr and status 1. */
#ifndef BOURSE_TESTS_CRASH_DAY_H
#define BOURSE_TESTS_CRASH_DAY_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DAY_STOPPED = 1, DAY_WRONG = 3, DIARY_COMMITS_MAX = 512, DIARY_BLOBS_MAX = 64 };

struct diary_commit {
    size_t changes; /* of the disk, when it was acknowledged */
    uint64_t entry;
    struct hash32 chain, state, root;
    uint64_t tree_size; /* 0: the tables did not have the entry yet, so root is not known */
};

struct diary_blob {
    size_t changes;
    uint32_t account;
    uint32_t number; /* of day_blob */
    size_t size;
};

struct diary {
    size_t commit_count, blob_count;
    struct diary_commit commits[DIARY_COMMITS_MAX];
    struct diary_blob blobs[DIARY_BLOBS_MAX];
};

/* Returns an empty diary in shared memory. */
struct diary *diary_create(void);

/* Runs from the first start in the folder `market`, which need not exist, to a stop. The process
 * ends with DAY_STOPPED when something failed and was said, and with DAY_WRONG when something is
 * not as it must be. */
void day_morning(const char *market, struct diary *diary);
/* Runs from the next start to the end. */
void day_evening(const char *market, struct diary *diary);
/* A broker's start on what a cut left in `market`, with everything checked: what the diary
 * acknowledged up to the disk's change `changes` is there, the rest wholly or not at all, HEAD,
 * tree, state and audit agree. Then an afternoon's work on it, noted in the diary like the day's.
 * Ends the process as day_morning does. */
void day_recover(const char *market, struct diary *diary, size_t changes);

#endif
