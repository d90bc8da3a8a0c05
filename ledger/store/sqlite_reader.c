/* Readers of the stored ledger answer statements, trades, outcomes and receipts. */
#include "ledger/store/sqlite_reader_internal.h"

#include "ledger/store/effect.h"
#include "ledger/store/sqlite_code.h"
#include "ledger/store/tables.h"
#include "ledger/store/tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MONEY "entry, log_index, log_time_ns, kind, debit, credit, amount, job, lease, idx, attempt"

#define OUTCOME                                                                                    \
    "r.idx, r.attempt, r.status, r.charge, r.paid_ns, r.log_index, r.bytes, r.level, r.entry"
#define KIND_CAPTURE "4"
#define KIND_FEE "7"
static_assert(LEDGER_CAPTURE == 4 && LEDGER_FEE == 7,
              "the numbers are part of the ledger's format");

static const char *const statements[STATEMENTS] = {
    /* The query merges two ordered walks, each cut at the limit. An OR would sort the account's
     * whole history. */
    [SELECT_STATEMENT] =
        "SELECT m.entry, m.log_index, m.log_time_ns, m.kind, m.debit, m.credit, m.amount, m.job,"
        " m.lease, m.idx, f.device, fee.amount"
        " FROM (SELECT * FROM (SELECT " MONEY " FROM transfers WHERE debit = ?1 AND entry < ?2"
        "   ORDER BY entry DESC LIMIT ?3)"
        "  UNION ALL SELECT * FROM (SELECT " MONEY " FROM transfers WHERE credit = ?1"
        "   AND credit <> debit AND entry < ?2 ORDER BY entry DESC LIMIT ?3)"
        "  ORDER BY entry DESC LIMIT ?3) m"
        " LEFT JOIN fills f ON f.lease = m.lease AND m.lease <> 0"
        /* The fee of a capture is the next entry, for the same result, so that no other fee can
         * match. */
        " LEFT JOIN transfers fee ON fee.entry = m.entry + 1 AND fee.kind = " KIND_FEE
        "  AND m.kind = " KIND_CAPTURE " AND fee.job = m.job AND fee.idx = m.idx"
        "  AND fee.attempt = m.attempt"
        " ORDER BY m.entry DESC",
    [SELECT_RESULTS] = "SELECT r.entry, r.log_index, r.log_time_ns, r.job, r.idx, f.device,"
                       " iif(r.price = 0, r.paid_ns, 0) AS given, r.status <> 0 FROM results r"
                       " LEFT JOIN fills f ON f.lease = r.lease"
                       " WHERE r.entry < ?1 AND r.entry >= ?2 AND (r.status = 0 OR given > 0)"
                       " AND r.provider = (SELECT key FROM accounts WHERE number = ?3)"
                       " ORDER BY r.entry DESC LIMIT ?4",
    [SELECT_RESULTS_END] = "SELECT ifnull(max(entry), 0) + 1 FROM results",
    [SELECT_TRADES] = "SELECT entry, log_time_ns, slots, price, instrument, log_index FROM fills"
                      " WHERE entry < ?1 ORDER BY entry DESC LIMIT ?2",
    [SELECT_OUTCOMES] = "SELECT " OUTCOME " FROM outcomes o JOIN results r ON r.entry = o.entry"
                        " WHERE o.job = ?1 AND o.idx >= ?2 ORDER BY o.idx LIMIT ?3",
    /* An accepted result always decides, so the index of other results holds all of these. */
    [SELECT_OTHERS] =
        "SELECT " OUTCOME " FROM results r LEFT JOIN outcomes o ON o.job = r.job AND o.idx = r.idx"
        " WHERE r.job = ?1 AND r.status <> 0 AND r.entry >= ?2 AND r.entry IS NOT o.entry"
        " ORDER BY r.entry LIMIT ?3",
    [SELECT_MEASURED] = "SELECT r.entry, r.log_time_ns, r.idx, r.paid_ns, r.bytes, f.instrument, "
                        "f.provider, f.device"
                        " FROM results r"
                        " JOIN fills f ON f.lease = r.lease WHERE r.entry > ?1 AND r.status = 0"
                        " ORDER BY r.entry LIMIT ?2",
    [SELECT_DECIDED] = ("SELECT r.* FROM outcomes o JOIN results r ON r.entry = o.entry"
                        " WHERE o.job = ?1 AND o.idx >= ?2 ORDER BY o.idx LIMIT ?3"),
    [SELECT_BATCH] = "SELECT signature, leaves FROM batches WHERE log_index = ?1",
    [SELECT_CHECKPOINT] = "SELECT tree_size, note FROM checkpoint",
};

