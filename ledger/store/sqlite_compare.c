/* A stored ledger is compared here with the records that a replay of the journal gives. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ledger/store/effect.h"
#include "ledger/store/tables.h"
#include "ledger/store/tree.h"

/* A statement that returns its bound values holds the row that the journal gives. Each side is then
 * a row, and one function compares and prints rows of any columns. */

enum side { SIDE_NODE, SIDE_BATCH, SIDE_BALANCE, SIDES };

struct table_rows {
    const char *name;
    int keys; /* so many columns at the left identify the row */
    sqlite3_stmt *stored, *led_to;
};

struct tally {
    int64_t available_micro, held_micro;
    bool is_moved;
};

struct ledger_comparison {
    sqlite3 *database;
    struct table_rows tables[TABLE_COUNT];
    bool has_row[TABLE_COUNT]; /* `stored` is at a row that was not compared yet */
    struct table_rows sides[SIDES];
    struct merkle tree;
    uint64_t next_entry;
    uint64_t batch_index; /* the last command whose batch was compared */
    struct tally *tallies;
    size_t tally_count;
    enum ledger_store_status node_status; /* the first fault inside merkle_append */
    struct problem problem;
};

/* The key columns come first. */
static const struct {
    const char *name, *stored, *led_to;
    int keys;
} sides[SIDES] = {
    [SIDE_NODE] = {"tree", "SELECT level, idx, hash FROM tree WHERE level = ?1 AND idx = ?2",
                   "SELECT ?1, ?2, ?3", 2},
    [SIDE_BATCH] = {"batches",
                    "SELECT log_index, signature, leaves FROM batches WHERE log_index = ?1",
                    "SELECT ?1, ?2, ?3", 1},
    [SIDE_BALANCE] = {"balances",
                      "SELECT account, available, held FROM balances WHERE account = ?1",
                      "SELECT ?1, ?2, ?3", 1},
};

static const char stored_outcomes[] =
    "SELECT job, idx, entry, rank FROM outcomes ORDER BY job, idx";
/* Selects the last entry with the highest rank, as ledger_store_append keeps it. */
static const char led_to_outcomes[] =
    "SELECT job, idx, best & 0xffffffffffffff, best >> 56 FROM"
    " (SELECT job, idx, max((CASE status WHEN 0 THEN 2 ELSE 1 END << 56) | entry) AS best"
    "  FROM results WHERE status <> 3 GROUP BY job, idx) ORDER BY job, idx";

/* The queries find rows that no record gives. Results and held results have been compared by
 * then. */
static const char surplus_batches[] =
    "SELECT log_index FROM batches EXCEPT SELECT batch_index FROM results"
    " EXCEPT SELECT log_index FROM held";
static const char surplus_nodes[] =
    "SELECT level, idx FROM tree WHERE level < 0 OR level % 8 <> 0 OR idx < 0"
    " OR idx >= (?1 >> level) LIMIT 1";
static_assert(TREE_LEVEL_STEP == 8, "the levels that are stored");

/* ---- differences in words */

enum { VALUE_TEXT = 96, ROW_TEXT = 2 * VALUE_TEXT, BYTES_SHOWN = 32 };

static void print_value(sqlite3_stmt *row, int column, char ret_text[VALUE_TEXT])
{
    const uint8_t *bytes;
    size_t length;
    char hex[2 * BYTES_SHOWN + 1];
    char text[VALUE_TEXT - 4];
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
        (void)snprintf(ret_text, VALUE_TEXT, "%" PRId64,
                       (int64_t)sqlite3_column_int64(row, column));
        return;
    case SQLITE_NULL:
        (void)snprintf(ret_text, VALUE_TEXT, "nothing");
        return;
    case SQLITE_BLOB:
        bytes = sqlite3_column_blob(row, column);
        length = (size_t)sqlite3_column_bytes(row, column);
        text_hex(bytes, length < BYTES_SHOWN ? length : BYTES_SHOWN, hex);
        if (length <= BYTES_SHOWN) {
            (void)snprintf(ret_text, VALUE_TEXT, "%s", length == 0 ? "no bytes" : hex);
        } else {
            (void)snprintf(ret_text, VALUE_TEXT, "%.32s... (%zu bytes)", hex, length);
        }
        return;
    default: /* text; a STRICT column has no other types */
        bytes = sqlite3_column_text(row, column);
        text_printable((const char *)bytes, (size_t)sqlite3_column_bytes(row, column), text,
                       sizeof text);
        (void)snprintf(ret_text, VALUE_TEXT, "\"%s\"", text);
        return;
    }
}

