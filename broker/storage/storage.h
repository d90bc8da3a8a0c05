/* The store holds everything durable of a market, with its lock, keys, ledger, journal and HEAD.
 *
 * All parts are opened and checked together. Then two threads share the work. The committer makes a
 * group durable: storage_append writes its entry to the journal's tail, then HEAD. The follower
 * writes the same entry to the tables: storage_apply puts entries, ledger records, acts and the
 * signed checkpoint of many groups into one transaction. Effects may leave after the append. What
 * is read from the tables waits for them. The disk has the entries in the tail, so such a
 * transaction need not wait for the disk. One sync serves many of them: storage_sync_tables. */
#ifndef BOURSE_BROKER_STORAGE_STORAGE_H
#define BOURSE_BROKER_STORAGE_STORAGE_H

#include "base/problem.h"
#include "broker/config.h"
#include "broker/core/act_log.h"
#include "broker/core/group.h"
#include "broker/core/outage/quorum_note.h"
#include "broker/core/refusals.h"
#include "broker/core/watermark.h"
#include "broker/storage/etcd/replica_note.h"
#include "broker/storage/etcd/trim.h"
#include "broker/storage/folder.h"
#include "broker/storage/journal_sqlite.h"
#include "broker/storage/tail/tail.h"
#include "ledger/store/sqlite.h"
#include "protocol/genesis.h"
#include "protocol/identity.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { STORAGE_NOTES_MAX = 8 };

/* The lock files that storage_open has made. A start that goes on clears the struct. */
struct storage_made {
    bool lock, ledger_lock;
};

struct storage {
    char folder[4096];
    int lock;                       /* descriptor that holds the flock */
    struct storage_made made;       /* storage_close removes the files that storage_open made */
    bool is_full;                   /* storage_open or storage_lead met a full disk */
    struct identity *transport_key; /* key of both ports */
    struct identity *log_key;       /* signs checkpoints */
    unsigned log_notes;             /* notes of the log key's file: enum keyfile_note */
    struct identity *audit_key;     /* signs the end of the audit log */
    struct ledger_store *ledger;    /* the follower's, once it runs */
    struct journal *rows;           /* table journal of the ledger; the follower's, likewise */
    struct journal *journal; /* the tail: an entry in it is durable; NULL before storage_lead */
    struct tail tail;        /* entries that a killed broker left to the tables */
    /* The same log on etcd, which is appended to first; NULL: this disk has the only one. */
    struct journal *replicated;
    struct quorum_note quorum;   /* whether etcd takes entries at present */
    struct replica_note replica; /* how far this broker is in it */
    struct journal_leader leads; /* as which this broker leads on etcd; epoch 0: it does not */
    atomic_bool ends;            /* the broker stops, so a commit no longer waits for etcd */
    size_t frozen;     /* bytes of the entry in `buffer` that etcd has, or may have; 0: none */
    bool is_frozen_in; /* etcd has it */
    bool is_away_said; /* the process log knows that etcd takes no entry */
    struct replicated_trim trim;
    struct head_file *head;
    pthread_mutex_t head_mutex; /* guards HEAD and `mark`: both threads write them */
    struct head mark;           /* what HEAD says */
    int64_t last_run_ns; /* wall clock when the last run wrote HEAD; 0: unknown, or restored */
    struct act_log *acts;
    struct refusals *refusals; /* noted by any thread, written by the store */
    /* The notes and refusals wait for the next transaction, which writes them to the audit log.
     * They wait longer while the disk is full. */
    struct act notes[STORAGE_NOTES_MAX];
    atomic_size_t note_count;
    struct refusal_count refused[REFUSALS_TAKE_MAX];
    size_t refused_count;
    uint64_t epoch;
    struct journal_last last;  /* newest entry that was appended; the committer's */
    struct journal_last table; /* newest entry that the tables have; the follower's */
    struct genesis genesis;    /* the market's genesis, from entry 1 */
    struct watermark durable;  /* newest entry that HEAD holds */
    struct watermark applied;  /* newest entry that the tables have */
    struct watermark synced;   /* newest entry that the tables have after a power cut, too */
    size_t turn_bytes;         /* TAIL_TURN_BYTES; a test may set both before storage_lead */
    size_t sync_bytes;         /* TAIL_SYNC_BYTES */
    size_t unsynced_bytes;     /* entries in the tables since they were synced; the follower's */
    bool saves_space;          /* the follower's */
    uint8_t *buffer;           /* ENTRY_MAX_BYTES: the entry being written */
};