/* ---- opening */

static enum ledger_store_status prepare(struct ledger_reader *reader)
{
    for (size_t i = 0; i < STATEMENTS; i++) {
        int code = sqlite3_prepare_v3(reader->database, statements[i], -1,
                                      SQLITE_PREPARE_PERSISTENT, &reader->prepared[i], NULL);
        if (code != SQLITE_OK) {
            return store_status_of(code);
        }
    }
    return store_status_of(tree_reader_init(&reader->tree, reader->database));
}

enum ledger_store_status ledger_reader_open(const char *path, struct ledger_reader **ret_reader)
{
    struct ledger_reader *reader = calloc(1, sizeof *reader);
    *ret_reader = NULL;
    if (reader == NULL) {
        return LEDGER_STORE_OUT_OF_MEMORY;
    }
    sqlite_know_errors();
    int code = sqlite3_open_v2(path, &reader->database, SQLITE_OPEN_READONLY, NULL);
    enum ledger_store_status status = store_status_of(code);
    if (status == LEDGER_STORE_OK) {
        (void)sqlite3_busy_timeout(reader->database, 2000); /* cannot fail on an open handle */
        status = prepare(reader);
    }
    if (status != LEDGER_STORE_OK) {
        ledger_reader_close(&reader);
        return status;
    }
    *ret_reader = reader;
    return LEDGER_STORE_OK;
}

void ledger_reader_close(struct ledger_reader **self)
{
    struct ledger_reader *reader = *self;
    if (reader == NULL) {
        return;
    }
    for (size_t i = 0; i < STATEMENTS; i++) {
        (void)sqlite3_finalize(reader->prepared[i]); /* repeats the last step's code */
    }
    tree_reader_fini(&reader->tree);
    (void)sqlite3_close_v2(reader->database); /* the database is read only */
    free(reader);
    *self = NULL;
}

sqlite3 *ledger_reader_database(struct ledger_reader *reader)
{
    return reader->database;
}

enum ledger_store_status ledger_reader_end_walk(sqlite3_stmt *statement, int code,
                                                enum ledger_store_status status)
{
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return status == LEDGER_STORE_OK ? store_status_of(code) : status;
}

/* ---- statements of account */

static void read_money(sqlite3_stmt *select, uint32_t account, struct ledger_statement_row *ret_row)
{
    struct ledger_record record = {
        .kind = (enum ledger_kind)sqlite3_column_int(select, 3),
        .debit = (uint32_t)sqlite3_column_int64(select, 4),
        .credit = (uint32_t)sqlite3_column_int64(select, 5),
        .amount_micro = sqlite3_column_int64(select, 6),
    };
    struct ledger_statement_row row = {
        .entry = (uint64_t)sqlite3_column_int64(select, 0),
        .log_index = (uint64_t)sqlite3_column_int64(select, 1),
        .log_time_ns = sqlite3_column_int64(select, 2),
        .kind = record.kind,
        .index = (uint32_t)sqlite3_column_int64(select, 9),
        /* Entries with a lease are earnings of a subtask. */
        .has_index = sqlite3_column_int64(select, 8) != 0,
        .counterparty = UINT32_MAX,
    };
    /* Damaged ids become zeros; the audit finds them. */
    (void)table_column_bytes(select, 7, row.job.bytes, sizeof row.job.bytes);
    /* Zeros mean that the record names no device. */
    (void)table_column_bytes(select, 10, row.device.bytes, sizeof row.device.bytes);
    row.fee_micro = sqlite3_column_int64(select, 11);
    if (record.debit != record.credit) {
        row.counterparty = record.debit == account ? record.credit : record.debit;
    }
    if (record.debit == account) {
        struct ledger_effect effect = effect_on_debit(&record);
        row.amount_micro += effect.available_micro;
        row.held_micro += effect.held_micro;
    }
    if (record.credit == account) {
        row.amount_micro += effect_on_credit(&record).available_micro;
    }
    *ret_row = row;
}

