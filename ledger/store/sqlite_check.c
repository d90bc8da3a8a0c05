/* The functions here check a stored ledger for ledger_check. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "ledger/accounts.h"
#include "ledger/store/effect.h"
#include "ledger/store/tables.h"
#include "ledger/store/tree.h"

/* The tree is checked first. Once its root equals the signed one, a row that does not give its leaf
 * is wrong itself. Data in no leaf is compared with other data. Money must agree with the balances,
 * the bytes of a result with its hash and batch, and outcomes with results. */

enum { FIRST_ACCOUNT = 3, ENTRY_COLUMN = 0, LOG_INDEX_COLUMN = 1, LEAF_COLUMN = 3 };

struct tally { /* one account, computed from the rows */
    struct key32 key;
    int64_t available_micro, held_micro;
};

struct check {
    sqlite3 *database;
    sqlite3_stmt *node;  /* hash of (level, idx) */
    sqlite3_stmt *batch; /* leaves of the batch at a log index */
    struct tally *tallies;
    size_t tally_count;
    uint64_t tree_size;
    uint64_t rows, leaves, last_entry;
    char *error; /* LEDGER_CHECK_TEXT bytes */
};

static __attribute__((format(printf, 2, 3))) enum ledger_store_status wrong(struct check *check,
                                                                            const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(check->error, LEDGER_CHECK_TEXT, format, arguments); /* cut, never overrun */
    va_end(arguments);
    return LEDGER_STORE_CORRUPT;
}

static enum ledger_store_status unreadable(struct check *check, const char *table)
{
    int code = sqlite3_extended_errcode(check->database);
    (void)wrong(check, "table %s: %s", table, sqlite3_errmsg(check->database));
    return code == SQLITE_OK ? LEDGER_STORE_CORRUPT : store_status_of(code);
}

/* Ends a walk and returns its own finding, or the database's failure. */
static enum ledger_store_status end_walk(struct check *check, sqlite3_stmt *rows, int step,
                                         const char *table, enum ledger_store_status status)
{
    if (status == LEDGER_STORE_OK && step != SQLITE_DONE) {
        status = unreadable(check, table);
    }
    (void)sqlite3_finalize(rows); /* repeats the step's code */
    return status;
}

/* ---- the tree */

/* Reads the stored node. Returns false when it is absent or has the wrong size. */
static bool read_node(struct check *check, unsigned level, uint64_t index, struct hash32 *ret_hash)
{
    (void)sqlite3_bind_int64(check->node, 1, level); /* a failed bind selects nothing */
    (void)sqlite3_bind_int64(check->node, 2, (sqlite3_int64)index);
    bool found = sqlite3_step(check->node) == SQLITE_ROW &&
                 table_column_bytes(check->node, 0, ret_hash, sizeof ret_hash->bytes);
    (void)sqlite3_reset(check->node); /* repeats the step's code */
    return found;
}

struct tree_walk {
    struct check *check;
    struct merkle tree;
    enum ledger_store_status status;
};

static void compare_node(void *context, unsigned level, uint64_t index, const struct hash32 *hash)
{
    struct tree_walk *walk = context;
    struct hash32 stored;
    if (level == 0 || level % TREE_LEVEL_STEP != 0 || walk->status != LEDGER_STORE_OK) {
        return;
    }
    if (!read_node(walk->check, level, index, &stored) || !hash32_equal(&stored, hash)) {
        walk->status = wrong(walk->check,
                             "table tree: node %" PRIu64 " of level %u does not follow from the "
                             "leaves %" PRIu64 " to %" PRIu64,
                             index, level, index << level, ((index + 1) << level) - 1);
    }
}

static enum ledger_store_status walk_leaves(struct tree_walk *walk)
{
    struct check *check = walk->check;
    sqlite3_stmt *rows = NULL;
    int step = SQLITE_ERROR;
    struct hash32 leaf;
    if (sqlite3_prepare_v2(check->database,
                           "SELECT idx, hash FROM tree WHERE level = 0 ORDER BY idx", -1, &rows,
                           NULL) != SQLITE_OK) {
        return unreadable(check, "tree");
    }
    while (walk->status == LEDGER_STORE_OK && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        if ((uint64_t)sqlite3_column_int64(rows, 0) != walk->tree.size ||
            !table_column_bytes(rows, 1, &leaf, sizeof leaf.bytes)) {
            walk->status =
                wrong(check, "table tree: leaf %" PRIu64 " is missing or damaged", walk->tree.size);
        } else {
            merkle_append(&walk->tree, &leaf, compare_node, walk);
        }
    }
    return end_walk(check, rows, step, "tree", walk->status);
}

