/* The store holds everything durable of a market, with its lock, keys, ledger, journal and HEAD.
 *
 * All parts are opened and checked together. After storage_open only the committer uses the store.
 * Its commit makes a group durable: one transaction with the entry, the ledger records and the
 * signed checkpoint, then HEAD. */
#ifndef BOURSE_BROKER_STORAGE_STORAGE_H
#define BOURSE_BROKER_STORAGE_STORAGE_H

#include "base/problem.h"
#include "broker/config.h"
#include "broker/core/act_log.h"
#include "broker/core/group.h"
#include "broker/core/refusals.h"
#include "broker/core/watermark.h"
#include "broker/storage/etcd/trim.h"
#include "broker/storage/folder.h"
#include "broker/storage/journal_sqlite.h"
#include "ledger/store/sqlite.h"
#include "protocol/genesis.h"
#include "protocol/identity.h"

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
    struct ledger_store *ledger;
    struct journal *journal;
    /* The same log on etcd, which is appended to first; NULL: this disk has the only one. */
    struct journal *replicated;
    atomic_bool is_away; /* etcd takes no entry at present; any thread may ask */
    atomic_bool ends;    /* the broker stops, so a commit no longer waits for etcd */
    size_t frozen;       /* bytes of the entry in `buffer` that etcd has, or may have; 0: none */
    bool is_frozen_in;   /* etcd has it */
    bool is_away_said;   /* the process log knows that etcd takes no entry */
    struct replicated_trim trim;
    struct head_file *head;
    int64_t last_run_ns; /* wall clock when the last run wrote HEAD; 0: unknown, or restored */
    struct act_log *acts;
    struct refusals *refusals; /* noted by any thread, written by the store */
    /* The notes and refusals wait for the next transaction, which writes them to the audit log.
     * They wait longer while the disk is full. */
    struct act notes[STORAGE_NOTES_MAX];
    size_t note_count;
    struct refusal_count refused[REFUSALS_TAKE_MAX];
    size_t refused_count;
    uint64_t epoch;
    struct journal_last last; /* newest entry */
    struct genesis genesis;   /* the market's genesis, from entry 1 */
    struct watermark durable; /* newest entry that HEAD holds */
    uint8_t *buffer;          /* ENTRY_MAX_BYTES: the entry being written */
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
void storage_close(struct storage *store);
/* Adds the operator's next step to a finding of damage. */
void storage_advise(struct problem *problem);

enum storage_status {
    STORAGE_OK,
    STORAGE_FULL,
    STORAGE_AWAY, /* the journal on etcd does not say whether it has the entry */
};
/* Makes `group` durable. FULL: nothing has changed; try again when there is space. AWAY: try again
 * with the same group, at once. Any other failure ends the process with a line that gives the
 * reason; so does another broker that leads. */
enum storage_status storage_commit(struct storage *store, const struct group *group);
/* Makes a group durable that another leader appended to the journal on etcd. `store->buffer` has
 * the `length` bytes of its entry. Returns false when the disk is full. */
bool storage_follow(struct storage *store, const struct group *group, size_t length);
/* Sets whether commits use as little disk space as they can. Such commits are slower. */
void storage_save_space(struct storage *store, bool is_scarce);

/* Keeps `act` for the audit log, beside the newest command. The act is written with the next group,
 * or by storage_write_acts(). An act beyond STORAGE_NOTES_MAX is lost, and the process log says so.
 * storage_open() notes the start of the broker, and storage_lead() notes an adoption. */
void storage_note(struct storage *store, const struct act *act);
/* Makes waiting acts durable at log time `log_ns`: notes, and refusals that are due (`all`: all
 * counted refusals). The call costs nothing when no act waits. After FULL the acts keep waiting. */
enum storage_status storage_write_acts(struct storage *store, int64_t log_ns, bool all);

/* Writes the bytes of the genesis command. Returns their length. */
size_t storage_genesis(const struct storage *store, uint8_t *ret_bytes, size_t capacity);

/* Gets the batch that the provider of a HELD or RESULT record signed. The batch came with the
 * command, of which `said` is the translation. Returns false when the command has no batch, since
 * the batch of a held result is stored already. */
bool storage_batch_of(const struct translation *said, const struct ledger_record *record,
                      struct ledger_batch *ret_batch);

#endif
