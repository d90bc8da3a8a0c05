#include "ledger/store/rows.h"

#include "ledger/store/bulk.h"
#include "ledger/store/tables.h"

#include <stdlib.h>

/* Values of the protocol's enum attempt_status: an accepted result ranks highest. */
enum { STATUS_ACCEPTED = 0, RANK_FAILED = 1, RANK_ACCEPTED = 2 };

/* The bulks of the tables of records come first. */
enum { NODES = TABLE_COUNT, OUTCOMES, BULKS };

struct rows {
    struct bulk *bulks[BULKS];
};

static struct bulk_target target_of(size_t bulk)
{
    switch (bulk) {
    case NODES:
        return (struct bulk_target){.table = "tree", .columns = 3, .then = ""};
    case OUTCOMES:
        return (struct bulk_target){
            .table = "outcomes",
            .columns = 4,
            .then = " ON CONFLICT(job, idx) DO UPDATE SET entry = excluded.entry,"
                    " rank = excluded.rank WHERE excluded.rank >= rank"};
    default:
        return tables_target((enum ledger_table)bulk);
    }
}

int rows_create(sqlite3 *database, struct rows **ret_rows)
{
    struct rows *rows = calloc(1, sizeof *rows);
    *ret_rows = rows;
    int code = rows == NULL ? SQLITE_NOMEM : SQLITE_OK;
    for (size_t i = 0; code == SQLITE_OK && i < BULKS; i++) {
        const struct bulk_target target = target_of(i);
        code = bulk_create(database, &target, &rows->bulks[i]);
    }
    return code;
}

void rows_destroy(struct rows **self)
{
    struct rows *rows = *self;
    if (rows != NULL) {
        for (size_t i = 0; i < BULKS; i++) {
            bulk_destroy(&rows->bulks[i]);
        }
        free(rows);
        *self = NULL;
    }
}

int rows_add_record(struct rows *rows, const struct ledger_record *record, uint64_t entry,
                    const uint64_t *leaf)
{
    struct cell cells[BULK_COLUMNS_MAX];
    (void)tables_cells(record, entry, leaf, cells);
    return bulk_add(rows->bulks[table_of_kind(record->kind)], cells);
}

int rows_add_node(struct rows *rows, unsigned level, uint64_t index, const struct hash32 *hash)
{
    const struct cell cells[] = {cell_integer(level), cell_integer((sqlite3_int64)index),
                                 cell_blob(hash->bytes, sizeof hash->bytes)};
    return bulk_add(rows->bulks[NODES], cells);
}

int rows_add_outcome(struct rows *rows, const struct ledger_record *record, uint64_t entry)
{
    const struct cell cells[] = {
        cell_blob(record->job.bytes, sizeof record->job.bytes), cell_integer(record->index),
        cell_integer((sqlite3_int64)entry),
        cell_integer(record->status == STATUS_ACCEPTED ? RANK_ACCEPTED : RANK_FAILED)};
    return bulk_add(rows->bulks[OUTCOMES], cells);
}

int rows_flush(struct rows *rows, const char **ret_table)
{
    for (size_t i = 0; i < BULKS; i++) {
        const int code = bulk_flush(rows->bulks[i]);
        if (code != SQLITE_OK) {
            *ret_table = target_of(i).table;
            return code;
        }
    }
    return SQLITE_OK;
}

void rows_clear(struct rows *rows)
{
    for (size_t i = 0; i < BULKS; i++) {
        bulk_clear(rows->bulks[i]);
    }
}