/* Checks that the log signed the stored checkpoint for exactly this tree. A market that never
 * logged has no checkpoint. */
static enum ledger_store_status check_signature(struct check *check, const struct merkle *tree,
                                                const struct key32 *log_key)
{
    sqlite3_stmt *row = NULL;
    struct checkpoint checkpoint;
    if (sqlite3_prepare_v2(check->database, "SELECT tree_size, note FROM checkpoint", -1, &row,
                           NULL) != SQLITE_OK) {
        return unreadable(check, "checkpoint");
    }
    enum ledger_store_status status = LEDGER_STORE_OK;
    int step = sqlite3_step(row);
    if (step == SQLITE_DONE && tree->size > 0) {
        status = wrong(check, "table checkpoint: there is none for a tree of %" PRIu64 " leaves",
                       tree->size);
    } else if (step == SQLITE_ROW) {
        const char *note = (const char *)sqlite3_column_text(row, 1);
        struct hash32 root = merkle_root(tree);
        if (note == NULL ||
            !checkpoint_read(note, (size_t)sqlite3_column_bytes(row, 1), log_key, &checkpoint)) {
            status = wrong(check, "table checkpoint: it is not signed by the log's key");
        } else if (checkpoint.size != tree->size || !hash32_equal(&checkpoint.root, &root) ||
                   (uint64_t)sqlite3_column_int64(row, 0) != tree->size) {
            status = wrong(check,
                           "table tree: its %" PRIu64 " leaves do not give the root that was "
                           "signed for %" PRIu64,
                           tree->size, checkpoint.size);
        }
        step = SQLITE_DONE; /* there is only one row */
    }
    return end_walk(check, row, step, "checkpoint", status);
}

static enum ledger_store_status check_tree(struct check *check, const struct key32 *log_key)
{
    struct tree_walk walk = {.check = check, .status = LEDGER_STORE_OK};
    enum ledger_store_status status = walk_leaves(&walk);
    check->tree_size = walk.tree.size;
    return status == LEDGER_STORE_OK ? check_signature(check, &walk.tree, log_key) : status;
}

/* ---- one row */

static struct tally *tally_of(struct check *check, uint32_t number)
{
    return number < check->tally_count ? &check->tallies[number] : NULL;
}

static bool add_effect(struct tally *tally, struct ledger_effect effect)
{
    return tally != NULL &&
           !__builtin_add_overflow(tally->available_micro, effect.available_micro,
                                   &tally->available_micro) &&
           !__builtin_add_overflow(tally->held_micro, effect.held_micro, &tally->held_micro);
}

/* Completes a record from the row. A mint's leaf names the key of the account, but its row does
 * not. */
static bool complete(struct check *check, struct ledger_record *record)
{
    if (record->kind == LEDGER_ACCOUNT) {
        record->debit = record->credit;
        struct tally *tally = tally_of(check, record->credit);
        if (tally != NULL) {
            tally->key = record->owner;
        }
        return tally != NULL;
    }
    if (effect_is_money(record->kind)) {
        struct tally *credit = tally_of(check, record->credit);
        if (credit == NULL) {
            return false;
        }
        record->owner = credit->key;
        return add_effect(tally_of(check, record->debit), effect_on_debit(record)) &&
               add_effect(credit, effect_on_credit(record));
    }
    return true;
}

static bool check_leaf(struct check *check, sqlite3_stmt *row, const struct ledger_record *record)
{
    bool has_leaf = sqlite3_column_type(row, LEAF_COLUMN) != SQLITE_NULL;
    if (has_leaf != record_is_logged(record)) {
        return false;
    }
    if (!has_leaf) {
        return true;
    }
    uint8_t bytes[RECORD_LEAF_MAX];
    struct hash32 stored;
    struct hash32 leaf = merkle_leaf_hash(bytes, record_leaf(record, bytes));
    check->leaves++;
    return read_node(check, 0, (uint64_t)sqlite3_column_int64(row, LEAF_COLUMN), &stored) &&
           hash32_equal(&stored, &leaf);
}

/* Compares the encoded result with its row's hash, and with the leaf at its place in the signed
 * batch. */