/* Writes "entry 12" or "level 8, idx 3": the first columns of `row`, with the names from
 * `stored`. */
static void print_row(sqlite3_stmt *stored, sqlite3_stmt *row, int keys, char ret_text[ROW_TEXT])
{
    size_t length = 0;
    ret_text[0] = '\0';
    for (int i = 0; i < keys && length < ROW_TEXT; i++) {
        char value[VALUE_TEXT];
        print_value(row, i, value);
        const int more = snprintf(ret_text + length, ROW_TEXT - length, "%s%s %s",
                                  i == 0 ? "" : ", ", sqlite3_column_name(stored, i), value);
        length += more > 0 ? (size_t)more : 0;
    }
}

static enum ledger_store_status unreadable(struct ledger_comparison *comparison, const char *table)
{
    const int code = sqlite3_extended_errcode(comparison->database);
    problem_set(&comparison->problem, "table %s: %s", table, sqlite3_errmsg(comparison->database));
    return code == SQLITE_OK ? LEDGER_STORE_CORRUPT : store_status_of(code);
}

static enum ledger_store_status missing(struct ledger_comparison *comparison,
                                        const struct table_rows *rows)
{
    char name[ROW_TEXT];
    print_row(rows->stored, rows->led_to, rows->keys, name);
    problem_set(&comparison->problem,
                "table %s, %s differs from its replay: the journal leads to this row, and the "
                "ledger does not have it",
                rows->name, name);
    return LEDGER_STORE_CORRUPT;
}

static enum ledger_store_status surplus(struct ledger_comparison *comparison, const char *table,
                                        sqlite3_stmt *row, int keys)
{
    char name[ROW_TEXT];
    print_row(row, row, keys, name);
    problem_set(&comparison->problem,
                "table %s, %s differs from its replay: the ledger has this row, and the journal "
                "does not lead to it",
                table, name);
    return LEDGER_STORE_CORRUPT;
}

static bool is_same(sqlite3_stmt *stored, sqlite3_stmt *led_to, int column)
{
    const int type = sqlite3_column_type(stored, column);
    if (type != sqlite3_column_type(led_to, column)) {
        return false;
    }
    if (type == SQLITE_NULL) {
        return true;
    }
    if (type == SQLITE_INTEGER) {
        return sqlite3_column_int64(stored, column) == sqlite3_column_int64(led_to, column);
    }
    const void *bytes = sqlite3_column_blob(stored, column);
    const void *others = sqlite3_column_blob(led_to, column);
    const int length = sqlite3_column_bytes(stored, column);
    return length == sqlite3_column_bytes(led_to, column) &&
           (length == 0 || memcmp(bytes, others, (size_t)length) == 0);
}

/* Compares two statements that are both at a row. */
static enum ledger_store_status compare_row(struct ledger_comparison *comparison,
                                            const struct table_rows *rows)
{
    const int columns = sqlite3_column_count(rows->stored);
    for (int i = 0; i < columns; i++) {
        if (!is_same(rows->stored, rows->led_to, i)) {
            char row[ROW_TEXT];
            char has[VALUE_TEXT];
            char leads[VALUE_TEXT];
            print_row(rows->stored, rows->stored, rows->keys, row);
            print_value(rows->stored, i, has);
            print_value(rows->led_to, i, leads);
            problem_set(&comparison->problem,
                        "table %s, %s, column %s differs from its replay: the ledger has %s, the "
                        "journal leads to %s",
                        rows->name, row, sqlite3_column_name(rows->stored, i), has, leads);
            return LEDGER_STORE_CORRUPT;
        }
    }
    return LEDGER_STORE_OK;
}

