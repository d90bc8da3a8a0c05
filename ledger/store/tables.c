#include "ledger/store/tables.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The columns of each table after the four common ones, and the record's field for each. One list
 * makes the schema, writes the rows and reads them. */
enum column_type {
    COLUMN_U8,
    COLUMN_U32,
    COLUMN_U64,
    COLUMN_I64,
    COLUMN_KIND,
    COLUMN_ID,
    COLUMN_BYTES32,
    COLUMN_NAME,
    COLUMN_RESULT
};

struct column {
    const char *name;
    enum column_type type;
    size_t offset;
};

enum { COLUMNS_MAX = 20, COMMON_COLUMNS = 4 };
static_assert(COMMON_COLUMNS + COLUMNS_MAX <= BULK_COLUMNS_MAX, "a row fits into a bulk");

struct table {
    const char *name;
    struct column columns[COLUMNS_MAX];
};

#define FIELD(field) offsetof(struct ledger_record, field)

static const struct table tables[TABLE_COUNT] = {
    [TABLE_ACCOUNTS] = {"accounts",
                        {{"number", COLUMN_U32, FIELD(credit)},
                         {"key", COLUMN_BYTES32, FIELD(owner)},
                         {"roles", COLUMN_U32, FIELD(roles)},
                         {"name", COLUMN_NAME, FIELD(name)}}},
    [TABLE_TRANSFERS] = {"transfers",
                         {{"kind", COLUMN_KIND, FIELD(kind)},
                          {"debit", COLUMN_U32, FIELD(debit)},
                          {"credit", COLUMN_U32, FIELD(credit)},
                          {"amount", COLUMN_I64, FIELD(amount_micro)},
                          {"job", COLUMN_ID, FIELD(job)},
                          {"lease", COLUMN_U64, FIELD(lease)},
                          {"idx", COLUMN_U32, FIELD(index)},
                          {"attempt", COLUMN_U32, FIELD(attempt)}}},
    [TABLE_JOBS] = {"jobs",
                    {{"job", COLUMN_ID, FIELD(job)},
                     {"owner", COLUMN_BYTES32, FIELD(owner)},
                     {"manifest", COLUMN_BYTES32, FIELD(hash)},
                     {"subtasks", COLUMN_U32, FIELD(subtasks)},
                     {"budget", COLUMN_I64, FIELD(amount_micro)},
                     {"cap", COLUMN_I64, FIELD(price_micro)},
                     {"width", COLUMN_U32, FIELD(width)},
                     {"name", COLUMN_NAME, FIELD(name)}}},
    [TABLE_ASKS] = {"asks",
                    {{"ask", COLUMN_ID, FIELD(order)},
                     {"owner", COLUMN_BYTES32, FIELD(owner)},
                     {"device", COLUMN_ID, FIELD(device)},
                     {"slots", COLUMN_U32, FIELD(slots)},
                     {"price", COLUMN_I64, FIELD(price_micro)}}},
    [TABLE_BIDS] = {"bids",
                    {{"bid", COLUMN_ID, FIELD(order)},
                     {"owner", COLUMN_BYTES32, FIELD(owner)},
                     {"job", COLUMN_ID, FIELD(job)},
                     {"slots", COLUMN_U32, FIELD(slots)},
                     {"width", COLUMN_U32, FIELD(width)},
                     {"price", COLUMN_I64, FIELD(price_micro)}}},
    [TABLE_CANCELS] = {"cancels",
                       {{"order_id", COLUMN_ID, FIELD(order)},
                        {"reason", COLUMN_U8, FIELD(status)}}},
    [TABLE_FILLS] = {"fills",
                     {{"lease", COLUMN_U64, FIELD(lease)},
                      {"ask", COLUMN_ID, FIELD(order)},
                      {"bid", COLUMN_ID, FIELD(bid)},
                      {"job", COLUMN_ID, FIELD(job)},
                      {"provider", COLUMN_BYTES32, FIELD(provider)},
                      {"consumer", COLUMN_BYTES32, FIELD(owner)},
                      {"device", COLUMN_ID, FIELD(device)},
                      {"slots", COLUMN_U32, FIELD(slots)},
                      {"price", COLUMN_I64, FIELD(price_micro)},
                      {"term_ns", COLUMN_I64, FIELD(term_ns)},
                      {"instrument", COLUMN_NAME, FIELD(name)}}},
    [TABLE_RESULTS] = {"results",
                       {{"job", COLUMN_ID, FIELD(job)},
                        {"idx", COLUMN_U32, FIELD(index)},
                        {"attempt", COLUMN_U32, FIELD(attempt)},
                        {"lease", COLUMN_U64, FIELD(lease)},
                        {"provider", COLUMN_BYTES32, FIELD(provider)},
                        {"consumer", COLUMN_BYTES32, FIELD(owner)},
                        {"hash", COLUMN_BYTES32, FIELD(hash)},
                        {"outcome", COLUMN_U8, FIELD(outcome)},
                        {"status", COLUMN_U8, FIELD(status)},
                        {"price", COLUMN_I64, FIELD(price_micro)},
                        {"paid_ns", COLUMN_I64, FIELD(paid_ns)},
                        {"charge", COLUMN_I64, FIELD(charge_micro)},
                        {"batch_index", COLUMN_U64, FIELD(batch_index)},
                        {"level", COLUMN_U8, FIELD(level)},
                        {"checked_by", COLUMN_BYTES32, FIELD(check)},
                        {"position", COLUMN_U32, FIELD(position)},
                        {"bytes", COLUMN_RESULT, FIELD(result)}}},
    [TABLE_SETTLEMENTS] = {"settlements",
                           {{"job", COLUMN_ID, FIELD(job)},
                            {"state", COLUMN_U8, FIELD(status)},
                            {"accepted", COLUMN_U32, FIELD(accepted)},
                            {"failed", COLUMN_U32, FIELD(failed)},
                            {"cancelled", COLUMN_U32, FIELD(cancelled)},
                            {"charged", COLUMN_I64, FIELD(charge_micro)},
                            {"released", COLUMN_I64, FIELD(amount_micro)}}},
    [TABLE_FLAGS] = {"flags",
                     {{"owner", COLUMN_BYTES32, FIELD(owner)},
                      {"state", COLUMN_U8, FIELD(status)},
                      {"name", COLUMN_NAME, FIELD(name)}}},
    [TABLE_HELD] = {"held",
                    {{"job", COLUMN_ID, FIELD(job)},
                     {"idx", COLUMN_U32, FIELD(index)},
                     {"attempt", COLUMN_U32, FIELD(attempt)},
                     {"lease", COLUMN_U64, FIELD(lease)},
                     {"provider", COLUMN_BYTES32, FIELD(provider)},
                     {"consumer", COLUMN_BYTES32, FIELD(owner)},
                     {"hash", COLUMN_BYTES32, FIELD(hash)},
                     {"position", COLUMN_U32, FIELD(position)}}},
    [TABLE_EPOCHS] = {"epochs",
                      {{"commitment", COLUMN_BYTES32, FIELD(hash)},
                       {"secret", COLUMN_BYTES32, FIELD(check)}}},
};