static bool check_result(struct check *check, sqlite3_stmt *row, const struct ledger_record *record)
{
    int column = sqlite3_column_count(row) - 1;
    const void *bytes = sqlite3_column_blob(row, column);
    size_t length = (size_t)sqlite3_column_bytes(row, column);
    struct hash32 hash = sha256_of(bytes, length);
    struct hash32 leaf = merkle_leaf_hash(bytes, length);
    /* A failed bind selects nothing. */
    (void)sqlite3_bind_int64(check->batch, 1, (sqlite3_int64)record->batch_index);
    bool good = hash32_equal(&hash, &record->hash) && sqlite3_step(check->batch) == SQLITE_ROW;
    if (good) {
        const uint8_t *leaves = sqlite3_column_blob(check->batch, 0);
        size_t count = (size_t)sqlite3_column_bytes(check->batch, 0) / sizeof leaf.bytes;
        good = record->position < count && memcmp(leaves + record->position * sizeof leaf.bytes,
                                                  leaf.bytes, sizeof leaf.bytes) == 0;
    }
    (void)sqlite3_reset(check->batch); /* repeats the step's code */
    return good;
}

static enum ledger_store_status check_row(struct check *check, enum ledger_table table,
                                          sqlite3_stmt *row)
{
    struct ledger_record record;
    uint64_t entry = (uint64_t)sqlite3_column_int64(row, ENTRY_COLUMN);
    bool good = tables_read(row, table, &record) &&
                table_holds(table, record.kind) && /* false: a kind of another table */
                complete(check, &record) && check_leaf(check, row, &record) &&
                (table != TABLE_RESULTS || check_result(check, row, &record));
    check->rows++;
    check->last_entry = entry > check->last_entry ? entry : check->last_entry;
    return good ? LEDGER_STORE_OK
                : wrong(check, "table %s, entry %" PRIu64 ": the row is not what was written",
                        table_name(table), entry);
}

static enum ledger_store_status check_table(struct check *check, enum ledger_table table)
{
    char sql[96];
    sqlite3_stmt *rows = NULL;
    int step = SQLITE_ERROR;
    /* The text fits. */
    (void)snprintf(sql, sizeof sql, "SELECT * FROM %s ORDER BY entry", table_name(table));
    if (sqlite3_prepare_v2(check->database, sql, -1, &rows, NULL) != SQLITE_OK) {
        return unreadable(check, table_name(table));
    }
    enum ledger_store_status status = LEDGER_STORE_OK;
    while (status == LEDGER_STORE_OK && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        status = check_row(check, table, rows);
    }
    return end_walk(check, rows, step, table_name(table), status);
}

/* ---- all rows together */

static enum ledger_store_status check_counts(struct check *check)
{
    if (check->rows != check->last_entry) {
        return wrong(check,
                     "the ledger's records end at entry %" PRIu64 " but there are %" PRIu64
                     ": a row was removed",
                     check->last_entry, check->rows);
    }
    if (check->leaves != check->tree_size) {
        return wrong(check,
                     "the tree has %" PRIu64 " leaves, the ledger rows for %" PRIu64 " of them",
                     check->tree_size, check->leaves);
    }
    return LEDGER_STORE_OK;
}

static enum ledger_store_status check_balances(struct check *check)
{
    sqlite3_stmt *rows = NULL;
    int step = SQLITE_ERROR;
    if (sqlite3_prepare_v2(check->database,
                           "SELECT account, available, held FROM balances ORDER BY account", -1,
                           &rows, NULL) != SQLITE_OK) {
        return unreadable(check, "balances");
    }
    enum ledger_store_status status = LEDGER_STORE_OK;
    while (status == LEDGER_STORE_OK && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        sqlite3_int64 number = sqlite3_column_int64(rows, 0);
        struct tally *tally =
            number >= 0 && number <= UINT32_MAX ? tally_of(check, (uint32_t)number) : NULL;
        if (tally == NULL || tally->available_micro != sqlite3_column_int64(rows, 1) ||
            tally->held_micro != sqlite3_column_int64(rows, 2)) {
            status = wrong(check,
                           "table balances, account %lld: it is not the sum of the account's rows "
                           "in table transfers",
                           (long long)number);
        } else {
            *tally = (struct tally){.key = tally->key}; /* accounted for */
        }
    }
    status = end_walk(check, rows, step, "balances", status);
    for (size_t i = 0; status == LEDGER_STORE_OK && i < check->tally_count; i++) {
        if (check->tallies[i].available_micro != 0 || check->tallies[i].held_micro != 0) {
            status = wrong(check, "table balances, account %zu: its row is missing", i);
        }
    }
    return status;
}

