/* A bulk inserts rows of one table, many of them with one statement.
 *
 * Most of what SQLite takes for a small row is the begin and the end of its statement. So rows wait
 * in memory until there are enough for a statement of BULK_ROWS rows. The rows that are left when
 * the group ends go in one by one. A bulk copies what it is given. A row with more bytes than a
 * bulk may copy goes in at once, after those that wait. Only files of ledger/store include this. */
#ifndef BOURSE_LEDGER_STORE_BULK_H
#define BOURSE_LEDGER_STORE_BULK_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BULK_ROWS = 32,
    BULK_COLUMNS_MAX = 24,
    BULK_BYTES = 64 << 10, /* of all blobs and texts that wait in one bulk */
};

/* One value of a row. */
struct cell {
    enum cell_type { CELL_NULL, CELL_INTEGER, CELL_BLOB, CELL_TEXT } type;
    sqlite3_int64 integer;
    const void *bytes; /* borrowed; never NULL in a blob or a text */
    size_t length;
};

static inline struct cell cell_integer(sqlite3_int64 integer)
{
    return (struct cell){.type = CELL_INTEGER, .integer = integer};
}
static inline struct cell cell_blob(const void *bytes, size_t length)
{
    return (struct cell){.type = CELL_BLOB, .bytes = bytes, .length = length};
}
/* Binds the cells to the parameters from `first` on. Their bytes must live until the step. */
void bulk_bind(sqlite3_stmt *statement, int first, const struct cell *cells, size_t count);

struct bulk;

/* A table, the number of its columns, and what a statement does after VALUES: "" or a clause ON
 * CONFLICT. */
struct bulk_target {
    const char *table;
    size_t columns; /* at most BULK_COLUMNS_MAX */
    const char *then;
};

/* Prepares the statements. Returns a code of SQLite. The caller owns *ret_bulk, also on failure,
 * where it may be NULL. */
int bulk_create(sqlite3 *database, const struct bulk_target *target, struct bulk **ret_bulk);
void bulk_destroy(struct bulk **self);
/* Adds a row, whose cells are as many as the table has columns. The row is in the table after
 * bulk_flush at the latest. A failure may be that of an earlier row. */
int bulk_add(struct bulk *bulk, const struct cell *cells);
/* Inserts the rows that wait. After a failure some are in the table, and the caller rolls back. */
int bulk_flush(struct bulk *bulk);
/* Forgets the rows that wait. */
void bulk_clear(struct bulk *bulk);

#endif
