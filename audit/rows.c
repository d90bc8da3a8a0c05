/* The audit reads the ledger's twelve tables as one stream, in the order of their entry numbers. */
#include "audit/audit_internal.h"

#include <inttypes.h>
#include <string.h>

static const char *const queries[AUDIT_TABLES] = {
    [AUDIT_ACCOUNTS] = "SELECT entry, log_index, log_time_ns, leaf, number, key, roles, name FROM "
                       "accounts ORDER BY entry",
    [AUDIT_TRANSFERS] =
        "SELECT entry, log_index, log_time_ns, leaf, kind, debit, credit, amount, job, lease, idx,"
        " attempt FROM transfers ORDER BY entry",
    [AUDIT_JOBS] = "SELECT entry, log_index, log_time_ns, leaf, job, owner, manifest, subtasks, "
                   "budget, cap, width, name"
                   " FROM jobs ORDER BY entry",
    [AUDIT_ASKS] =
        "SELECT entry, log_index, log_time_ns, leaf, ask, owner, device, slots, price FROM asks"
        " ORDER BY entry",
    [AUDIT_BIDS] =
        "SELECT entry, log_index, log_time_ns, leaf, bid, owner, job, slots, width, price FROM bids"
        " ORDER BY entry",
    [AUDIT_CANCELS] =
        "SELECT entry, log_index, log_time_ns, leaf, order_id, reason FROM cancels ORDER BY entry",
    [AUDIT_FILLS] = "SELECT entry, log_index, log_time_ns, leaf, lease, ask, bid, job, provider, "
                    "consumer, device,"
                    " slots, price, term_ns, instrument FROM fills ORDER BY entry",
    [AUDIT_RESULTS] =
        "SELECT entry, log_index, log_time_ns, leaf, job, idx, attempt, lease, provider, consumer, "
        "hash,"
        " outcome, status, price, paid_ns, charge, batch_index, level, checked_by, position, bytes"
        " FROM results ORDER BY entry",
    [AUDIT_SETTLEMENTS] =
        "SELECT entry, log_index, log_time_ns, leaf, job, state, accepted, failed, cancelled,"
        " charged, released FROM settlements ORDER BY entry",
    [AUDIT_FLAGS] = "SELECT entry, log_index, log_time_ns, leaf, owner, state, name FROM flags "
                    "ORDER BY entry",
    [AUDIT_HELD] =
        "SELECT entry, log_index, log_time_ns, leaf, job, idx, attempt, lease, provider, "
        "consumer, hash, position FROM held ORDER BY entry",
    [AUDIT_EPOCHS] = "SELECT entry, log_index, log_time_ns, leaf, commitment, secret FROM epochs "
                     "ORDER BY entry",
};

const char *audit_table_name(enum audit_table table)
{
    static const char *const names[AUDIT_TABLES] = {"accounts",    "transfers", "jobs",  "asks",
                                                    "bids",        "cancels",   "fills", "results",
                                                    "settlements", "flags",     "held",  "epochs"};
    return names[table];
}

/* Takes the columns of one row from left to right. */
struct columns {
    sqlite3_stmt *statement;
    int next;
    bool failed; /* some value had the wrong type, size or range */
};

static int64_t take_i64(struct columns *columns)
{
    columns->failed =
        columns->failed || sqlite3_column_type(columns->statement, columns->next) != SQLITE_INTEGER;
    return sqlite3_column_int64(columns->statement, columns->next++);
}

static uint64_t take_u64(struct columns *columns)
{
    return (uint64_t)take_i64(columns);
}

static uint32_t take_u32(struct columns *columns)
{
    int64_t value = take_i64(columns);
    columns->failed = columns->failed || value < 0 || value > UINT32_MAX;
    return (uint32_t)value;
}

static uint8_t take_u8(struct columns *columns)
{
    int64_t value = take_i64(columns);
    columns->failed = columns->failed || value < 0 || value > UINT8_MAX;
    return (uint8_t)value;
}

static void take_bytes(struct columns *columns, void *ret_bytes, int length)
{
    const void *bytes = sqlite3_column_blob(columns->statement, columns->next);
    if (bytes == NULL || sqlite3_column_bytes(columns->statement, columns->next) != length) {
        columns->failed = true;
    } else {
        memcpy(ret_bytes, bytes, (size_t)length);
    }
    columns->next++;
}