/* These tables do not have one row per record. `tree` holds leaves (level 0) and every eighth level
 * above. */
static const char other_tables[] =
    "CREATE TABLE IF NOT EXISTS balances("
    "  account INTEGER PRIMARY KEY, available INTEGER NOT NULL, held INTEGER NOT NULL,"
    "  CHECK (held >= 0 AND (available >= 0 OR account = 0))) STRICT;"
    "CREATE TABLE IF NOT EXISTS outcomes("
    "  job BLOB NOT NULL, idx INTEGER NOT NULL, entry INTEGER NOT NULL, rank INTEGER NOT NULL,"
    "  PRIMARY KEY (job, idx)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS batches("
    "  log_index INTEGER PRIMARY KEY, signature BLOB NOT NULL, leaves BLOB NOT NULL) STRICT;"
    "CREATE TABLE IF NOT EXISTS tree("
    "  level INTEGER NOT NULL, idx INTEGER NOT NULL, hash BLOB NOT NULL,"
    "  PRIMARY KEY (level, idx)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS checkpoint("
    "  id INTEGER PRIMARY KEY CHECK (id = 1), tree_size INTEGER NOT NULL, note TEXT NOT NULL) "
    "STRICT;"
    "CREATE UNIQUE INDEX IF NOT EXISTS accounts_number ON accounts(number);"
    "CREATE UNIQUE INDEX IF NOT EXISTS accounts_key ON accounts(key);"
    "CREATE UNIQUE INDEX IF NOT EXISTS fills_lease ON fills(lease);"
    "CREATE INDEX IF NOT EXISTS results_failed ON results(job) WHERE status <> 0;"
    "CREATE INDEX IF NOT EXISTS transfers_debit ON transfers(debit);"
    "CREATE INDEX IF NOT EXISTS transfers_credit ON transfers(credit) WHERE credit <> debit;";

