/* ledger/store/sqlite.h stores ledger records, balances and the Merkle tree in SQLite
 * (docs/decisions.md D3).
 *
 * Each market has one database file, WAL, STRICT tables. The SQLite journal
 * (broker/storage/journal_sqlite.h) is in the same file and shares the transaction. One writer
 * thread uses a `struct ledger_store`. Readers open their own with ledger_reader_open and see
 * committed data only. A failed commit or fsync is fatal: the caller stops the process (P11).
 * docs/ledger.md lists the tables. */
#ifndef BOURSE_LEDGER_STORE_SQLITE_H
#define BOURSE_LEDGER_STORE_SQLITE_H

#include "base/id.h"
#include "base/problem.h"
#include "ledger/checkpoint.h"
#include "ledger/merkle.h"
#include "ledger/record.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

enum ledger_store_status {
    LEDGER_STORE_OK,
    LEDGER_STORE_LOCKED,  /* another broker holds the directory */
    LEDGER_STORE_NEWER,   /* the schema is of a later or an earlier version */
    LEDGER_STORE_CORRUPT, /* ledger_store_error names table and row */
    LEDGER_STORE_FULL,    /* disk full: nothing was changed */
    LEDGER_STORE_FAILED,  /* I/O error: the caller stops */
    LEDGER_STORE_NOT_FOUND,
    LEDGER_STORE_OUT_OF_MEMORY,
};

struct ledger_store;

/* Opens or creates `path` (mode 0600), and holds `path`-lock until closed. Returns
 * LEDGER_STORE_LOCKED when another process holds the lock. The caller owns the store. On failure
 * *ret_store is NULL when memory was short. Otherwise it is a store for ledger_store_error and
 * ledger_store_close only. */
enum ledger_store_status ledger_store_open(const char *path, struct ledger_store **ret_store);
/* Does the same for a ledger that is known to hold data. Returns LEDGER_STORE_CORRUPT, and writes
 * nothing, where it has no tables. The file holds only its first page before the first checkpoint,
 * so a damaged WAL makes the ledger look empty. */
enum ledger_store_status ledger_store_open_old(const char *path, struct ledger_store **ret_store);
/* Declares that the ledger's contents may be relied on. Until then an existing ledger is not
 * written to, and closing it leaves the WAL alone: SQLite would replace the rest of a damaged WAL.
 * A store trusts its ledger when a group begins. */
void ledger_store_trust(struct ledger_store *store);
void ledger_store_close(struct ledger_store **self);
/* Returns one line about the last failure. */
const char *ledger_store_error(const struct ledger_store *store);
/* Returns the database, for the journal that shares the transaction. */
sqlite3 *ledger_store_database(struct ledger_store *store);

/* A batch holds the provider's signature over results sent together (protocol/results.h). The
 * signature is needed to prove one of the results alone. */
struct ledger_batch {
    struct signature64 signature;
    const struct hash32 *leaves; /* results_leaf of every result, in the order sent */
    uint32_t count;              /* 1 .. LEDGER_BATCH_MAX */
};
enum { LEDGER_BATCH_MAX = 256 };

/* Begins a group: begin, any number of appends, commit. A rollback undoes everything since begin,
 * the tree included. An append, set_checkpoint or commit that fails rolls back by itself; another
 * rollback is harmless. */
enum ledger_store_status ledger_store_begin(struct ledger_store *store);
/* Begins a group likewise, whose commit does not wait for the disk. Readers then see it before it
 * is durable. So what it is made from must be durable elsewhere. */
enum ledger_store_status ledger_store_begin_lazily(struct ledger_store *store);
/* Appends one record. Money records update the netted balances, which are written at commit.
 * `batch` is the batch of a HELD, or of a RESULT that was never held (NULL for other kinds). A
 * batch is stored once per log index. Returns LEDGER_STORE_CORRUPT when the record contradicts the
 * stored data (a second account of a number, a balance below zero at commit); the caller stops.
 * Rows are inserted many at a time. So a failure may be that of an earlier record of the group, and
 * that of the last ones shows at the commit. */
enum ledger_store_status ledger_store_append(struct ledger_store *store,
                                             const struct ledger_record *record,
                                             const struct ledger_batch *batch);
/* Returns the tree head after this group, for the checkpoint to sign before commit. */
const struct merkle *ledger_store_tree(const struct ledger_store *store);
/* Stores the signed note in the group. */
enum ledger_store_status ledger_store_set_checkpoint(struct ledger_store *store, const char *note,
                                                     size_t length, uint64_t tree_size);
/* Commits the group. LEDGER_STORE_FULL means that the group is not durable. A log that cannot be
 * copied into the database because the disk is full waits. */