/* Opens or makes the market in `folder`. Before the first write everything is checked: pages, the
 * chain of the journal, HEAD, every row of the ledger (docs/ledger.md section 2). `adopt` accepts a
 * journal without HEAD (a restored backup). Returns false with a problem, "LOCKED ..." when another
 * broker has the folder.
 *
 * *ret_new is true when the journal is empty: the caller must commit the genesis first. The genesis
 * is then the config's with a fresh cluster id. After a failure with ret_store->is_full the disk
 * had no space; the caller may try again after storage_close(). */
bool storage_open(const char *folder, const struct broker_config *config, bool adopt,
                  struct storage *ret_store, bool *ret_new, struct problem *ret_problem);
/* Begins to write: a HEAD where there was none, and the epoch of this leader. The function is
 * called after storage_open() and after every other check of the market. After a failure with
 * store->is_full the caller may try again. An adoption is in the audit log, at log time `log_ns`,
 * before its HEAD is made. If the start ends in between, the next start must adopt again. */
bool storage_lead(struct storage *store, int64_t log_ns, struct problem *ret_problem);
/* Applies the entries that a killed broker left in the tail: to the tables, and to `exchange`,
 * which stands where the tables stand. The call comes right after storage_lead(). On failure
 * `exchange` is useless. After a failure with store->is_full the caller may rebuild an exchange and
 * try again. */
bool storage_catch_up(struct storage *store, struct exchange *exchange,
                      struct problem *ret_problem);
void storage_close(struct storage *store);
/* Adds the operator's next step to a finding of damage. */
void storage_advise(struct problem *problem);

enum storage_status {
    STORAGE_OK,
    STORAGE_FULL,
    STORAGE_AWAY, /* the journal on etcd does not say whether it has the entry */
};
/* Makes `group` durable: its entry stands in the journal's tail, and HEAD has seen it. The tables
 * do not have it yet. FULL: nothing has changed; try again when there is space. Any other failure
 * ends the process with a line that gives the reason. The committer's. */
enum storage_status storage_append(struct storage *store, struct group *group);
/* Writes `count` (> 0) appended groups, in their order, to the tables in one transaction. FULL and
 * failures are as in storage_append. The follower's. */
enum storage_status storage_apply(struct storage *store, struct group *const *groups, size_t count);
/* Waits until the disk has what was applied; then HEAD knows of the tree and the audit log. A
 * failure ends the process. Whatever is durable elsewhere and follows from the tables comes after
 * this: a snapshot, history.db, and another use of the tail's file. The follower's. */
void storage_sync_tables(struct storage *store);
/* Makes `group` durable in the tables themselves, in one transaction, without the tail, and on etcd
 * before where there is one. No other group may wait for the tables. AWAY: try again with the same
 * group, at once. Failures are as in storage_append; another broker that leads is one. */
enum storage_status storage_commit(struct storage *store, const struct group *group);
/* Makes a group durable that another leader appended to the journal on etcd. `store->buffer` has
 * the `length` bytes of its entry. Returns false when the disk is full. */
bool storage_follow(struct storage *store, const struct group *group, size_t length);
/* Sets whether commits use as little disk space as they can. Such commits are slower. The
 * follower's. */
void storage_save_space(struct storage *store, bool is_scarce);

/* Keeps `act` for the audit log, beside the newest command. The act is written with the next group,
 * or by storage_write_acts(). An act beyond STORAGE_NOTES_MAX is lost, and the process log says so.
 * storage_open() notes the start of the broker, and storage_lead() notes an adoption. */
void storage_note(struct storage *store, const struct act *act);
/* Notes in the group that it begins with these limits, which `exchange` does not have yet. The act
 * comes with the group's own transaction. The first limits of a journal are no act. */
void storage_note_limits(struct group *group, const struct exchange *exchange,
                         const struct exchange_set_limits *set);
/* Returns true while notes wait: that this broker started must not come after what it wrote. */
static inline bool storage_has_notes(const struct storage *store)
{
    return atomic_load(&store->note_count) > 0;
}
/* Makes waiting acts durable at log time `log_ns`: notes, and refusals that are due (`all`: all
 * counted refusals). The call costs nothing when no act waits. After FULL the acts keep waiting.
 * The follower's. */
enum storage_status storage_write_acts(struct storage *store, int64_t log_ns, bool all);

/* Writes the bytes of the genesis command. Returns their length. */
size_t storage_genesis(const struct storage *store, uint8_t *ret_bytes, size_t capacity);

/* Gets the batch that the provider of a HELD or RESULT record signed. The batch came with the
 * command, of which `said` is the translation. Returns false when the command has no batch, since
 * the batch of a held result is stored already. */
bool storage_batch_of(const struct translation *said, const struct ledger_record *record,
                      struct ledger_batch *ret_batch);

#endif
