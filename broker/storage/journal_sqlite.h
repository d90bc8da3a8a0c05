/* broker/storage/journal_sqlite.h - the journal in the ledger's database: one broker, one
 * transaction for both.
 *
 *   journal       idx, chain (SHA-256 of bytes), next_command (number of the first command after
 *       it), bytes
 *   journal_base  one row: epoch, and what a snapshot replaced: idx and chain of the last entry
 *       cut off
 *
 * When a transaction is open on the handle, journal_append joins it and the caller commits;
 * otherwise it is a transaction of its own. Nothing is remembered between calls that a rollback
 * could falsify. Used by the one thread that uses the handle; journal_next never waits, because
 * nobody else can append. */
#ifndef BOURSE_BROKER_STORAGE_JOURNAL_SQLITE_H
#define BOURSE_BROKER_STORAGE_JOURNAL_SQLITE_H

#include "base/id.h"
#include "base/problem.h"
#include "broker/storage/head.h"
#include "broker/storage/journal.h"

#include <sqlite3.h>
#include <stdbool.h>

struct journal_sqlite_start {
    const struct head *head; /* what HEAD says, or NULL when the file is missing */
    uint64_t tree_size;      /* of the ledger beside the journal (ledger_store_tree) */
    bool adopt; /* the operator says that a journal without HEAD is right (a restored backup) */
};

struct journal_last {
    uint64_t index;        /* 0: the journal is empty */
    struct hash32 chain;   /* zeros then */
    uint64_t next_command; /* 1 then */
};

/* Makes the tables when they are not there, then checks everything: PRAGMA quick_check, the
 * chain hash and the links of every entry kept, and that the journal does not end short of HEAD.
 * CORRUPT with one line that says which entry and what to do; UNAVAILABLE when the database
 * cannot be read. The handle stays the caller's and must outlive the journal. */
enum journal_status journal_sqlite_open(sqlite3 *database, const struct journal_sqlite_start *start,
                                        struct journal **ret_journal, struct journal_last *ret_last,
                                        struct problem *ret_problem);

enum journal_match { JOURNAL_HAS, JOURNAL_HAS_NOT, JOURNAL_UNREAD };
/* Whether entry `index` is there with that chain hash: what was noted of it belongs to this
 * history. UNREAD: the database could not be read, which sqlite3_errmsg explains. */
enum journal_match journal_sqlite_has(sqlite3 *database, uint64_t index,
                                      const struct hash32 *chain);
/* Number of the newest committed entry, 0 for none, over any connection. False when it cannot be
 * read. */
bool journal_sqlite_last_entry(sqlite3 *database, uint64_t *ret_index);

#endif
