/* tests/crash/day_internal.h - the day of day.h, which the files day*.c share. */
#ifndef BOURSE_TESTS_CRASH_DAY_INTERNAL_H
#define BOURSE_TESTS_CRASH_DAY_INTERNAL_H

#include "tests/crash/day.h"

#include <inttypes.h>
#include <limits.h>

#include "broker/blob/blob_store.h"
#include "broker/broker.h"
#include "broker/core/group.h"
#include "broker/storage/storage.h"

enum {
    OWNER = 3, /* accounts: the founder, then in the order in which they joined */
    PROVIDER = 4,
    WORK_MAX = 64,
    BLOB_SMALL = 900,
    BLOB_LARGE = 150000,
    BLOB_CHUNK = 40000,
    CHECKPOINT_PAGES = 60, /* instead of WAL_CHECKPOINT_PAGES, so that a short day sees some */
    BLOB_CHECKPOINT_PAGES = 12,
    TURN_BYTES = 150,  /* instead of TAIL_TURN_BYTES: the tail's files turn many times */
    SYNC_BYTES = 6000, /* instead of TAIL_SYNC_BYTES: more than both files have */
    QUIET_TICKS = 12,
    FULL_TRIES = 3,
    GROUPS = 4, /* one is gathered, and the others wait for the tables */
};

#define PRICE_MICRO INT64_C(3600000000)
#define BLOB_QUOTA_BYTES (INT64_C(16) << 20)

struct work {
    uint64_t lease;
    struct id128 job;
    uint32_t index, attempt;
};

struct lease {
    uint64_t lease;
    struct id128 job, device;
    struct hash32 manifest;
};

struct day {
    char market[PATH_MAX], snapshots[PATH_MAX], blobs_folder[PATH_MAX];
    struct diary *diary;
    struct broker_config config;
    struct storage store;
    struct exchange *exchange;
    struct blob_store *blobs;
    struct group *groups[GROUPS];
    struct group *group; /* the one being gathered */
    struct group *waiting[GROUPS];
    size_t waiting_count;
    struct identity *owner, *provider;
    bool is_new; /* a genesis was committed at this start */
    int64_t now_ns;
    uint32_t serial; /* makes ids */
    struct work work[WORK_MAX];
    size_t work_count;
    struct lease leases[WORK_MAX];
    size_t lease_count;
};

/* Says why the day ends, on stderr, and ends the process. */
__attribute__((format(printf, 2, 3))) _Noreturn void day_end(int status, const char *format, ...);

#define MUST(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            day_end(DAY_WRONG, "WRONG: " __VA_ARGS__);                                             \
        }                                                                                          \
    } while (false)

/* ---- day_blobs.c */

/* Stores the blob of that number and notes it in the diary. */
struct hash32 day_put(struct day *day, uint32_t account, uint32_t number, size_t size);
/* Everything acknowledged is whole, and belongs to its owner. */
void day_check_blob(struct day *day, const struct diary_blob *blob);
/* The sum of what an account owns is what it is charged for. */
void day_check_usage(struct day *day, uint32_t account);

#endif
