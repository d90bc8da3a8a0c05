/* The memory journal is seeded and serves the simulator, with one log for any number of brokers.
 *
 * It keeps the promises of broker/storage/journal.h. With the given chances it breaks everything
 * that they leave open: unknown outcomes, late or repeated appends, rivals that take over, reads
 * that lag. The same seed and the same calls give the same answers. One thread uses it. */
#ifndef BOURSE_BROKER_STORAGE_JOURNAL_MEMORY_H
#define BOURSE_BROKER_STORAGE_JOURNAL_MEMORY_H

#include "broker/storage/journal.h"

#include <stdint.h>

struct journal_log;

/* Each chance is per 1000 calls. */
struct journal_faults {
    uint32_t unknown_applied; /* append: UNKNOWN, but the entry is in */
    uint32_t unknown_late;    /* append: UNKNOWN; the entry goes in, or is fenced, later */
    uint32_t unknown_lost;    /* append: UNKNOWN, and the entry never arrives */
    uint32_t duplicated;      /* append: OK, and the same bytes arrive a second time later */
    uint32_t deposed;         /* append: a rival takes over first */
    uint32_t full;            /* append: FULL */
    uint32_t lagging;         /* next: UNAVAILABLE although the entry is there */
};

/* Creates a log with at most `entries_max` entries: then FULL. Returns NULL when memory is short.
 * The log must outlive its journals. */
struct journal_log *journal_log_create(uint64_t seed, uint64_t entries_max);
void journal_log_destroy(struct journal_log **self);
void journal_log_set_faults(struct journal_log *log, const struct journal_faults *faults);
/* Lets a rival broker take over now: every epoch given out before is fenced. */
void journal_log_depose(struct journal_log *log);
/* Returns the last entry that is really in the log, for the simulator's checks. */
uint64_t journal_log_last(const struct journal_log *log);

/* Opens one broker's view of the log. Returns NULL when memory is short. */
struct journal *journal_memory_open(struct journal_log *log);

#endif