const char *table_name(enum ledger_table table)
{
    return tables[table].name;
}

int table_last_entry(sqlite3 *database, enum ledger_table table, uint64_t *ret_entry)
{
    char sql[96];
    sqlite3_stmt *select;
    /* The text fits. */
    (void)snprintf(sql, sizeof sql, "SELECT ifnull(max(entry), 0) FROM %s", table_name(table));
    int code = sqlite3_prepare_v2(database, sql, -1, &select, NULL);
    if (code != SQLITE_OK) {
        return code;
    }
    code = sqlite3_step(select);
    if (code == SQLITE_ROW) {
        *ret_entry = (uint64_t)sqlite3_column_int64(select, 0);
        code = SQLITE_OK;
    }
    (void)sqlite3_finalize(select); /* repeats the step's code */
    return code;
}

enum ledger_table table_of_kind(enum ledger_kind kind)
{
    switch (kind) {
    case LEDGER_ACCOUNT:
        return TABLE_ACCOUNTS;
    case LEDGER_TRANSFER:
    case LEDGER_HOLD:
    case LEDGER_CAPTURE:
    case LEDGER_RELEASE:
    case LEDGER_EXPIRE:
    case LEDGER_FEE:
        return TABLE_TRANSFERS;
    case LEDGER_JOB:
        return TABLE_JOBS;
    case LEDGER_ASK:
        return TABLE_ASKS;
    case LEDGER_BID:
        return TABLE_BIDS;
    case LEDGER_CANCEL:
        return TABLE_CANCELS;
    case LEDGER_FILL:
        return TABLE_FILLS;
    case LEDGER_RESULT:
        return TABLE_RESULTS;
    case LEDGER_SETTLED:
        return TABLE_SETTLEMENTS;
    case LEDGER_FLAG:
        return TABLE_FLAGS;
    case LEDGER_HELD:
        return TABLE_HELD;
    case LEDGER_EPOCH:
        return TABLE_EPOCHS;
    }
    abort(); /* every record has one of the kinds above */
}

bool table_holds(enum ledger_table table, enum ledger_kind kind)
{
    return kind >= LEDGER_ACCOUNT && kind <= LEDGER_EPOCH && table_of_kind(kind) == table;
}

static size_t column_count(const struct table *table)
{
    size_t count = 0;
    while (count < COLUMNS_MAX && table->columns[count].name != NULL) {
        count++;
    }
    return count;
}

static const char *sql_type(enum column_type type)
{
    switch (type) {
    case COLUMN_U8:
    case COLUMN_U32:
    case COLUMN_U64:
    case COLUMN_I64:
    case COLUMN_KIND:
        return "INTEGER";
    case COLUMN_ID:
    case COLUMN_BYTES32:
    case COLUMN_RESULT:
        return "BLOB";
    case COLUMN_NAME:
        return "TEXT";
    }
    return "";
}

enum { SQL_SIZE = 1024 };