/* ---- rows that are one record each */

static enum ledger_store_status read_on(struct ledger_comparison *comparison,
                                        enum ledger_table table)
{
    const int step = sqlite3_step(comparison->tables[table].stored);
    comparison->has_row[table] = step == SQLITE_ROW;
    return step == SQLITE_ROW || step == SQLITE_DONE ? LEDGER_STORE_OK
                                                     : unreadable(comparison, table_name(table));
}

static enum ledger_store_status compare_record(struct ledger_comparison *comparison,
                                               const struct ledger_record *record)
{
    const enum ledger_table table = table_of_kind(record->kind);
    const struct table_rows *rows = &comparison->tables[table];
    const uint64_t leaf = comparison->tree.size;
    tables_bind(rows->led_to, record, comparison->next_entry,
                record_is_logged(record) ? &leaf : NULL);
    if (sqlite3_step(rows->led_to) != SQLITE_ROW) {
        return unreadable(comparison, rows->name);
    }
    enum ledger_store_status status;
    const bool has_row = comparison->has_row[table];
    const uint64_t entry = has_row ? (uint64_t)sqlite3_column_int64(rows->stored, 0) : 0;
    if (!has_row || entry > comparison->next_entry) {
        status = missing(comparison, rows);
    } else if (entry < comparison->next_entry) {
        status = surplus(comparison, rows->name, rows->stored, rows->keys);
    } else {
        status = compare_row(comparison, rows);
    }
    (void)sqlite3_reset(rows->led_to); /* repeats the step's code */
    /* The bindings point into the record. The call cannot fail. */
    (void)sqlite3_clear_bindings(rows->led_to);
    return status == LEDGER_STORE_OK ? read_on(comparison, table) : status;
}

/* ---- rows that follow from several records */

/* Compares the row of `side` with the columns bound to its `led_to`. The key columns are
 * numbers. */
static enum ledger_store_status compare_side(struct ledger_comparison *comparison, enum side side,
                                             const sqlite3_int64 *keys)
{
    const struct table_rows *rows = &comparison->sides[side];
    for (int i = 0; i < rows->keys; i++) {
        /* A failed bind finds no row. */
        (void)sqlite3_bind_int64(rows->stored, i + 1, keys[i]);
        (void)sqlite3_bind_int64(rows->led_to, i + 1, keys[i]);
    }
    enum ledger_store_status status = LEDGER_STORE_OK;
    const int step = sqlite3_step(rows->stored);
    if (sqlite3_step(rows->led_to) != SQLITE_ROW || (step != SQLITE_ROW && step != SQLITE_DONE)) {
        status = unreadable(comparison, rows->name);
    } else {
        status = step == SQLITE_ROW ? compare_row(comparison, rows) : missing(comparison, rows);
    }
    (void)sqlite3_reset(rows->stored); /* both repeat the step's code */
    (void)sqlite3_reset(rows->led_to);
    return status;
}

static void compare_node(void *context, unsigned level, uint64_t index, const struct hash32 *hash)
{
    struct ledger_comparison *comparison = context;
    if (level % TREE_LEVEL_STEP == 0 && comparison->node_status == LEDGER_STORE_OK) {
        const sqlite3_int64 keys[] = {level, (sqlite3_int64)index};
        /* A failed bind shows up as a difference. */
        (void)sqlite3_bind_blob(comparison->sides[SIDE_NODE].led_to, 3, hash->bytes,
                                sizeof hash->bytes, SQLITE_STATIC);
        comparison->node_status = compare_side(comparison, SIDE_NODE, keys);
    }
}

static enum ledger_store_status compare_batch(struct ledger_comparison *comparison,
                                              uint64_t log_index, const struct ledger_batch *batch)
{
    if (comparison->batch_index == log_index) {
        return LEDGER_STORE_OK;
    }
    const sqlite3_int64 key = (sqlite3_int64)log_index;
    sqlite3_stmt *led_to = comparison->sides[SIDE_BATCH].led_to;
    comparison->batch_index = log_index;
    /* A failed bind shows up as a difference. */
    (void)sqlite3_bind_blob(led_to, 2, batch->signature.bytes, sizeof batch->signature.bytes,
                            SQLITE_STATIC);
    (void)sqlite3_bind_blob64(led_to, 3, batch->leaves, batch->count * sizeof batch->leaves[0],
                              SQLITE_STATIC);
    return compare_side(comparison, SIDE_BATCH, &key);
}

