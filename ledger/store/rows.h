/* The rows of a group wait here, one bulk for each table, until they are inserted together.
 *
 * Rows of one table are inserted in the order in which they were added. Between tables there is no
 * order, and no row refers to another by a key that SQLite checks. Only files of ledger/store
 * include this. */
#ifndef BOURSE_LEDGER_STORE_ROWS_H
#define BOURSE_LEDGER_STORE_ROWS_H

#include "base/id.h"
#include "ledger/record.h"

#include <sqlite3.h>
#include <stdint.h>

struct rows;

/* Prepares all statements. Returns a code of SQLite. The caller owns *ret_rows, also on failure,
 * where it may be NULL. */
int rows_create(sqlite3 *database, struct rows **ret_rows);
void rows_destroy(struct rows **self);

/* Each of these adds a row, and returns a code of SQLite, which may be that of an earlier row of
 * the same table. `leaf` is NULL for a record without a leaf. */
int rows_add_record(struct rows *rows, const struct ledger_record *record, uint64_t entry,
                    const uint64_t *leaf);
int rows_add_node(struct rows *rows, unsigned level, uint64_t index, const struct hash32 *hash);
int rows_add_outcome(struct rows *rows, const struct ledger_record *record, uint64_t entry);

/* Inserts what waits. On failure *ret_table names the table, and the caller rolls back. */
int rows_flush(struct rows *rows, const char **ret_table);
/* Forgets what waits. */
void rows_clear(struct rows *rows);

#endif
