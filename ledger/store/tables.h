/* ledger/store/tables.h has the tables of the ledger, and the mapping of records to rows. Only
 * files of ledger/store include it. docs/ledger.md section 3 lists the tables. */
#ifndef BOURSE_LEDGER_STORE_TABLES_H
#define BOURSE_LEDGER_STORE_TABLES_H

#include "ledger/record.h"
#include "ledger/store/bulk.h"
#include "ledger/store/sqlite.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { LEDGER_SCHEMA_VERSION = 3 };

/* Each group of record kinds has one table. Every table begins with the columns entry, log_index,
 * log_time_ns, leaf. */
enum ledger_table {
    TABLE_ACCOUNTS,
    TABLE_TRANSFERS,
    TABLE_JOBS,
    TABLE_ASKS,
    TABLE_BIDS,
    TABLE_CANCELS,
    TABLE_FILLS,
    TABLE_RESULTS,
    TABLE_SETTLEMENTS,
    TABLE_FLAGS,
    TABLE_HELD,
    TABLE_EPOCHS,
    TABLE_COUNT,
};

enum ledger_table table_of_kind(enum ledger_kind kind);
/* Returns true when rows of the table may have the kind; `kind` may be any number. */
bool table_holds(enum ledger_table table, enum ledger_kind kind);
const char *table_name(enum ledger_table table);
/* Returns the highest entry in the table; 0: none. */
int table_last_entry(sqlite3 *database, enum ledger_table table, uint64_t *ret_entry);

/* Creates every missing table. */
int tables_create(sqlite3 *database);
/* Returns where a bulk of the table's rows goes. */
struct bulk_target tables_target(enum ledger_table table);
/* Prepares "SELECT ?1, ?2, ...": a row of the table's shape, made of the bound values. */
int tables_prepare_row(sqlite3 *database, enum ledger_table table, sqlite3_stmt **ret_statement);
/* Writes the row of a record: entry, leaf (NULL: not logged) and every column. Returns the number
 * of cells. The cells borrow from the record. */
size_t tables_cells(const struct ledger_record *record, uint64_t entry, const uint64_t *leaf,
                    struct cell ret_cells[BULK_COLUMNS_MAX]);
/* Binds entry, leaf (NULL: not logged) and every column of the record. The record must live until
 * the step. */
void tables_bind(sqlite3_stmt *statement, const struct ledger_record *record, uint64_t entry,
                 const uint64_t *leaf);
/* Reads the columns of a row selected with SELECT * back into a record (name and result excepted).
 * Returns false when a blob has the wrong size. */
bool tables_read(sqlite3_stmt *statement, enum ledger_table table,
                 struct ledger_record *ret_record);

enum ledger_store_status store_status_of(int sqlite_code);
bool table_column_bytes(sqlite3_stmt *statement, int column, void *ret_bytes, int length);

#endif