static void take_name(struct columns *columns, struct audit_row *row)
{
    const void *text = sqlite3_column_text(columns->statement, columns->next);
    size_t length = (size_t)sqlite3_column_bytes(columns->statement, columns->next);
    if (text == NULL || length >= sizeof row->name || memchr(text, '\0', length) != NULL) {
        columns->failed = true;
    } else {
        memcpy(row->name, text, length);
    }
    columns->next++;
}

static void take_transfer(struct columns *columns, struct audit_row *row)
{
    row->kind = take_i64(columns);
    row->debit = take_u32(columns);
    row->credit = take_u32(columns);
    row->amount = take_i64(columns);
    take_bytes(columns, row->job.bytes, 16);
    row->lease = take_u64(columns);
    row->index = take_u32(columns);
    row->attempt = take_u32(columns);
}

static void take_job(struct columns *columns, struct audit_row *row)
{
    take_bytes(columns, row->job.bytes, 16);
    take_bytes(columns, row->owner.bytes, 32);
    take_bytes(columns, row->hash.bytes, 32);
    row->subtasks = take_u32(columns);
    row->budget = take_i64(columns);
    row->cap = take_i64(columns);
    row->width = take_u32(columns);
    take_name(columns, row);
}

static void take_fill(struct columns *columns, struct audit_row *row)
{
    row->lease = take_u64(columns);
    take_bytes(columns, row->order.bytes, 16);
    take_bytes(columns, row->bid.bytes, 16);
    take_bytes(columns, row->job.bytes, 16);
    take_bytes(columns, row->provider.bytes, 32);
    take_bytes(columns, row->owner.bytes, 32);
    take_bytes(columns, row->device.bytes, 16);
    row->slots = take_u32(columns);
    row->price = take_i64(columns);
    row->term_ns = take_i64(columns);
    take_name(columns, row);
}

static void take_attempt(struct columns *columns, struct audit_row *row)
{
    take_bytes(columns, row->job.bytes, 16);
    row->index = take_u32(columns);
    row->attempt = take_u32(columns);
    row->lease = take_u64(columns);
    take_bytes(columns, row->provider.bytes, 32);
    take_bytes(columns, row->owner.bytes, 32);
    take_bytes(columns, row->hash.bytes, 32);
}

static void take_result(struct columns *columns, struct audit_row *row)
{
    take_attempt(columns, row);
    row->outcome = take_u8(columns);
    row->status = take_u8(columns);
    row->price = take_i64(columns);
    row->paid_ns = take_i64(columns);
    row->charge = take_i64(columns);
    row->batch_index = take_u64(columns);
    row->level = take_u8(columns);
    take_bytes(columns, row->check.bytes, 32);
    row->position = take_u32(columns);
    row->bytes = sqlite3_column_blob(columns->statement, columns->next);
    row->length = (size_t)sqlite3_column_bytes(columns->statement, columns->next);
}

static void take_settlement(struct columns *columns, struct audit_row *row)
{
    take_bytes(columns, row->job.bytes, 16);
    row->status = take_u8(columns);
    row->accepted = take_u32(columns);
    row->failed = take_u32(columns);
    row->cancelled = take_u32(columns);
    row->charged = take_i64(columns);
    row->released = take_i64(columns);
}

static void take_fields(struct columns *columns, struct audit_row *row)
{
    switch (row->table) {
    case AUDIT_ACCOUNTS:
        row->number = take_u32(columns);
        take_bytes(columns, row->owner.bytes, 32);
        row->roles = take_u32(columns);
        take_name(columns, row);
        return;
    case AUDIT_TRANSFERS:
        take_transfer(columns, row);
        return;
    case AUDIT_JOBS:
        take_job(columns, row);
        return;
    case AUDIT_ASKS:
        take_bytes(columns, row->order.bytes, 16);
        take_bytes(columns, row->owner.bytes, 32);
        take_bytes(columns, row->device.bytes, 16);
        row->slots = take_u32(columns);
        row->price = take_i64(columns);
        return;
    case AUDIT_BIDS:
        take_bytes(columns, row->order.bytes, 16);
        take_bytes(columns, row->owner.bytes, 32);
        take_bytes(columns, row->job.bytes, 16);
        row->slots = take_u32(columns);
        row->width = take_u32(columns);
        row->price = take_i64(columns);
        return;
    case AUDIT_CANCELS:
        take_bytes(columns, row->order.bytes, 16);
        row->status = take_u8(columns);
        return;
    case AUDIT_FILLS:
        take_fill(columns, row);
        return;
    case AUDIT_RESULTS:
        take_result(columns, row);
        return;
    case AUDIT_SETTLEMENTS:
        take_settlement(columns, row);
        return;
    case AUDIT_FLAGS:
        take_bytes(columns, row->owner.bytes, 32);
        row->status = take_u8(columns);
        take_name(columns, row);
        return;
    case AUDIT_HELD:
        take_attempt(columns, row);
        row->position = take_u32(columns);
        return;
    case AUDIT_EPOCHS:
        take_bytes(columns, row->hash.bytes, 32);
        take_bytes(columns, row->check.bytes, 32);
        return;
    case AUDIT_TABLES:
        return;
    }
}

