/* broker/storage/storage.h - everything durable of a market, opened and checked together: the
 * folder's lock, the keys, the ledger, the journal in the same file, and HEAD beside it.
 *
 * After storage_open only the committer uses the store. Its commit makes a group durable: one
 * transaction with the entry, the ledger records and the signed checkpoint, then HEAD. */
#ifndef BOURSE_BROKER_STORAGE_STORAGE_H
#define BOURSE_BROKER_STORAGE_STORAGE_H

#include "base/problem.h"
#include "broker/config.h"
#include "broker/core/acts.h"
#include "broker/core/group.h"
#include "broker/core/refusals.h"
#include "broker/core/watermark.h"
#include "broker/storage/folder.h"
#include "broker/storage/journal_sqlite.h"
#include "ledger/store/sqlite.h"
#include "protocol/genesis.h"
#include "protocol/identity.h"

#include <stdbool.h>

enum { STORE_NOTES_MAX = 8 };

struct storage {
    char folder[4096];
    int lock;                       /* descriptor that holds the flock */
    bool is_full;                   /* storage_open or storage_lead met a full disk */
    struct identity *transport_key; /* of both ports */
    struct identity *log_key;       /* signs checkpoints */
    unsigned log_notes;             /* of its file: enum keyfile_note */
    struct identity *audit_key;     /* signs the end of the audit log */
    struct ledger_store *ledger;
    struct journal *journal;
    struct head_file *head;
    struct acts *acts;
    struct refusals *refusals; /* noted by any thread, written here */
    /* For the audit log with the next transaction: a full disk keeps them waiting. */
    struct act notes[STORE_NOTES_MAX];
    size_t note_count;
    struct refusal_count refused[REFUSALS_TAKE_MAX];
    size_t refused_count;
    uint64_t epoch;
    struct journal_last last; /* newest entry */
    struct genesis genesis;   /* of this market, from entry 1 */
    struct watermark durable; /* newest entry that HEAD holds */
    uint8_t *buffer;          /* ENTRY_MAX_BYTES: the entry being written */
};

/* Opens or makes the market in `folder`. What is there is looked at whole before a byte of it is
 * written: pages, the chain of the journal, HEAD, every row of the ledger (docs/ledger.md section
 * 2). `adopt`: believe a journal without HEAD (a restored backup). False with a problem, "LOCKED
 * ..." when another broker has it. *ret_new: the journal is empty, genesis has to be committed
 * first; the genesis is then the config's with a fresh cluster id. When it fails with
 * ret_store->is_full, there was no room on the disk: after storage_close it may be tried again. */
bool storage_open(const char *folder, const struct broker_config *config, bool adopt,
                  struct storage *ret_store, bool *ret_new, struct problem *ret_problem);
/* Begins to write: a HEAD where there was none, and the epoch of this leader. After storage_open,
 * and after whatever else may still refuse the market. When it fails with store->is_full, it may be
 * tried again. That a journal was adopted is in the audit log, at log time `log_ns`, before its
 * HEAD is made: a start that ends in between is not the last word, the next one has to adopt
 * again. */
bool storage_lead(struct storage *store, int64_t log_ns, struct problem *ret_problem);
void storage_close(struct storage *store);
/* Adds to a finding of damage what the operator does next. */
void storage_advise(struct problem *problem);

enum store_status { STORE_OK, STORE_FULL };
/* Makes `group` durable. FULL: nothing was changed, try again when there is room. Any other failure
 * ends the process with a line that says why. */
enum store_status store_commit(struct storage *store, const struct group *group);
/* From now on each commit takes as little room on the disk as it can, or no longer: slower. */
void store_save_room(struct storage *store, bool is_scarce);

/* Keeps `act` for the audit log, beside the newest command: it goes with the next group, or with
 * store_write_acts. Of more than STORE_NOTES_MAX the rest is lost, and the process log says so.
 * That the broker starts is noted by storage_open; an adoption by storage_lead. */
void store_note(struct storage *store, const struct act *act);
/* Makes durable, at log time `log_ns`, what waits for the audit log: notes, and refusals that are
 * due (`all`: those counted so far). Costs nothing when nothing waits; a full disk leaves it
 * waiting. */
enum store_status store_write_acts(struct storage *store, int64_t log_ns, bool all);

/* Bytes of the genesis command. */
size_t store_genesis(const struct storage *store, uint8_t *ret_bytes, size_t capacity);

/* The batch that a HELD or RESULT record came in: what its provider signed, as `said` by the
 * command. False where none came with it: that of a result which was held is stored already. */
bool store_batch_of(const struct translation *said, const struct ledger_record *record,
                    struct ledger_batch *ret_batch);

#endif
