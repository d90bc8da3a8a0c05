/* ledger/store/sqlite_tables.h is shared by the files of ledger/store. The header has the tables,
 * the mapping of records to rows, and the tree's nodes. No other room includes it. docs/ledger.md
 * section 3 lists the tables. */
#ifndef BOURSE_LEDGER_STORE_SQLITE_TABLES_H
#define BOURSE_LEDGER_STORE_SQLITE_TABLES_H

#include "ledger/merkle.h"
#include "ledger/record.h"
#include "ledger/store/sqlite.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { LEDGER_SCHEMA_VERSION = 3, TREE_LEVEL_STEP = 8 };

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
/* Prepares "INSERT INTO results VALUES(?1, ?2, ...)". */
int tables_prepare_insert(sqlite3 *database, enum ledger_table table, sqlite3_stmt **ret_statement);
/* Prepares "SELECT ?1, ?2, ...": a row of the table's shape, made of the bound values. */
int tables_prepare_row(sqlite3 *database, enum ledger_table table, sqlite3_stmt **ret_statement);
/* Binds entry, leaf (NULL: not logged) and every column of the record. The record must live until
 * the step. */
void tables_bind(sqlite3_stmt *statement, const struct ledger_record *record, uint64_t entry,
                 const uint64_t *leaf);
/* Reads the columns of a row selected with SELECT * back into a record (name and result excepted).
 * Returns false when a blob has the wrong size. */
bool tables_read(sqlite3_stmt *statement, enum ledger_table table,
                 struct ledger_record *ret_record);

/* The effect of a money record on one account. */
struct ledger_effect {
    int64_t available_micro;
    int64_t held_micro;
};
bool kind_is_money(enum ledger_kind kind);
struct ledger_effect effect_on_debit(const struct ledger_record *record);
struct ledger_effect effect_on_credit(const struct ledger_record *record);

/* Reads hashes of complete subtrees. Leaves and every TREE_LEVEL_STEP-th level are stored. The
 * others are folded from at most 2^(TREE_LEVEL_STEP-1) stored hashes. */
struct tree_reader {
    sqlite3_stmt *select_range; /* level, first, count */
    int error;                  /* the code of the last failed read */
};
int tree_reader_init(struct tree_reader *self, sqlite3 *database);
void tree_reader_fini(struct tree_reader *self);
/* The function is a merkle_read_node. */
bool tree_read_node(void *tree_reader, unsigned level, uint64_t index, struct hash32 *ret_hash);
/* Loads the tree of the first `size` leaves. */
bool tree_load(struct tree_reader *reader, uint64_t size, struct merkle *ret_tree);

enum ledger_store_status store_status_of(int sqlite_code);
bool column_bytes(sqlite3_stmt *statement, int column, void *ret_bytes, int length);

#endif
