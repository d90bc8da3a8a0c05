/* `struct ledger_reader` is an open reader; sqlite_reader.c and sqlite_receipt.c share it. */
#ifndef BOURSE_LEDGER_STORE_SQLITE_READER_INTERNAL_H
#define BOURSE_LEDGER_STORE_SQLITE_READER_INTERNAL_H

#include "ledger/store/sqlite.h"
#include "ledger/store/tree.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum statement {
    SELECT_STATEMENT,
    SELECT_RESULTS,
    SELECT_RESULTS_END,
    SELECT_TRADES,
    SELECT_OUTCOMES,
    SELECT_OTHERS,
    SELECT_MEASURED,
    SELECT_DECIDED,
    SELECT_BATCH,
    SELECT_CHECKPOINT,
    STATEMENTS
};

struct ledger_reader {
    sqlite3 *database;
    sqlite3_stmt *prepared[STATEMENTS];
    struct tree_reader tree;
};

/* Resets a walk's statement. Returns `status`, or the database's failure when `code` is one. */
enum ledger_store_status ledger_reader_end_walk(sqlite3_stmt *statement, int code,
                                                enum ledger_store_status status);
/* Copies a blob of a row; the caller frees the copy. Returns false when memory is short. */
bool ledger_reader_copy_blob(sqlite3_stmt *select, int column, uint8_t **ret_bytes,
                             size_t *ret_length);

#endif