static bool read_ahead(struct audit *audit, enum audit_table table)
{
    sqlite3_stmt *statement = audit->rows.statements[table];
    int code = sqlite3_step(statement);
    audit->rows.has_ahead[table] = code == SQLITE_ROW;
    if (code == SQLITE_DONE) {
        return true;
    }
    if (code != SQLITE_ROW) {
        return audit_unreadable(audit, "table %s cannot be read: %s", audit_table_name(table),
                                sqlite3_errmsg(audit->database));
    }
    struct columns columns = {.statement = statement};
    struct audit_row row = {.table = table};
    row.entry = take_u64(&columns);
    row.log_index = take_u64(&columns);
    row.log_time_ns = take_i64(&columns);
    row.has_leaf = sqlite3_column_type(statement, columns.next) != SQLITE_NULL;
    row.leaf = (uint64_t)sqlite3_column_int64(statement, columns.next++);
    take_fields(&columns, &row);
    audit->rows.ahead[table] = row;
    if (columns.failed) {
        return audit_finding(audit, audit_table_name(table), row.entry,
                             "a column has a value of the wrong type, size or range");
    }
    return true;
}

bool audit_rows_open(struct audit *audit)
{
    audit->rows.next_entry = 1;
    for (size_t i = 0; i < AUDIT_TABLES; i++) {
        if (sqlite3_prepare_v2(audit->database, queries[i], -1, &audit->rows.statements[i], NULL) !=
            SQLITE_OK) {
            return audit_unreadable(audit, "this is not a ledger that this program knows: %s",
                                    sqlite3_errmsg(audit->database));
        }
        if (!read_ahead(audit, (enum audit_table)i)) {
            return false;
        }
    }
    return audit_rows_next(audit);
}

void audit_rows_close(struct audit *audit)
{
    for (size_t i = 0; i < AUDIT_TABLES; i++) {
        (void)sqlite3_finalize(audit->rows.statements[i]); /* read only */
    }
}

static bool is_logged(const struct audit_row *row)
{
    return row->table != AUDIT_FLAGS && (row->table != AUDIT_TRANSFERS || row->kind == MONEY_MINT);
}

static bool check_numbers(struct audit *audit)
{
    struct audit_rows *rows = &audit->rows;
    const struct audit_row *row = &rows->row;
    if (!audit_expect_i64(audit, "entries are numbered without a gap", (int64_t)rows->next_entry,
                          (int64_t)row->entry) ||
        !audit_expect(audit, row->has_leaf == is_logged(row),
                      "exactly the logged kinds have a leaf")) {
        return false;
    }
    rows->next_entry++;
    if (row->has_leaf) {
        if (!audit_expect_i64(audit, "leaves are numbered in the order of entries",
                              (int64_t)rows->next_leaf, (int64_t)row->leaf)) {
            return false;
        }
        rows->next_leaf++;
    }
    return true;
}

/* The current row stays valid until its table is read further. So the table of the row before is
 * read further only now. */
bool audit_rows_next(struct audit *audit)
{
    struct audit_rows *rows = &audit->rows;
    if (rows->row.entry != 0 && !read_ahead(audit, rows->row.table)) {
        return false;
    }
    bool found = false;
    for (size_t i = 0; i < AUDIT_TABLES; i++) {
        if (rows->has_ahead[i] && (!found || rows->ahead[i].entry < rows->row.entry)) {
            rows->row = rows->ahead[i];
            found = true;
        }
    }
    rows->is_at_end = !found;
    if (!found) {
        return true;
    }
    audit->report->records++;
    return check_numbers(audit);
}