enum ledger_store_status ledger_reader_statement(struct ledger_reader *reader, uint32_t account,
                                                 uint64_t before, size_t limit,
                                                 struct ledger_statement_row *ret_rows,
                                                 size_t *ret_count)
{
    sqlite3_stmt *select = reader->prepared[SELECT_STATEMENT];
    bool from_end = before == 0 || before > INT64_MAX;
    size_t count = 0;
    int code = SQLITE_DONE;
    (void)sqlite3_bind_int64(select, 1, account); /* a failed bind gives no rows */
    (void)sqlite3_bind_int64(select, 2, from_end ? INT64_MAX : (sqlite3_int64)before);
    (void)sqlite3_bind_int64(select, 3, (sqlite3_int64)limit);
    while (count < limit && (code = sqlite3_step(select)) == SQLITE_ROW) {
        read_money(select, account, &ret_rows[count++]);
    }
    enum ledger_store_status status = ledger_reader_end_walk(select, code, LEDGER_STORE_OK);
    if (status == LEDGER_STORE_OK) {
        *ret_count = count;
    }
    return status;
}

static void read_result(sqlite3_stmt *select, struct ledger_statement_row *ret_row)
{
    struct ledger_statement_row row = {
        .entry = (uint64_t)sqlite3_column_int64(select, 0),
        .log_index = (uint64_t)sqlite3_column_int64(select, 1),
        .log_time_ns = sqlite3_column_int64(select, 2),
        .kind = LEDGER_RESULT,
        .index = (uint32_t)sqlite3_column_int64(select, 4),
        .has_index = true,
        .counterparty = UINT32_MAX,
        .given_ns = sqlite3_column_int64(select, 6),
        .is_failed = sqlite3_column_int(select, 7) != 0,
    };
    /* A damaged column gives zeros. */
    (void)table_column_bytes(select, 3, row.job.bytes, sizeof row.job.bytes);
    (void)table_column_bytes(select, 5, row.device.bytes, sizeof row.device.bytes);
    *ret_row = row;
}

uint64_t ledger_reader_steps(struct ledger_reader *reader)
{
    uint64_t steps = 0;
    for (size_t i = 0; i < sizeof reader->prepared / sizeof reader->prepared[0]; i++) {
        const int taken = sqlite3_stmt_status(reader->prepared[i], SQLITE_STMTSTATUS_VM_STEP, true);
        steps += taken > 0 ? (uint64_t)taken : 0;
    }
    return steps;
}

enum ledger_store_status ledger_reader_results_end(struct ledger_reader *reader, uint64_t *ret_end)
{
    sqlite3_stmt *select = reader->prepared[SELECT_RESULTS_END];
    int code = sqlite3_step(select);
    *ret_end = code == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(select, 0) : 0;
    return ledger_reader_end_walk(select, code, LEDGER_STORE_OK);
}

enum ledger_store_status ledger_reader_results(struct ledger_reader *reader, uint32_t account,
                                               uint64_t before, uint64_t walk, size_t limit,
                                               struct ledger_statement_row *ret_rows,
                                               size_t *ret_count, uint64_t *ret_next)
{
    sqlite3_stmt *select = reader->prepared[SELECT_RESULTS];
    uint64_t end;
    enum ledger_store_status status = ledger_reader_results_end(reader, &end);
    if (status != LEDGER_STORE_OK) {
        return status;
    }
    uint64_t until = before == 0 || before > end ? end : before;
    uint64_t from = until > walk ? until - walk : 0;
    size_t count = 0;
    int code = SQLITE_DONE;
    (void)sqlite3_bind_int64(select, 1, (sqlite3_int64)until); /* a failed bind gives no rows */
    (void)sqlite3_bind_int64(select, 2, (sqlite3_int64)from);
    (void)sqlite3_bind_int64(select, 3, account);
    (void)sqlite3_bind_int64(select, 4, (sqlite3_int64)limit);
    while (count < limit && (code = sqlite3_step(select)) == SQLITE_ROW) {
        read_result(select, &ret_rows[count++]);
    }
    status = ledger_reader_end_walk(select, code, LEDGER_STORE_OK);
    if (status == LEDGER_STORE_OK) {
        *ret_next = count == limit ? ret_rows[count - 1].entry : from;
        *ret_count = count;
    }
    return status;
}

/* ---- trades */

