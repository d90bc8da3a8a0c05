/* ledger/store/sqlite.h - stores ledger records, balances and the Merkle tree in SQLite
 * (docs/decisions.md D3).
 *
 * One database file per market, WAL, synchronous=FULL, STRICT tables; the SQLite journal
 * (broker/storage/journal_sqlite.h) lives in the same file and shares the transaction. One writer thread
 * uses a `struct ledger_store`; readers open their own with ledger_reader_open and see committed
 * data only. A failed commit or fsync is fatal: the caller stops the process (P11). The tables
 * are in docs/ledger.md. */
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
    LEDGER_STORE_LOCKED,  /* another broker has the directory */
    LEDGER_STORE_NEWER,   /* the schema is of a later version, or of an earlier one */
    LEDGER_STORE_CORRUPT, /* ledger_store_error names table and row */
    LEDGER_STORE_FULL,    /* disk full: nothing was changed */
    LEDGER_STORE_FAILED,  /* I/O: stop */
    LEDGER_STORE_NOT_FOUND,
    LEDGER_STORE_OUT_OF_MEMORY,
};

struct ledger_store;

/* Opens or creates `path` (mode 0600), and holds `path`-lock until closed: LOCKED when another
 * has it. The caller owns the store. On failure *ret_store is still a store, good for
 * ledger_store_error and ledger_store_close only, or NULL when memory was short. */
enum ledger_store_status ledger_store_open(const char *path, struct ledger_store **ret_store);
/* The same of a ledger that is known to hold something: CORRUPT, and nothing written, where it has
 * no tables. Only their first page is in the file before the first checkpoint; with a damaged WAL
 * the rest looks as if it had never been. */
enum ledger_store_status ledger_store_open_old(const char *path, struct ledger_store **ret_store);
/* What was found may be relied on. Until then an existing ledger is not written to, and closing it
 * leaves the WAL alone: if it is damaged, SQLite would replace what is left of it. Whoever begins a
 * group trusts it. */
void ledger_store_trust(struct ledger_store *store);
void ledger_store_close(struct ledger_store **self);
const char *
ledger_store_error(const struct ledger_store *store); /* one line about the last failure */
sqlite3 *
ledger_store_database(struct ledger_store *store); /* for the journal that shares the transaction */

/* What a provider signed when it sent a batch of results (protocol/results.h): needed to prove
 * one of them alone. */
struct ledger_batch {
    struct signature64 signature;
    const struct hash32 *leaves; /* results_leaf of every result sent, in the order sent */
    uint32_t count;              /* 1 .. LEDGER_BATCH_MAX */
};
enum { LEDGER_BATCH_MAX = 256 };

/* One group: begin, any number of appends, commit. rollback undoes all since begin, the tree
 * included; so does any append, set_checkpoint or commit that is not OK: to roll back once more
 * is harmless. */
enum ledger_store_status ledger_store_begin(struct ledger_store *store);
/* Appends one record; money records update the netted balances written at commit. `batch` is what
 * the HELD, or the RESULT that was never held, came in (NULL for other kinds); it is stored once
 * per log index. CORRUPT: the record contradicts what is stored (a second account of that number, a
 * balance below zero at commit): the caller stops. */
enum ledger_store_status ledger_store_append(struct ledger_store *store,
                                             const struct ledger_record *record,
                                             const struct ledger_batch *batch);
/* The tree head that this group leads to, for the checkpoint to sign before commit. */
const struct merkle *ledger_store_tree(const struct ledger_store *store);
/* Stores the note beside the group. */
enum ledger_store_status ledger_store_set_checkpoint(struct ledger_store *store, const char *note,
                                                     size_t length, uint64_t tree_size);
/* FULL is only said before the group is durable: a log that cannot be copied into the database for
 * want of room waits. */
enum ledger_store_status ledger_store_commit(struct ledger_store *store);
/* Copies the log into the database when it has so many pages (WAL_CHECKPOINT_PAGES unless said). */
void ledger_store_checkpoint_every(struct ledger_store *store, int pages);
void ledger_store_rollback(struct ledger_store *store);

/* Holds every row against the tree and the others: tree nodes against their leaves and the signed
 * checkpoint, leaves against rows, results against their hash and their batch, balances against
 * transfers, outcomes against results, and that no row is missing. Reads everything, writes
 * nothing. CORRUPT: *ret_error names table and entry. What stands in no leaf and is not money
 * (names, flags, what a capture is for) is only the audit's to find. */
enum { LEDGER_CHECK_TEXT = 256 };
enum ledger_store_status ledger_check(sqlite3 *database, const struct key32 *log_key,
                                      char ret_error[LEDGER_CHECK_TEXT]);

/* Holds every table against the records that a replay of the journal gives, one after another: each
 * row, each column, bit for bit, and that there is no other row. Reads only, over `database`, in a
 * transaction of the caller's. */
struct ledger_comparison;
/* Not OK: *ret_problem says why, and *ret_comparison is only good to be closed. */
enum ledger_store_status ledger_comparison_open(sqlite3 *database,
                                                struct ledger_comparison **ret_comparison,
                                                struct problem *ret_problem);