static bool add_effect(struct ledger_comparison *comparison, uint32_t account,
                       struct ledger_effect effect)
{
    if (account >= comparison->tally_count) {
        const size_t count = 2 * (size_t)account + 16;
        struct tally *tallies = realloc(comparison->tallies, count * sizeof *tallies);
        if (tallies == NULL) {
            return false;
        }
        memset(tallies + comparison->tally_count, 0,
               (count - comparison->tally_count) * sizeof *tallies);
        comparison->tallies = tallies;
        comparison->tally_count = count;
    }
    struct tally *tally = &comparison->tallies[account];
    tally->is_moved = true;
    return !__builtin_add_overflow(tally->available_micro, effect.available_micro,
                                   &tally->available_micro) &&
           !__builtin_add_overflow(tally->held_micro, effect.held_micro, &tally->held_micro);
}

static enum ledger_store_status compare_balances(struct ledger_comparison *comparison)
{
    sqlite3_stmt *led_to = comparison->sides[SIDE_BALANCE].led_to;
    for (size_t i = 0; i < comparison->tally_count; i++) {
        const struct tally *tally = &comparison->tallies[i];
        const sqlite3_int64 key = (sqlite3_int64)i;
        /* A failed bind shows up as a difference. */
        (void)sqlite3_bind_int64(led_to, 2, tally->available_micro);
        (void)sqlite3_bind_int64(led_to, 3, tally->held_micro);
        const enum ledger_store_status status =
            tally->is_moved ? compare_side(comparison, SIDE_BALANCE, &key) : LEDGER_STORE_OK;
        if (status != LEDGER_STORE_OK) {
            return status;
        }
    }
    return LEDGER_STORE_OK;
}

static enum ledger_store_status walk_outcomes(struct ledger_comparison *comparison,
                                              const struct table_rows *rows)
{
    enum ledger_store_status status = LEDGER_STORE_OK;
    int stored = SQLITE_ROW;
    while (status == LEDGER_STORE_OK && stored == SQLITE_ROW) {
        stored = sqlite3_step(rows->stored);
        const int led_to = sqlite3_step(rows->led_to);
        if ((stored != SQLITE_ROW && stored != SQLITE_DONE) ||
            (led_to != SQLITE_ROW && led_to != SQLITE_DONE)) {
            status = unreadable(comparison, rows->name);
        } else if (stored == SQLITE_ROW) {
            status = led_to == SQLITE_ROW
                         ? compare_row(comparison, rows)
                         : surplus(comparison, rows->name, rows->stored, rows->keys);
        } else if (led_to == SQLITE_ROW) {
            status = missing(comparison, rows);
        }
    }
    return status;
}

static bool prepare_rows(struct ledger_comparison *comparison, struct table_rows *rows,
                         const char *stored, const char *led_to)
{
    return sqlite3_prepare_v2(comparison->database, stored, -1, &rows->stored, NULL) == SQLITE_OK &&
           sqlite3_prepare_v2(comparison->database, led_to, -1, &rows->led_to, NULL) == SQLITE_OK;
}

static void finish_rows(struct table_rows *rows)
{
    (void)sqlite3_finalize(rows->stored); /* both repeat the last step's code */
    (void)sqlite3_finalize(rows->led_to);
}

static enum ledger_store_status compare_outcomes(struct ledger_comparison *comparison)
{
    struct table_rows rows = {.name = "outcomes", .keys = 2};
    enum ledger_store_status status =
        prepare_rows(comparison, &rows, stored_outcomes, led_to_outcomes)
            ? walk_outcomes(comparison, &rows)
            : unreadable(comparison, rows.name);
    finish_rows(&rows);
    return status;
}