enum ledger_store_status ledger_store_commit(struct ledger_store *store);
/* Returns true when the disk has every committed group: after a commit that waits, after a sync,
 * and when the whole log was copied. */
bool ledger_store_is_synced(const struct ledger_store *store);
/* Waits until the disk has every committed group. No group may be open. */
enum ledger_store_status ledger_store_sync(struct ledger_store *store);
/* Sets the number of WAL pages after which the log is copied into the database; the default is
 * WAL_CHECKPOINT_PAGES. */
void ledger_store_checkpoint_every(struct ledger_store *store, int pages);
void ledger_store_rollback(struct ledger_store *store);

/* Checks every row against the tree and the other rows. Tree nodes are compared with their leaves
 * and the signed checkpoint, and leaves with rows. Results are compared with their hash and batch,
 * balances with transfers, and outcomes with results. No row may be missing. The check reads
 * everything and writes nothing. For LEDGER_STORE_CORRUPT, *ret_error names table and entry. Data
 * that are in no leaf and are not money (names, flags, the purpose of a capture) are left to the
 * audit. */
enum { LEDGER_CHECK_TEXT = 256 };
enum ledger_store_status ledger_check(sqlite3 *database, const struct key32 *log_key,
                                      char ret_error[LEDGER_CHECK_TEXT]);

/* A comparison checks every table against the records from a replay of the journal, one after
 * another. Every row and column must be equal bit for bit, and no other row may exist. The
 * comparison only reads `database`, in a transaction of the caller's. */
struct ledger_comparison;
/* Opens a comparison. On failure *ret_problem gives the reason, and *ret_comparison may only be
 * closed. */
enum ledger_store_status ledger_comparison_open(sqlite3 *database,
                                                struct ledger_comparison **ret_comparison,
                                                struct problem *ret_problem);
void ledger_comparison_close(struct ledger_comparison **self);
/* Compares the next record and its batch, as passed to ledger_store_append. For
 * LEDGER_STORE_CORRUPT, *ret_problem names table, row, column and both values, and the comparison
 * is over. */
enum ledger_store_status ledger_comparison_take(struct ledger_comparison *comparison,
                                                const struct ledger_record *record,
                                                const struct ledger_batch *batch,
                                                struct problem *ret_problem);
/* Compares, after the last record, the rows that follow from all records together, and finds rows
 * without a record. The caller checks the checkpoint's signature. */
enum ledger_store_status ledger_comparison_end(struct ledger_comparison *comparison,
                                               struct problem *ret_problem);
/* Returns the tree of the records so far. */
const struct merkle *ledger_comparison_tree(const struct ledger_comparison *comparison);

/* ---- readers: one per thread; each call sees one committed state */
struct ledger_reader;
enum ledger_store_status ledger_reader_open(const char *path, struct ledger_reader **ret_reader);
void ledger_reader_close(struct ledger_reader **self);
sqlite3 *ledger_reader_database(struct ledger_reader *reader);

struct ledger_statement_row {
    uint64_t entry;
    uint64_t log_index;
    int64_t log_time_ns;
    enum ledger_kind kind;
    int64_t amount_micro; /* effect on available */
    int64_t held_micro;   /* effect on held */
    struct id128 job;
    uint32_t index;
    bool has_index;
    uint32_t counterparty; /* account number; UINT32_MAX: none */
    struct id128 device;   /* the lease's device; zero: no lease */
    int64_t fee_micro;     /* a capture's: the market's fee beside it */
    int64_t given_ns;      /* a result's slot-time, when settled at price 0 */
    bool is_failed;        /* a result's: it was not accepted */
};
/* Returns the last `limit` money entries of `account` before entry `before` (0: from the end),
 * newest first. */
enum ledger_store_status ledger_reader_statement(struct ledger_reader *reader, uint32_t account,
                                                 uint64_t before, size_t limit,
                                                 struct ledger_statement_row *ret_rows,
                                                 size_t *ret_count);

/* Returns results with `account` as the provider, newest first, with amounts 0 and kind RESULT.
 * They are accepted ones, and failed ones that took time at price 0. Results have no index by
 * provider, so a call searches only the `walk` entries before entry `before` (0: from the end).
 * *ret_next is `before` for the next call; 0: the search is complete. */
enum { LEDGER_WALK = 1 << 15 };
enum ledger_store_status ledger_reader_results(struct ledger_reader *reader, uint32_t account,
                                               uint64_t before, uint64_t walk, size_t limit,
                                               struct ledger_statement_row *ret_rows,
                                               size_t *ret_count, uint64_t *ret_next);

