/* `struct engine` is an open journal; journal_sqlite.c and journal_sqlite_start.c share it. */
#ifndef BOURSE_BROKER_STORAGE_JOURNAL_SQLITE_INTERNAL_H
#define BOURSE_BROKER_STORAGE_JOURNAL_SQLITE_INTERNAL_H

#include "broker/storage/journal_sqlite.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

enum statement {
    SELECT_LAST,
    SELECT_ROW,
    SELECT_BASE,
    INSERT_ROW,
    RAISE_EPOCH,
    STATEMENTS,
};

struct engine {
    sqlite3 *database; /* borrowed */
    sqlite3_stmt *prepared[STATEMENTS];
    uint64_t epoch; /* 0 until journal_lead */
    uint8_t *lent;  /* the entry that journal_next returned last */
    size_t lent_capacity;
    struct journal_leader leader;
};

struct row {
    struct journal_last end; /* the end of the journal after this entry */
    const uint8_t *bytes;    /* borrowed from the statement */
    size_t length;
};

/* Sets the problem to the database's error. Returns CORRUPT or UNAVAILABLE. */
enum journal_status journal_sqlite_unreadable(struct engine *engine, struct problem *ret_problem);
/* Reads what comes before the first entry, and the epoch. */
enum journal_status journal_sqlite_read_base(struct engine *engine, struct journal_last *ret_base,
                                             uint64_t *ret_epoch);
/* Reads a row of table journal; CORRUPT when it does not follow `before`. */
enum journal_status journal_sqlite_check_row(sqlite3_stmt *select,
                                             const struct journal_last *before,
                                             struct row *ret_row);

/* Checks every page of the database. */
enum journal_status journal_sqlite_check_pages(struct engine *engine, struct problem *ret_problem);
/* Checks every entry, the epoch, and that HEAD's entry is there. */
enum journal_status journal_sqlite_check_entries(struct engine *engine,
                                                 const struct journal_sqlite_start *start,
                                                 struct journal_last *ret_last,
                                                 struct problem *ret_problem);

#endif
