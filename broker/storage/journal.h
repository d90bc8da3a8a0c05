/* broker/storage/journal.h - the replicated command log behind one small interface.
 *
 * One order for every engine: append, then apply, then release effects. An entry is opaque bytes
 * that carry their own index, epoch, previous chain hash and batch id (broker/storage/entry.h). The
 * SQLite engine is the embedded default: one broker, `lead` always succeeds under the file lock,
 * UNKNOWN cannot occur (a failed fsync stops the process). The memory engine is seeded and
 * injects UNKNOWN, late duplicates, deposal, a shorter tail than exists, BEHIND, for the
 * simulator. A replicated engine (etcd) fits unchanged. */
#ifndef BOURSE_BROKER_STORAGE_JOURNAL_H
#define BOURSE_BROKER_STORAGE_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

enum journal_status {
    JOURNAL_OK,
    JOURNAL_UNKNOWN, /* may or may not be in: resolve before anything else, resend the same bytes */
    JOURNAL_DEPOSED,
    JOURNAL_BEHIND,
    JOURNAL_FULL,
    JOURNAL_TOO_LARGE,
    JOURNAL_UNAVAILABLE,
    JOURNAL_CORRUPT,
};

struct journal_entry {
    uint64_t index;
    const uint8_t *bytes; /* from journal_next: valid until the next call on this journal */
    size_t length;
};

struct journal_leader {
    uint64_t epoch;
    char broker[64], address[128];
};

struct journal_base { /* newest snapshot that may replace the log below and including `index` */
    uint64_t index;
    uint8_t chain[32], state[32];
};

struct journal;

/* What an engine implements; `self` is the engine's own. */
struct journal_engine {
    enum journal_status (*lead)(void *self, uint64_t last_index, const struct journal_leader *me,
                                uint64_t *ret_epoch);
    enum journal_status (*append)(void *self, uint64_t epoch, const struct journal_entry *entries,
                                  size_t count);
    enum journal_status (*next)(void *self, uint64_t index, struct journal_entry *ret_entry,
                                int timeout_ms);
    enum journal_status (*leader)(void *self, struct journal_leader *ret_leader);
    enum journal_status (*truncate)(void *self, uint64_t epoch, const struct journal_base *base);
    void (*destroy)(void *self);
};

/* Takes `self` over. NULL when out of memory (self is destroyed then). */
struct journal *journal_create(const struct journal_engine *engine, void *self);
void journal_destroy(struct journal **journal);

/* Fences every former leader out; `last_index` is the last entry applied here: BEHIND when there
 * is more. */
enum journal_status journal_lead(struct journal *journal, uint64_t last_index,
                                 const struct journal_leader *me, uint64_t *ret_epoch);
/* One append at a time; all or nothing; OK means durable (P6). */
enum journal_status journal_append(struct journal *journal, uint64_t epoch,
                                   const struct journal_entry *entries, size_t count);
/* The entry at `index`, waiting up to timeout_ms for it: OK, UNAVAILABLE (not there yet), BEHIND
 * (truncated away: load the snapshot of the base), CORRUPT. */
enum journal_status journal_next(struct journal *journal, uint64_t index,
                                 struct journal_entry *ret_entry, int timeout_ms);
enum journal_status journal_leader(struct journal *journal,
                                   struct journal_leader *ret_leader); /* a hint, never proof */
enum journal_status journal_truncate(struct journal *journal, uint64_t epoch,
                                     const struct journal_base *base);
const char *journal_status_text(enum journal_status status);

#endif