/* Reports the first row of `sql`, if any, as surplus. A parameter gets the size of the tree. */
static enum ledger_store_status find_surplus(struct ledger_comparison *comparison,
                                             const char *table, const char *sql)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(comparison->database, sql, -1, &rows, NULL) != SQLITE_OK) {
        return unreadable(comparison, table);
    }
    /* The bind fails when the query has no parameter. */
    (void)sqlite3_bind_int64(rows, 1, (sqlite3_int64)comparison->tree.size);
    const int step = sqlite3_step(rows);
    enum ledger_store_status status = LEDGER_STORE_OK;
    if (step == SQLITE_ROW) {
        status = surplus(comparison, table, rows, sqlite3_column_count(rows));
    } else if (step != SQLITE_DONE) {
        status = unreadable(comparison, table);
    }
    (void)sqlite3_finalize(rows); /* repeats the step's code */
    return status;
}

static enum ledger_store_status find_surplus_balance(struct ledger_comparison *comparison)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(comparison->database, "SELECT account FROM balances ORDER BY account",
                           -1, &rows, NULL) != SQLITE_OK) {
        return unreadable(comparison, "balances");
    }
    enum ledger_store_status status = LEDGER_STORE_OK;
    int step = SQLITE_DONE;
    while (status == LEDGER_STORE_OK && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        const sqlite3_int64 account = sqlite3_column_int64(rows, 0);
        if (account < 0 || (uint64_t)account >= comparison->tally_count ||
            !comparison->tallies[account].is_moved) {
            status = surplus(comparison, "balances", rows, 1);
        }
    }
    if (status == LEDGER_STORE_OK && step != SQLITE_DONE) {
        status = unreadable(comparison, "balances");
    }
    (void)sqlite3_finalize(rows); /* repeats the step's code */
    return status;
}

static enum ledger_store_status compare_checkpoint(struct ledger_comparison *comparison)
{
    struct table_rows rows = {.name = "checkpoint", .keys = 1};
    enum ledger_store_status status = LEDGER_STORE_OK;
    int step = SQLITE_ERROR;
    if (prepare_rows(comparison, &rows, "SELECT id, tree_size FROM checkpoint", "SELECT 1, ?1") &&
        sqlite3_bind_int64(rows.led_to, 1, (sqlite3_int64)comparison->tree.size) == SQLITE_OK &&
        sqlite3_step(rows.led_to) == SQLITE_ROW) {
        step = sqlite3_step(rows.stored);
    }
    if (step == SQLITE_ROW) {
        status = compare_row(comparison, &rows);
    } else if (step != SQLITE_DONE) {
        status = unreadable(comparison, rows.name);
    } else if (comparison->tree.size > 0) { /* a market that never logged has none */
        status = missing(comparison, &rows);
    }
    finish_rows(&rows);
    return status;
}

/* ---- the whole */

static bool prepare(struct ledger_comparison *comparison)
{
    for (int i = 0; i < TABLE_COUNT; i++) {
        struct table_rows *rows = &comparison->tables[i];
        char sql[96];
        rows->name = table_name((enum ledger_table)i);
        rows->keys = 1;
        (void)snprintf(sql, sizeof sql, "SELECT * FROM %s ORDER BY entry", rows->name); /* fits */
        if (sqlite3_prepare_v2(comparison->database, sql, -1, &rows->stored, NULL) != SQLITE_OK ||
            tables_prepare_row(comparison->database, (enum ledger_table)i, &rows->led_to) !=
                SQLITE_OK) {
            return false;
        }
        if (sqlite3_column_count(rows->stored) != sqlite3_column_count(rows->led_to)) {
            return false;
        }
    }
    for (int i = 0; i < SIDES; i++) {
        comparison->sides[i].name = sides[i].name;
        comparison->sides[i].keys = sides[i].keys;
        if (!prepare_rows(comparison, &comparison->sides[i], sides[i].stored, sides[i].led_to)) {
            return false;
        }
    }
    return true;
}

