/* broker/storage/journal_memory.h - the journal in memory, seeded, for the simulator: one log, any
 * number of brokers on it.
 *
 * It keeps the promises of broker/storage/journal.h and breaks, with the given chances, everything
 * that they leave open: outcomes unknown (and applied, or not), appends that arrive late or twice,
 * rivals that take over, reads that lag. The same seed and the same calls give the same answers.
 * One thread. */
#ifndef BOURSE_BROKER_STORAGE_JOURNAL_MEMORY_H
#define BOURSE_BROKER_STORAGE_JOURNAL_MEMORY_H

#include "broker/storage/journal.h"

#include <stdint.h>

struct journal_log;

struct journal_faults {       /* chances, in 1000 calls */
    uint32_t unknown_applied; /* append: UNKNOWN, but it is in */
    uint32_t unknown_late;    /* append: UNKNOWN; goes in, or is fenced, before the next append */
    uint32_t unknown_lost;    /* append: UNKNOWN, and never arrives */
    uint32_t duplicated;      /* append: OK, and the same bytes arrive a second time later */
    uint32_t deposed;         /* append: a rival takes over first */
    uint32_t full;            /* append: FULL */
    uint32_t lagging;         /* next: UNAVAILABLE although the entry is there */
};

/* NULL when out of memory. The log outlives its journals: destroy it last. `entries_max` bounds
 * it: then FULL. */
struct journal_log *journal_log_create(uint64_t seed, uint64_t entries_max);
void journal_log_destroy(struct journal_log **self);
void journal_log_set_faults(struct journal_log *log, const struct journal_faults *faults);
/* A rival broker takes over now: every epoch handed out before is fenced. */
void journal_log_depose(struct journal_log *log);
uint64_t
journal_log_last(const struct journal_log *log); /* what is truly in, for the simulator's checks */

/* One broker's view of the log. NULL when out of memory. */
struct journal *journal_memory_open(struct journal_log *log);

#endif
