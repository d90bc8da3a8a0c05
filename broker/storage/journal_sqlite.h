/* The SQLite journal lies in the ledger's database. It serves one broker, with one transaction for
 * both. The newest entries may be in the journal's tail only (broker/storage/tail/tail.h).
 *
 *   journal       idx, chain (SHA-256 of bytes), next_command (number of the first command after
 *       it), bytes
 *   journal_base  one row: epoch, and idx and chain of the last entry before the first one
 *
 * journal_append joins a transaction that is open on the handle, and the caller commits. Otherwise
 * it uses a transaction of its own. Between calls it remembers nothing that a rollback could
 * falsify. Only the thread of the handle uses it. journal_next never waits, because no other thread
 * can append. */
#ifndef BOURSE_BROKER_STORAGE_JOURNAL_SQLITE_H
#define BOURSE_BROKER_STORAGE_JOURNAL_SQLITE_H

#include "base/id.h"
#include "base/problem.h"
#include "broker/storage/head.h"
#include "broker/storage/journal.h"

#include <sqlite3.h>
#include <stdbool.h>

struct tail;

struct journal_sqlite_start {
    const struct head *head; /* content of HEAD, or NULL when the file is missing */
    struct tail *tail;       /* entries after those of the table, to be fitted; NULL: none */
    uint64_t tree_size;      /* of the ledger beside the journal (ledger_store_tree) */
    /* The operator vouches for a journal without HEAD (a restored backup). */
    bool adopt;
};

struct journal_last {
    uint64_t index;        /* 0: the journal is empty */
    struct hash32 chain;   /* zeros while the journal is empty */
    uint64_t next_command; /* 1 while the journal is empty */
};

/* Makes missing tables, then checks everything: PRAGMA quick_check, the chain hash and links of
 * every entry, and that the journal with its tail does not end before HEAD. *ret_last is the last
 * entry of the table. Returns CORRUPT with one line that names the entry and the way on. Returns
 * UNAVAILABLE when the database cannot be read. The caller owns the handle, which must outlive the
 * journal. */
enum journal_status journal_sqlite_open(sqlite3 *database, const struct journal_sqlite_start *start,
                                        struct journal **ret_journal, struct journal_last *ret_last,
                                        struct problem *ret_problem);

enum journal_match { JOURNAL_HAS, JOURNAL_HAS_OTHER, JOURNAL_HAS_NOT, JOURNAL_UNREAD };
/* Returns whether entry `index` exists with this chain hash, so that it belongs to this history.
 * HAS_OTHER: the entry exists with another chain hash. HAS_NOT: there is no entry `index`. UNREAD:
 * the database could not be read; sqlite3_errmsg explains why. */
enum journal_match journal_sqlite_has(sqlite3 *database, uint64_t index,
                                      const struct hash32 *chain);
/* Reads the number that the query gives in its first row. Returns false when it gives none. */
bool journal_sqlite_number(sqlite3 *database, const char *query, uint64_t *ret_number);
/* Reads the number of the newest committed entry, 0 for none, over any connection. Returns false
 * when it cannot be read. */
bool journal_sqlite_last_entry(sqlite3 *database, uint64_t *ret_index);

#endif