/* Appends to the SQL text; every text here is our own and fits. */
static __attribute__((format(printf, 2, 3))) void append(char sql[SQL_SIZE], const char *format,
                                                         ...)
{
    size_t length = strlen(sql);
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(sql + length, SQL_SIZE - length, format, arguments);
    va_end(arguments);
    assert(more >= 0 && (size_t)more < SQL_SIZE - length);
}

static int create_table(sqlite3 *database, const struct table *table)
{
    char sql[SQL_SIZE] = "";
    append(sql,
           "CREATE TABLE IF NOT EXISTS %s(entry INTEGER PRIMARY KEY, log_index INTEGER NOT NULL,"
           " log_time_ns INTEGER NOT NULL, leaf INTEGER",
           table->name);
    for (size_t i = 0; i < column_count(table); i++) {
        append(sql, ", %s %s NOT NULL", table->columns[i].name, sql_type(table->columns[i].type));
    }
    append(sql, ") STRICT");
    return sqlite3_exec(database, sql, NULL, NULL, NULL);
}

int tables_create(sqlite3 *database)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        int code = create_table(database, &tables[i]);
        if (code != SQLITE_OK) {
            return code;
        }
    }
    return sqlite3_exec(database, other_tables, NULL, NULL, NULL);
}

struct bulk_target tables_target(enum ledger_table table)
{
    return (struct bulk_target){.table = tables[table].name,
                                .columns = COMMON_COLUMNS + column_count(&tables[table]),
                                .then = ""};
}

int tables_prepare_row(sqlite3 *database, enum ledger_table table, sqlite3_stmt **ret_statement)
{
    char sql[SQL_SIZE] = "SELECT ?";
    for (size_t i = 1; i < COMMON_COLUMNS + column_count(&tables[table]); i++) {
        append(sql, ", ?");
    }
    return sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_statement, NULL);
}

static sqlite3_int64 integer_of(enum column_type type, const void *field)
{
    switch (type) {
    case COLUMN_U8:
        return *(const uint8_t *)field;
    case COLUMN_U32:
        return *(const uint32_t *)field;
    case COLUMN_U64:
        return (sqlite3_int64) * (const uint64_t *)field;
    case COLUMN_I64:
        return *(const int64_t *)field;
    case COLUMN_KIND:
        return (sqlite3_int64) * (const enum ledger_kind *)field;
    case COLUMN_ID:
    case COLUMN_BYTES32:
    case COLUMN_NAME:
    case COLUMN_RESULT:
        break;
    }
    abort(); /* not an integer column */
}

static struct cell cell_of(const struct column *column, const struct ledger_record *record)
{
    static const uint8_t nothing[1]; /* a NULL pointer would bind NULL */
    const void *field = (const char *)record + column->offset;
    switch (column->type) {
    case COLUMN_U8:
    case COLUMN_U32:
    case COLUMN_U64:
    case COLUMN_I64:
    case COLUMN_KIND:
        break;
    case COLUMN_ID:
        return cell_blob(field, 16);
    case COLUMN_BYTES32:
        return cell_blob(field, 32);
    case COLUMN_NAME:
        return (struct cell){
            .type = CELL_TEXT, .bytes = field, .length = strnlen(field, sizeof record->name)};
    case COLUMN_RESULT:
        return cell_blob(record->result != NULL ? record->result : nothing, record->result_length);
    }
    return cell_integer(integer_of(column->type, field));
}

size_t tables_cells(const struct ledger_record *record, uint64_t entry, const uint64_t *leaf,
                    struct cell ret_cells[BULK_COLUMNS_MAX])
{
    const struct table *table = &tables[table_of_kind(record->kind)];
    const size_t columns = column_count(table);
    ret_cells[0] = cell_integer((sqlite3_int64)entry);
    ret_cells[1] = cell_integer((sqlite3_int64)record->log_index);
    ret_cells[2] = cell_integer(record->log_time_ns);
    ret_cells[3] = (struct cell){.type = CELL_NULL};
    if (leaf != NULL) {
        ret_cells[3] = cell_integer((sqlite3_int64)*leaf);
    }
    for (size_t i = 0; i < columns; i++) {
        ret_cells[COMMON_COLUMNS + i] = cell_of(&table->columns[i], record);
    }
    return COMMON_COLUMNS + columns;
}