static void read_trade(sqlite3_stmt *select, struct ledger_trade_row *ret_row)
{
    struct ledger_trade_row row = {
        .entry = (uint64_t)sqlite3_column_int64(select, 0),
        .log_time_ns = sqlite3_column_int64(select, 1),
        .slots = (uint32_t)sqlite3_column_int64(select, 2),
        .price_micro = sqlite3_column_int64(select, 3),
        .log_index = (uint64_t)sqlite3_column_int64(select, 5),
    };
    const void *text = sqlite3_column_text(select, 4);
    size_t length = (size_t)sqlite3_column_bytes(select, 4);
    if (text != NULL && length < sizeof row.instrument) {
        memcpy(row.instrument, text, length);
    }
    *ret_row = row;
}

enum ledger_store_status ledger_reader_last_entry(struct ledger_reader *reader, uint64_t *ret_entry)
{
    uint64_t newest = 0;
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        uint64_t last = 0;
        const int code = table_last_entry(reader->database, (enum ledger_table)i, &last);
        if (code != SQLITE_OK) {
            return store_status_of(code);
        }
        newest = last > newest ? last : newest;
    }
    *ret_entry = newest;
    return LEDGER_STORE_OK;
}

enum ledger_store_status ledger_reader_trades(struct ledger_reader *reader, uint64_t before,
                                              size_t limit, struct ledger_trade_row *ret_rows,
                                              size_t *ret_count)
{
    sqlite3_stmt *select = reader->prepared[SELECT_TRADES];
    bool from_end = before == 0 || before > INT64_MAX;
    size_t count = 0;
    int code = SQLITE_DONE;
    /* A failed bind gives no rows. */
    (void)sqlite3_bind_int64(select, 1, from_end ? INT64_MAX : (sqlite3_int64)before);
    (void)sqlite3_bind_int64(select, 2, (sqlite3_int64)limit);
    while (count < limit && (code = sqlite3_step(select)) == SQLITE_ROW) {
        read_trade(select, &ret_rows[count++]);
    }
    enum ledger_store_status status = ledger_reader_end_walk(select, code, LEDGER_STORE_OK);
    if (status == LEDGER_STORE_OK) {
        *ret_count = count;
    }
    return status;
}

/* ---- outcomes */

bool ledger_reader_copy_blob(sqlite3_stmt *select, int column, uint8_t **ret_bytes,
                             size_t *ret_length)
{
    const void *bytes = sqlite3_column_blob(select, column);
    size_t length = (size_t)sqlite3_column_bytes(select, column);
    uint8_t *copy = malloc(length > 0 ? length : 1);
    if (copy == NULL) {
        return false;
    }
    if (length > 0) {
        memcpy(copy, bytes, length);
    }
    *ret_bytes = copy;
    *ret_length = length;
    return true;
}

static bool read_outcome(sqlite3_stmt *select, struct ledger_outcome_row *ret_row)
{
    struct ledger_outcome_row row = {
        .index = (uint32_t)sqlite3_column_int64(select, 0),
        .attempt = (uint32_t)sqlite3_column_int64(select, 1),
        .status = (uint8_t)sqlite3_column_int(select, 2),
        .charge_micro = sqlite3_column_int64(select, 3),
        .paid_ns = sqlite3_column_int64(select, 4),
        .log_index = (uint64_t)sqlite3_column_int64(select, 5),
        .level = (uint8_t)sqlite3_column_int(select, 7),
        .entry = (uint64_t)sqlite3_column_int64(select, 8),
    };
    if (!ledger_reader_copy_blob(select, 6, &row.result, &row.result_length)) {
        return false;
    }
    *ret_row = row;
    return true;
}

