/* The journal is the replicated log of commands behind one small interface.
 *
 * Every engine has one order: append, then apply, then release effects. An entry is opaque bytes
 * that carry their own index, epoch, previous chain hash and batch id (broker/storage/entry.h). The
 * SQLite engine is the embedded default, for one broker. Its `lead` always succeeds under the file
 * lock, and UNKNOWN cannot occur (a failed fsync stops the process). The memory engine serves the
 * simulator. It is seeded and injects UNKNOWN, late duplicates, deposal, a short tail and BEHIND.
 * The etcd engine (broker/storage/etcd/) keeps the log on three machines. The SQLite journal of the
 * broker is then a copy. */
#ifndef BOURSE_BROKER_STORAGE_JOURNAL_H
#define BOURSE_BROKER_STORAGE_JOURNAL_H

#include "base/id.h"

#include <stddef.h>
#include <stdint.h>

enum journal_status {
    JOURNAL_OK,
    /* The entry may or may not be in the log: resolve that first, then resend the same bytes. */
    JOURNAL_UNKNOWN,
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

/* A base says where a log begins: with the entry after `index`. */
struct journal_base {
    uint64_t index;
    struct hash32 chain; /* of entry `index` */
    struct hash32 state; /* of the exchange after it; zeros: not recorded */
};

struct journal;

/* An engine implements these functions; `self` is its own state. */
struct journal_engine {
    enum journal_status (*lead)(void *self, uint64_t last_index, const struct journal_leader *me,
                                uint64_t *ret_epoch);
    enum journal_status (*append)(void *self, uint64_t epoch, const struct journal_entry *entries,
                                  size_t count);
    enum journal_status (*next)(void *self, uint64_t index, struct journal_entry *ret_entry,
                                int timeout_ms);
    enum journal_status (*leader)(void *self, struct journal_leader *ret_leader);
    /* NULL: nobody else could lead. */
    enum journal_status (*resign)(void *self, uint64_t epoch, const struct journal_leader *as);
    /* NULL: the engine keeps all entries. */
    enum journal_status (*truncate)(void *self, uint64_t epoch, const struct journal_base *base);
    void (*destroy)(void *self);
};

/* Creates a journal and takes `self` over. Returns NULL when memory is short; then `self` is
 * destroyed. */
struct journal *journal_create(const struct journal_engine *engine, void *self);
void journal_destroy(struct journal **journal);

/* Fences every former leader out. `last_index` is the last entry applied here. `me->epoch` is the
 * least epoch to lead under; 0: any. Returns BEHIND when the log has more, and DEPOSED when another
 * broker took over first. */
enum journal_status journal_lead(struct journal *journal, uint64_t last_index,
                                 const struct journal_leader *me, uint64_t *ret_epoch);
/* Appends all entries or none, one append at a time. OK means durable (P6). */
enum journal_status journal_append(struct journal *journal, uint64_t epoch,
                                   const struct journal_entry *entries, size_t count);
/* Reads the entry at `index`, and waits up to timeout_ms for it. Returns OK, UNAVAILABLE (not there
 * yet), UNKNOWN (nobody answered), BEHIND (the log begins later: load a snapshot) or CORRUPT. */
enum journal_status journal_next(struct journal *journal, uint64_t index,
                                 struct journal_entry *ret_entry, int timeout_ms);
/* Reads the present leader: a hint, never proof. */
enum journal_status journal_leader(struct journal *journal, struct journal_leader *ret_leader);
/* Gives the lead up, and leaves `as` where others read the leader. */
enum journal_status journal_resign(struct journal *journal, uint64_t epoch,
                                   const struct journal_leader *as);
/* Cuts the log, so that it begins after `base`, an entry that was applied and is durable elsewhere.
 * An engine may keep more. UNKNOWN: a part is cut; the next call goes on. */
enum journal_status journal_truncate(struct journal *journal, uint64_t epoch,
                                     const struct journal_base *base);
const char *journal_status_text(enum journal_status status);

#endif