void tables_bind(sqlite3_stmt *statement, const struct ledger_record *record, uint64_t entry,
                 const uint64_t *leaf)
{
    struct cell cells[BULK_COLUMNS_MAX];
    bulk_bind(statement, 1, cells, tables_cells(record, entry, leaf, cells));
}

bool table_column_bytes(sqlite3_stmt *statement, int column, void *ret_bytes, int length)
{
    const void *bytes = sqlite3_column_blob(statement, column);
    if (bytes == NULL || sqlite3_column_bytes(statement, column) != length) {
        return false;
    }
    memcpy(ret_bytes, bytes, (size_t)length);
    return true;
}

static bool read_column(sqlite3_stmt *statement, int position, const struct column *column,
                        struct ledger_record *record)
{
    void *field = (char *)record + column->offset;
    sqlite3_int64 integer = sqlite3_column_int64(statement, position);
    switch (column->type) {
    case COLUMN_U8:
        *(uint8_t *)field = (uint8_t)integer;
        return true;
    case COLUMN_U32:
        *(uint32_t *)field = (uint32_t)integer;
        return true;
    case COLUMN_U64:
        *(uint64_t *)field = (uint64_t)integer;
        return true;
    case COLUMN_I64:
        *(int64_t *)field = integer;
        return true;
    case COLUMN_KIND:
        *(enum ledger_kind *)field = (enum ledger_kind)integer;
        return true;
    case COLUMN_ID:
        return table_column_bytes(statement, position, field, 16);
    case COLUMN_BYTES32:
        return table_column_bytes(statement, position, field, 32);
    case COLUMN_NAME:
    case COLUMN_RESULT:
        return true;
    }
    return false;
}

bool tables_read(sqlite3_stmt *statement, enum ledger_table table, struct ledger_record *ret_record)
{
    static const enum ledger_kind kinds[TABLE_COUNT] = {
        [TABLE_ACCOUNTS] = LEDGER_ACCOUNT,
        [TABLE_TRANSFERS] = LEDGER_TRANSFER,
        [TABLE_JOBS] = LEDGER_JOB,
        [TABLE_ASKS] = LEDGER_ASK,
        [TABLE_BIDS] = LEDGER_BID,
        [TABLE_CANCELS] = LEDGER_CANCEL,
        [TABLE_FILLS] = LEDGER_FILL,
        [TABLE_RESULTS] = LEDGER_RESULT,
        [TABLE_SETTLEMENTS] = LEDGER_SETTLED,
        [TABLE_FLAGS] = LEDGER_FLAG,
        [TABLE_HELD] = LEDGER_HELD,
        [TABLE_EPOCHS] = LEDGER_EPOCH,
    };
    struct ledger_record record = {.kind = kinds[table]};
    record.log_index = (uint64_t)sqlite3_column_int64(statement, 1);
    record.log_time_ns = sqlite3_column_int64(statement, 2);
    for (size_t i = 0; i < column_count(&tables[table]); i++) {
        if (!read_column(statement, (int)(COMMON_COLUMNS + i), &tables[table].columns[i],
                         &record)) {
            return false;
        }
    }
    *ret_record = record;
    return true;
}

enum ledger_store_status store_status_of(int sqlite_code)
{
    if (sqlite_code == SQLITE_IOERR_SHMSIZE) {
        return LEDGER_STORE_FULL; /* the WAL's index could not grow; nothing was written yet */
    }
    switch (sqlite_code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return LEDGER_STORE_OK;
    case SQLITE_BUSY:
        return LEDGER_STORE_LOCKED;
    case SQLITE_FULL:
        return LEDGER_STORE_FULL;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT:
        return LEDGER_STORE_CORRUPT;
    case SQLITE_NOMEM:
        return LEDGER_STORE_OUT_OF_MEMORY;
    default:
        return LEDGER_STORE_FAILED;
    }
}