static enum ledger_store_status read_outcomes(sqlite3_stmt *select, const struct id128 *job,
                                              uint64_t from, size_t limit, size_t max_bytes,
                                              struct ledger_outcome_row *ret_rows,
                                              size_t *ret_count)
{
    enum ledger_store_status status = LEDGER_STORE_OK;
    size_t count = 0;
    size_t bytes = 0;
    int code = SQLITE_DONE;
    (void)sqlite3_bind_blob(select, 1, job->bytes, sizeof job->bytes, SQLITE_STATIC);
    (void)sqlite3_bind_int64(select, 2, from > INT64_MAX ? INT64_MAX : (sqlite3_int64)from);
    (void)sqlite3_bind_int64(select, 3, (sqlite3_int64)limit);
    while (count < limit && (code = sqlite3_step(select)) == SQLITE_ROW) {
        size_t length = (size_t)sqlite3_column_bytes(select, 6);
        if (length > max_bytes - bytes) {
            break; /* the caller asks again from here */
        }
        if (!read_outcome(select, &ret_rows[count])) {
            status = LEDGER_STORE_OUT_OF_MEMORY;
            break;
        }
        bytes += length;
        count++;
    }
    status = ledger_reader_end_walk(select, code, status);
    if (status != LEDGER_STORE_OK) {
        for (size_t i = 0; i < count; i++) {
            free(ret_rows[i].result);
        }
        return status;
    }
    *ret_count = count;
    return LEDGER_STORE_OK;
}

enum ledger_store_status ledger_reader_outcomes(struct ledger_reader *reader,
                                                const struct id128 *job, uint32_t from,
                                                size_t limit, size_t max_bytes,
                                                struct ledger_outcome_row *ret_rows,
                                                size_t *ret_count)
{
    return read_outcomes(reader->prepared[SELECT_OUTCOMES], job, from, limit, max_bytes, ret_rows,
                         ret_count);
}

enum ledger_store_status ledger_reader_others(struct ledger_reader *reader, const struct id128 *job,
                                              uint64_t from, size_t limit, size_t max_bytes,
                                              struct ledger_outcome_row *ret_rows,
                                              size_t *ret_count)
{
    return read_outcomes(reader->prepared[SELECT_OTHERS], job, from, limit, max_bytes, ret_rows,
                         ret_count);
}

/* ---- measured times */

/* Copies a blob of `length` bytes, or zeros when its length differs. */
static void copy_fixed(sqlite3_stmt *select, int column, uint8_t *ret_bytes, size_t length)
{
    const void *bytes = sqlite3_column_blob(select, column);
    memset(ret_bytes, 0, length);
    if (bytes != NULL && (size_t)sqlite3_column_bytes(select, column) == length) {
        memcpy(ret_bytes, bytes, length);
    }
}

static bool read_measured(sqlite3_stmt *select, struct ledger_measured_row *ret_row)
{
    struct ledger_measured_row row = {
        .entry = (uint64_t)sqlite3_column_int64(select, 0),
        .log_time_ns = sqlite3_column_int64(select, 1),
        .index = (uint32_t)sqlite3_column_int64(select, 2),
        .paid_ns = sqlite3_column_int64(select, 3),
    };
    const void *text = sqlite3_column_text(select, 5);
    const size_t length = (size_t)sqlite3_column_bytes(select, 5);
    if (text != NULL && length < sizeof row.instrument) {
        memcpy(row.instrument, text, length);
    }
    copy_fixed(select, 6, row.provider.bytes, sizeof row.provider.bytes);
    copy_fixed(select, 7, row.device.bytes, sizeof row.device.bytes);
    if (!ledger_reader_copy_blob(select, 4, &row.result, &row.result_length)) {
        return false;
    }
    *ret_row = row;
    return true;
}

enum ledger_store_status ledger_reader_measured(struct ledger_reader *reader, uint64_t after,
                                                size_t limit, struct ledger_measured_row *ret_rows,
                                                size_t *ret_count)
{
    sqlite3_stmt *select = reader->prepared[SELECT_MEASURED];
    enum ledger_store_status status = LEDGER_STORE_OK;
    size_t count = 0;
    int code = SQLITE_DONE;
    (void)sqlite3_bind_int64(select, 1, after > INT64_MAX ? INT64_MAX : (sqlite3_int64)after);
    (void)sqlite3_bind_int64(select, 2, (sqlite3_int64)limit); /* a failed bind gives no rows */
    while (count < limit && (code = sqlite3_step(select)) == SQLITE_ROW) {
        if (!read_measured(select, &ret_rows[count])) {
            status = LEDGER_STORE_OUT_OF_MEMORY;
            break;
        }
        count++;
    }
    status = ledger_reader_end_walk(select, code, status);
    if (status != LEDGER_STORE_OK) {
        for (size_t i = 0; i < count; i++) {
            free(ret_rows[i].result);
        }
        return status;
    }
    *ret_count = count;
    return LEDGER_STORE_OK;
}