void ledger_comparison_close(struct ledger_comparison **self);
/* The next record, and the batch with it, as ledger_store_append was told of them. CORRUPT:
 * *ret_problem names table, row, column and both values, and the comparison is over. */
enum ledger_store_status ledger_comparison_take(struct ledger_comparison *comparison,
                                                const struct ledger_record *record,
                                                const struct ledger_batch *batch,
                                                struct problem *ret_problem);
/* After the last of them: what follows from all together, and what no record leads to. Whether the
 * checkpoint is signed is the caller's to see. */
enum ledger_store_status ledger_comparison_end(struct ledger_comparison *comparison,
                                               struct problem *ret_problem);
/* Of the records so far. */
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
    uint32_t counterparty; /* account number, UINT32_MAX when none */
    struct id128 device;   /* whose lease it is about; zero: about none */
    int64_t fee_micro;     /* of a capture: what the market took beside it */
    int64_t given_ns;      /* of a result: slot-time that it was settled for at price 0 */
    bool is_failed;        /* of a result: it was not accepted */
};
/* The last `limit` money entries of `account` before entry `before` (0: from the end), newest
 * first. */
enum ledger_store_status ledger_reader_statement(struct ledger_reader *reader, uint32_t account,
                                                 uint64_t before, size_t limit,
                                                 struct ledger_statement_row *ret_rows,
                                                 size_t *ret_count);

/* Results of which `account` is the provider, accepted ones and failed ones that took time at price
 * 0 (amounts 0, kind RESULT), newest first, found among the `walk` entries before entry `before`
 * (0: from the end): results have no index by provider, so a call looks at a bounded part of them.
 * *ret_next is `before` for the next call; 0: that was all. */
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
    char instrument[64]; /* "" where the device said none */
};
/* Of the last record; 0: there is none. */
enum ledger_store_status ledger_reader_last_entry(struct ledger_reader *reader,
                                                  uint64_t *ret_entry);
/* The last `limit` fills before entry `before` (0: from the end), newest first. */
enum ledger_store_status ledger_reader_trades(struct ledger_reader *reader, uint64_t before,
                                              size_t limit, struct ledger_trade_row *ret_rows,
                                              size_t *ret_count);

struct ledger_outcome_row { /* a result of one subtask */
    uint64_t entry;
    uint32_t index, attempt;
    uint8_t status;
    uint8_t *result; /* malloc'ed, the caller frees */
    size_t result_length;
    int64_t charge_micro, paid_ns;
    uint64_t log_index;
    uint8_t level; /* enum check_level */
};
/* Decided subtasks of `job` with index >= from, ascending: the accepted attempt, else the last
 * failed one. `max_bytes` bounds the sum of the results. */
enum ledger_store_status ledger_reader_outcomes(struct ledger_reader *reader,
                                                const struct id128 *job, uint32_t from,
                                                size_t limit, size_t max_bytes,
                                                struct ledger_outcome_row *ret_rows,
                                                size_t *ret_count);
/* Every other result of `job`, late ones too, with entry >= from, ascending by entry. */
enum ledger_store_status ledger_reader_others(struct ledger_reader *reader, const struct id128 *job,
                                              uint64_t from, size_t limit, size_t max_bytes,
                                              struct ledger_outcome_row *ret_rows,
                                              size_t *ret_count);
struct ledger_measured_row { /* an accepted result, and what its device was traded as */
    uint64_t entry;
    int64_t log_time_ns;
    uint32_t index;
    int64_t paid_ns;
    uint8_t *result; /* malloc'ed, the caller frees */
    size_t result_length;
    char instrument[64]; /* "" where the device said none */
    struct key32 provider;
    struct id128 device; /* of the provider's */
};
/* The first `limit` accepted results after entry `after`, ascending. */
enum ledger_store_status ledger_reader_measured(struct ledger_reader *reader, uint64_t after,
                                                size_t limit, struct ledger_measured_row *ret_rows,
                                                size_t *ret_count);
/* Steps of SQLite's virtual machine over all reads since this was last asked: what they took, the
 * same for the same reads of the same ledger. */
uint64_t ledger_reader_steps(struct ledger_reader *reader);
/* One more than the entry of the last result; 1: there is none. */
enum ledger_store_status ledger_reader_results_end(struct ledger_reader *reader, uint64_t *ret_end);

/* The receipt of the decided attempt of (job, index), against the newest checkpoint. NOT_FOUND
 * also while that checkpoint does not cover it yet. FULL: more than `capacity` (RECEIPT_TEXT_MAX
 * always suffices). */
enum ledger_store_status ledger_reader_receipt(struct ledger_reader *reader,
                                               const struct id128 *cluster, const struct id128 *job,
                                               uint32_t index, char *ret_text, size_t capacity,
                                               size_t *ret_length);
/* Root of the tree's first `size` leaves. NOT_FOUND: the tree is not that large. */
enum ledger_store_status ledger_reader_root(struct ledger_reader *reader, uint64_t size,
                                            struct hash32 *ret_root);
enum ledger_store_status ledger_reader_checkpoint(struct ledger_reader *reader,
                                                  char ret_text[CHECKPOINT_TEXT_SIZE],
                                                  uint64_t *ret_size);

#endif
