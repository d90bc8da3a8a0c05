#include "ledger/store/bulk.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bulk {
    size_t columns;
    sqlite3_stmt *one, *many; /* of one row, and of BULK_ROWS rows */
    struct cell *cells;       /* of the rows that wait; their bytes are in `bytes` */
    size_t count;             /* rows that wait */
    size_t used;              /* of `bytes` */
    uint8_t *bytes;
};

/* ---- statements */

enum { ROW_TEXT = 2 * BULK_COLUMNS_MAX + 4, SQL_SIZE = BULK_ROWS * ROW_TEXT + 256 };

/* Writes "(?,?,?)". */
static void write_row(size_t columns, char ret_text[ROW_TEXT])
{
    size_t length = 0;
    ret_text[length++] = '(';
    for (size_t i = 0; i < columns; i++) {
        ret_text[length++] = '?';
        ret_text[length++] = i + 1 < columns ? ',' : ')';
    }
    ret_text[length] = '\0';
}

/* FAIL keeps SQLite from saving every page before a statement of many rows, to undo the statement
 * alone. Whoever meets a failure undoes the whole transaction. */
static int prepare(sqlite3 *database, const struct bulk_target *target, size_t rows,
                   sqlite3_stmt **ret_statement)
{
    char sql[SQL_SIZE];
    char row[ROW_TEXT];
    write_row(target->columns, row);
    size_t length =
        (size_t)snprintf(sql, sizeof sql, "INSERT OR FAIL INTO %s VALUES", target->table);
    for (size_t i = 0; i < rows; i++) {
        length +=
            (size_t)snprintf(sql + length, sizeof sql - length, "%s%s", i > 0 ? "," : "", row);
    }
    length += (size_t)snprintf(sql + length, sizeof sql - length, "%s", target->then);
    assert(length < sizeof sql);
    return sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_statement, NULL);
}

int bulk_create(sqlite3 *database, const struct bulk_target *target, struct bulk **ret_bulk)
{
    assert(target->columns > 0 && target->columns <= BULK_COLUMNS_MAX);
    struct bulk *bulk = calloc(1, sizeof *bulk);
    *ret_bulk = bulk;
    if (bulk == NULL) {
        return SQLITE_NOMEM;
    }
    bulk->columns = target->columns;
    bulk->cells = calloc(BULK_ROWS * target->columns, sizeof *bulk->cells);
    bulk->bytes = malloc(BULK_BYTES);
    if (bulk->cells == NULL || bulk->bytes == NULL) {
        return SQLITE_NOMEM;
    }
    const int code = prepare(database, target, 1, &bulk->one);
    return code == SQLITE_OK ? prepare(database, target, BULK_ROWS, &bulk->many) : code;
}

void bulk_destroy(struct bulk **self)
{
    struct bulk *bulk = *self;
    if (bulk != NULL) {
        (void)sqlite3_finalize(bulk->one); /* repeats the last step's code */
        (void)sqlite3_finalize(bulk->many);
        free(bulk->cells);
        free(bulk->bytes);
        free(bulk);
        *self = NULL;
    }
}

/* ---- rows */

void bulk_bind(sqlite3_stmt *statement, int first, const struct cell *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct cell *cell = &cells[i];
        const int position = first + (int)i;
        int code = SQLITE_OK;
        switch (cell->type) {
        case CELL_NULL:
            code = sqlite3_bind_null(statement, position);
            break;
        case CELL_INTEGER:
            code = sqlite3_bind_int64(statement, position, cell->integer);
            break;
        case CELL_BLOB:
            code =
                sqlite3_bind_blob64(statement, position, cell->bytes, cell->length, SQLITE_STATIC);
            break;
        case CELL_TEXT:
            code = sqlite3_bind_text64(statement, position, cell->bytes, cell->length,
                                       SQLITE_STATIC, SQLITE_UTF8);
            break;
        }
        /* A failed bind leaves NULL. Every column that is bound but `leaf` is NOT NULL, so the step
         * reports the failure. */
        (void)code;
    }
}

/* Steps a statement that returns no row, and resets it for the next use. */
static int finish(sqlite3_stmt *statement)
{
    const int code = sqlite3_step(statement);
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

static int insert_one(struct bulk *bulk, const struct cell *cells)
{
    bulk_bind(bulk->one, 1, cells, bulk->columns);
    return finish(bulk->one);
}

void bulk_clear(struct bulk *bulk)
{
    bulk->count = 0;
    bulk->used = 0;
}

int bulk_flush(struct bulk *bulk)
{
    int code = SQLITE_OK;
    if (bulk->count == BULK_ROWS) {
        bulk_bind(bulk->many, 1, bulk->cells, BULK_ROWS * bulk->columns);
        code = finish(bulk->many);
    } else {
        for (size_t i = 0; code == SQLITE_OK && i < bulk->count; i++) {
            code = insert_one(bulk, &bulk->cells[i * bulk->columns]);
        }
    }
    bulk_clear(bulk);
    return code;
}

static size_t bytes_of(const struct cell *cells, size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += cells[i].length;
    }
    return sum;
}

/* Copies a row, whose bytes fit. */
static void copy(struct bulk *bulk, const struct cell *cells)
{
    struct cell *row = &bulk->cells[bulk->count++ * bulk->columns];
    for (size_t i = 0; i < bulk->columns; i++) {
        row[i] = cells[i];
        if (cells[i].type == CELL_BLOB || cells[i].type == CELL_TEXT) {
            row[i].bytes = bulk->bytes + bulk->used;
            memcpy(bulk->bytes + bulk->used, cells[i].bytes, cells[i].length);
            bulk->used += cells[i].length;
        }
    }
}

int bulk_add(struct bulk *bulk, const struct cell *cells)
{
    const size_t size = bytes_of(cells, bulk->columns);
    int code = SQLITE_OK;
    if (size > BULK_BYTES - bulk->used) {
        code = bulk_flush(bulk);
    }
    if (code != SQLITE_OK) {
        return code;
    }
    if (size > BULK_BYTES) {
        return insert_one(bulk, cells);
    }
    copy(bulk, cells);
    return bulk->count == BULK_ROWS ? bulk_flush(bulk) : SQLITE_OK;
}