enum ledger_store_status ledger_comparison_open(sqlite3 *database,
                                                struct ledger_comparison **ret_comparison,
                                                struct problem *ret_problem)
{
    struct ledger_comparison *comparison = calloc(1, sizeof *comparison);
    *ret_comparison = comparison;
    if (comparison == NULL) {
        problem_set(ret_problem, "out of memory");
        return LEDGER_STORE_OUT_OF_MEMORY;
    }
    comparison->database = database;
    comparison->next_entry = 1;
    enum ledger_store_status status = LEDGER_STORE_OK;
    if (!prepare(comparison)) {
        problem_set(ret_problem, "the ledger's tables are not ours: %s", sqlite3_errmsg(database));
        status = LEDGER_STORE_CORRUPT;
    }
    for (int i = 0; status == LEDGER_STORE_OK && i < TABLE_COUNT; i++) {
        status = read_on(comparison, (enum ledger_table)i);
        *ret_problem = comparison->problem;
    }
    return status;
}

void ledger_comparison_close(struct ledger_comparison **self)
{
    struct ledger_comparison *comparison = *self;
    if (comparison == NULL) {
        return;
    }
    for (int i = 0; i < TABLE_COUNT; i++) {
        finish_rows(&comparison->tables[i]);
    }
    for (int i = 0; i < SIDES; i++) {
        finish_rows(&comparison->sides[i]);
    }
    free(comparison->tallies);
    free(comparison);
    *self = NULL;
}

static enum ledger_store_status take(struct ledger_comparison *comparison,
                                     const struct ledger_record *record,
                                     const struct ledger_batch *batch)
{
    enum ledger_store_status status = compare_record(comparison, record);
    if (status == LEDGER_STORE_OK && batch != NULL) {
        status = compare_batch(comparison, record->log_index, batch);
    }
    if (status == LEDGER_STORE_OK && record_is_logged(record)) {
        uint8_t bytes[RECORD_LEAF_MAX];
        struct hash32 leaf = merkle_leaf_hash(bytes, record_leaf(record, bytes));
        merkle_append(&comparison->tree, &leaf, compare_node, comparison);
        status = comparison->node_status;
    }
    if (status == LEDGER_STORE_OK && effect_is_money(record->kind) &&
        (!add_effect(comparison, record->debit, effect_on_debit(record)) ||
         !add_effect(comparison, record->credit, effect_on_credit(record)))) {
        problem_set(&comparison->problem, "the balances do not fit");
        status = LEDGER_STORE_OUT_OF_MEMORY;
    }
    comparison->next_entry++;
    return status;
}

enum ledger_store_status ledger_comparison_take(struct ledger_comparison *comparison,
                                                const struct ledger_record *record,
                                                const struct ledger_batch *batch,
                                                struct problem *ret_problem)
{
    const enum ledger_store_status status = take(comparison, record, batch);
    if (status != LEDGER_STORE_OK) {
        *ret_problem = comparison->problem;
    }
    return status;
}

static enum ledger_store_status end(struct ledger_comparison *comparison)
{
    enum ledger_store_status status = LEDGER_STORE_OK;
    for (int i = 0; i < TABLE_COUNT; i++) {
        const struct table_rows *rows = &comparison->tables[i];
        if (comparison->has_row[i]) {
            return surplus(comparison, rows->name, rows->stored, rows->keys);
        }
    }
    status = compare_balances(comparison);
    status = status == LEDGER_STORE_OK ? find_surplus_balance(comparison) : status;
    status = status == LEDGER_STORE_OK ? compare_outcomes(comparison) : status;
    status =
        status == LEDGER_STORE_OK ? find_surplus(comparison, "batches", surplus_batches) : status;
    status = status == LEDGER_STORE_OK ? find_surplus(comparison, "tree", surplus_nodes) : status;
    return status == LEDGER_STORE_OK ? compare_checkpoint(comparison) : status;
}

enum ledger_store_status ledger_comparison_end(struct ledger_comparison *comparison,
                                               struct problem *ret_problem)
{
    const enum ledger_store_status status = end(comparison);
    if (status != LEDGER_STORE_OK) {
        *ret_problem = comparison->problem;
    }
    return status;
}

const struct merkle *ledger_comparison_tree(const struct ledger_comparison *comparison)
{
    return &comparison->tree;
}