/* Reports the first entry that `query` finds as wrong; `what` describes the fault. */
static enum ledger_store_status check_none(struct check *check, const char *query, const char *what)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(check->database, query, -1, &rows, NULL) != SQLITE_OK) {
        return unreadable(check, "outcomes");
    }
    enum ledger_store_status status = LEDGER_STORE_OK;
    int step = sqlite3_step(rows);
    if (step == SQLITE_ROW) {
        status = wrong(check, "table outcomes: entry %lld %s",
                       (long long)sqlite3_column_int64(rows, 0), what);
    }
    return end_walk(check, rows, step, "outcomes", status);
}

/* The ranks are those of ledger_store_append: an accepted result is 2, a failed or refuted one 1. A
 * late one decides nothing. */
static enum ledger_store_status check_outcomes(struct check *check)
{
    enum ledger_store_status status =
        check_none(check,
                   "SELECT o.entry FROM outcomes o LEFT JOIN results r ON r.entry = o.entry"
                   " WHERE r.job IS NOT o.job OR r.idx IS NOT o.idx OR r.status = 3"
                   " OR o.rank <> CASE r.status WHEN 0 THEN 2 ELSE 1 END LIMIT 1",
                   "is named, which is not a result that decides that subtask");
    if (status != LEDGER_STORE_OK) {
        return status;
    }
    return check_none(
        check,
        "SELECT r.entry FROM results r LEFT JOIN outcomes o ON o.job = r.job AND o.idx = r.idx"
        " WHERE r.status <> 3 AND (o.entry IS NULL"
        " OR o.rank < CASE r.status WHEN 0 THEN 2 ELSE 1 END"
        " OR (o.rank = CASE r.status WHEN 0 THEN 2 ELSE 1 END AND o.entry < r.entry)) LIMIT 1",
        "decides its subtask, and is not named");
}

/* ---- the whole */

static enum ledger_store_status prepare(struct check *check)
{
    sqlite3_stmt *count = NULL;
    if (sqlite3_prepare_v2(check->database, "SELECT hash FROM tree WHERE level = ?1 AND idx = ?2",
                           -1, &check->node, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(check->database, "SELECT leaves FROM batches WHERE log_index = ?1", -1,
                           &check->batch, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(check->database, "SELECT count(*) FROM accounts", -1, &count, NULL) !=
            SQLITE_OK ||
        sqlite3_step(count) != SQLITE_ROW) {
        (void)sqlite3_finalize(count); /* repeats the step's code */
        return unreadable(check, "accounts");
    }
    /* Numbers have no gap: 0 to 2 are the system's, and each other number has a row. */
    check->tally_count = FIRST_ACCOUNT + (size_t)sqlite3_column_int64(count, 0);
    (void)sqlite3_finalize(count); /* only read */
    check->tallies = calloc(check->tally_count, sizeof *check->tallies);
    return check->tallies == NULL ? LEDGER_STORE_OUT_OF_MEMORY : LEDGER_STORE_OK;
}

static enum ledger_store_status run(struct check *check, const struct key32 *log_key)
{
    enum ledger_store_status status = prepare(check);
    if (status == LEDGER_STORE_OK) {
        status = check_tree(check, log_key);
    }
    for (int table = 0; status == LEDGER_STORE_OK && table < TABLE_COUNT; table++) {
        /* Accounts come first, because mints need their keys. */
        status = check_table(check, (enum ledger_table)table);
    }
    static enum ledger_store_status (*const last[])(struct check *) = {check_counts, check_balances,
                                                                       check_outcomes};
    for (size_t i = 0; i < sizeof last / sizeof last[0] && status == LEDGER_STORE_OK; i++) {
        status = last[i](check);
    }
    return status;
}

enum ledger_store_status ledger_check(sqlite3 *database, const struct key32 *log_key,
                                      char ret_error[LEDGER_CHECK_TEXT])
{
    static_assert(TABLE_ACCOUNTS == 0, "accounts are read before what names their keys");
    struct check check = {.database = database, .error = ret_error};
    (void)snprintf(ret_error, LEDGER_CHECK_TEXT, "out of memory");
    enum ledger_store_status status = run(&check, log_key);
    (void)sqlite3_finalize(check.node); /* only read */
    (void)sqlite3_finalize(check.batch);
    free(check.tallies);
    return status;
}