struct ledger_trade_row {
    uint64_t entry, log_index;
    int64_t log_time_ns;
    uint32_t slots;
    int64_t price_micro;
    char instrument[64]; /* "" where the device has none */
};
/* Returns the entry of the last record; 0: there is none. */
enum ledger_store_status ledger_reader_last_entry(struct ledger_reader *reader,
                                                  uint64_t *ret_entry);
/* Returns the last `limit` fills before entry `before` (0: from the end), newest first. */
enum ledger_store_status ledger_reader_trades(struct ledger_reader *reader, uint64_t before,
                                              size_t limit, struct ledger_trade_row *ret_rows,
                                              size_t *ret_count);

struct ledger_outcome_row { /* a result of one subtask */
    uint64_t entry;
    uint32_t index, attempt;
    uint8_t status;
    uint8_t *result; /* malloc'ed; the caller frees it */
    size_t result_length;
    int64_t charge_micro, paid_ns;
    uint64_t log_index;
    uint8_t level; /* enum check_level */
};
/* Returns decided subtasks of `job` with index >= from, ascending: the accepted attempt, else the
 * last failed one. `max_bytes` bounds the sum of the results. */
enum ledger_store_status ledger_reader_outcomes(struct ledger_reader *reader,
                                                const struct id128 *job, uint32_t from,
                                                size_t limit, size_t max_bytes,
                                                struct ledger_outcome_row *ret_rows,
                                                size_t *ret_count);
/* Returns every other result of `job`, late ones too, with entry >= from, ascending by entry. */
enum ledger_store_status ledger_reader_others(struct ledger_reader *reader, const struct id128 *job,
                                              uint64_t from, size_t limit, size_t max_bytes,
                                              struct ledger_outcome_row *ret_rows,
                                              size_t *ret_count);
struct ledger_measured_row { /* an accepted result, and its device's instrument */
    uint64_t entry;
    int64_t log_time_ns;
    uint32_t index;
    int64_t paid_ns;
    uint8_t *result; /* malloc'ed; the caller frees it */
    size_t result_length;
    char instrument[64]; /* "" where the device has none */
    struct key32 provider;
    struct id128 device; /* of the provider */
};
/* Returns the first `limit` accepted results after entry `after`, ascending. */
enum ledger_store_status ledger_reader_measured(struct ledger_reader *reader, uint64_t after,
                                                size_t limit, struct ledger_measured_row *ret_rows,
                                                size_t *ret_count);
/* Returns the steps of SQLite's virtual machine in all reads since the last call. Equal reads of
 * the same ledger give equal steps. */
uint64_t ledger_reader_steps(struct ledger_reader *reader);
/* Returns the entry of the last result plus one; 1: there is none. */
enum ledger_store_status ledger_reader_results_end(struct ledger_reader *reader, uint64_t *ret_end);

/* Writes the receipt of the decided attempt of (job, index), against the newest checkpoint. Returns
 * LEDGER_STORE_NOT_FOUND also while that checkpoint does not cover the attempt yet. Returns
 * LEDGER_STORE_FULL for more than `capacity` (RECEIPT_TEXT_MAX always suffices). */
enum ledger_store_status ledger_reader_receipt(struct ledger_reader *reader,
                                               const struct id128 *cluster, const struct id128 *job,
                                               uint32_t index, char *ret_text, size_t capacity,
                                               size_t *ret_length);
enum { LEDGER_RECEIPTS_MAX = 1000 }; /* in one page */

struct ledger_receipts {
    char note[CHECKPOINT_TEXT_SIZE]; /* the checkpoint that all of them share */
    struct receipt *items;           /* by leaf, so that neighbours share hashes of their paths */
    size_t count;
    bool has_next;
    uint32_t next; /* the subtask to go on with */
};
/* Makes receipts like ledger_reader_receipt, of decided subtasks from `from` on in their order. A
 * receipt that no checkpoint covers yet is left out. The page ends before its receipts could take
 * more than `most_bytes` without their checkpoint and without base64. One always fits. The caller
 * frees it with ledger_receipts_fini; the receipts borrow from it, and it must not move. */
enum ledger_store_status ledger_reader_receipts(struct ledger_reader *reader,
                                                const struct id128 *cluster,
                                                const struct id128 *job, uint32_t from,
                                                size_t most_bytes,
                                                struct ledger_receipts *ret_page);
void ledger_receipts_fini(struct ledger_receipts *page);
/* Returns the root of the tree's first `size` leaves. LEDGER_STORE_NOT_FOUND: the tree is
 * smaller. */
enum ledger_store_status ledger_reader_root(struct ledger_reader *reader, uint64_t size,
                                            struct hash32 *ret_root);
enum ledger_store_status ledger_reader_checkpoint(struct ledger_reader *reader,
                                                  char ret_text[CHECKPOINT_TEXT_SIZE],
                                                  uint64_t *ret_size);

#endif
