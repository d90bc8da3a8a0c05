#include "broker/storage/journal_sqlite.h"

#include "base/sha256.h"
#include "broker/storage/entry.h"
#include "broker/storage/journal_sqlite_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The column bytes is last, so that reading other columns never touches its overflow pages. */
static const char schema[] =
    "CREATE TABLE IF NOT EXISTS journal("
    "  idx INTEGER PRIMARY KEY, chain BLOB NOT NULL, next_command INTEGER NOT NULL,"
    "  bytes BLOB NOT NULL) STRICT;"
    "CREATE TABLE IF NOT EXISTS journal_base("
    "  id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL, idx INTEGER NOT NULL,"
    "  chain BLOB NOT NULL, state BLOB NOT NULL, next_command INTEGER NOT NULL) STRICT;"
    /* The row is not made beside entries: a lost row had the epoch, and the base of the first
     * entry. */
    "INSERT OR IGNORE INTO journal_base SELECT 1, 0, 0, zeroblob(32), zeroblob(32), 1"
    "  WHERE NOT EXISTS (SELECT 1 FROM journal);";

static const char *const statements[STATEMENTS] = {
    [SELECT_LAST] = "SELECT idx, chain, next_command FROM journal ORDER BY idx DESC LIMIT 1",
    [SELECT_ROW] = "SELECT idx, chain, next_command, bytes FROM journal WHERE idx = ?1",
    [SELECT_BASE] = "SELECT idx, chain, next_command, epoch FROM journal_base",
    [INSERT_ROW] = "INSERT INTO journal VALUES(?1, ?2, ?3, ?4)",
    [RAISE_EPOCH] = "UPDATE journal_base SET epoch = ?1",
};

static enum journal_status status_of(int code)
{
    if (code == SQLITE_IOERR_SHMSIZE) {
        return JOURNAL_FULL; /* the WAL's index could not grow: nothing was written yet */
    }
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return JOURNAL_OK;
    case SQLITE_FULL:
        return JOURNAL_FULL;
    case SQLITE_TOOBIG:
        return JOURNAL_TOO_LARGE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return JOURNAL_CORRUPT;
    default:
        return JOURNAL_UNAVAILABLE;
    }
}

static enum journal_status execute(struct engine *engine, const char *sql)
{
    return status_of(sqlite3_exec(engine->database, sql, NULL, NULL, NULL));
}

static void bind_u64(sqlite3_stmt *statement, int position, uint64_t value)
{
    assert(value <= INT64_MAX);
    /* A failed bind fails the step. */
    (void)sqlite3_bind_int64(statement, position, (sqlite3_int64)value);
}

static void bind_blob(sqlite3_stmt *statement, int position, const void *bytes, size_t length)
{
    (void)sqlite3_bind_blob64(statement, position, bytes, length, SQLITE_STATIC); /* likewise */
}

/* Steps a statement that returns no row, and resets it for the next use. */
static enum journal_status finish(sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);
    (void)sqlite3_reset(statement); /* repeats the step's code */
    (void)sqlite3_clear_bindings(statement);
    return code == SQLITE_ROW ? JOURNAL_OK : status_of(code);
}

/* ---- rows */

static bool column_hash(sqlite3_stmt *statement, int column, struct hash32 *ret_hash)
{
    const void *bytes = sqlite3_column_blob(statement, column);
    if (bytes == NULL || sqlite3_column_bytes(statement, column) != (int)sizeof ret_hash->bytes) {
        return false;
    }
    memcpy(ret_hash->bytes, bytes, sizeof ret_hash->bytes);
    return true;
}

/* Reads idx, chain and next_command: the first three columns of both tables. */
static bool column_last(sqlite3_stmt *statement, struct journal_last *ret_last)
{
    sqlite3_int64 index = sqlite3_column_int64(statement, 0);
    sqlite3_int64 next_command = sqlite3_column_int64(statement, 2);
    if (index < 0 || next_command < 1 || !column_hash(statement, 1, &ret_last->chain)) {
        return false;
    }
    ret_last->index = (uint64_t)index;
    ret_last->next_command = (uint64_t)next_command;
    return true;
}

enum journal_status journal_sqlite_read_base(struct engine *engine, struct journal_last *ret_base,
                                             uint64_t *ret_epoch)
{
    sqlite3_stmt *select = engine->prepared[SELECT_BASE];
    int code = sqlite3_step(select);
    enum journal_status status = code == SQLITE_DONE ? JOURNAL_CORRUPT : status_of(code);
    if (code == SQLITE_ROW) {
        const sqlite3_int64 epoch = sqlite3_column_int64(select, 3);
        const bool has_next = epoch >= 0 && epoch < INT64_MAX;
        *ret_epoch = (uint64_t)epoch;
        status = has_next && column_last(select, ret_base) ? JOURNAL_OK : JOURNAL_CORRUPT;
    }
    (void)sqlite3_reset(select); /* repeats the step's code */
    return status;
}

static enum journal_status read_last(struct engine *engine, struct journal_last *ret_last)
{
    sqlite3_stmt *select = engine->prepared[SELECT_LAST];
    uint64_t epoch;
    int code = sqlite3_step(select);
    enum journal_status status = status_of(code);
    if (code == SQLITE_ROW) {
        status = column_last(select, ret_last) ? JOURNAL_OK : JOURNAL_CORRUPT;
    }
    (void)sqlite3_reset(select); /* repeats the step's code */
    return code == SQLITE_DONE ? journal_sqlite_read_base(engine, ret_last, &epoch) : status;
}

/* Returns true when an entry follows `before`. *ret_end is then the end of the journal after it. */
static bool follows(const struct journal_last *before, const void *bytes, size_t length,
                    struct journal_last *ret_end)
{
    struct entry_head head;
    if (!entry_read_head(bytes, length, &head) || head.index != before->index + 1 ||
        head.first_command != before->next_command ||
        !hash32_equal(&head.previous, &before->chain)) {
        return false;
    }
    ret_end->index = head.index;
    ret_end->chain = sha256_of(bytes, length);
    ret_end->next_command = head.first_command + head.count;
    return true;
}

/* ---- the engine */

static enum journal_status engine_lead(void *self, uint64_t last_index,
                                       const struct journal_leader *me, uint64_t *ret_epoch)
{
    struct engine *engine = self;
    struct journal_last last;
    struct journal_last base;
    uint64_t epoch;
    enum journal_status status = read_last(engine, &last);
    if (status == JOURNAL_OK) {
        status = journal_sqlite_read_base(engine, &base, &epoch);
    }
    if (status != JOURNAL_OK) {
        return status;
    }
    if (last.index != last_index) {
        return JOURNAL_BEHIND;
    }
    const uint64_t next = me->epoch > epoch ? me->epoch : epoch + 1;
    bind_u64(engine->prepared[RAISE_EPOCH], 1, next);
    status = finish(engine->prepared[RAISE_EPOCH]);
    if (status == JOURNAL_OK) {
        engine->epoch = next;
        engine->leader = *me;
        engine->leader.epoch = engine->epoch;
        *ret_epoch = engine->epoch;
    }
    return status;
}

static enum journal_status insert_entry(struct engine *engine, const struct journal_entry *entry)
{
    struct journal_last last;
    struct journal_last end;
    if (entry->length > ENTRY_MAX_BYTES) {
        return JOURNAL_TOO_LARGE;
    }
    enum journal_status status = read_last(engine, &last);
    if (status != JOURNAL_OK) {
        return status;
    }
    if (entry->index != last.index + 1 || !follows(&last, entry->bytes, entry->length, &end)) {
        return JOURNAL_CORRUPT;
    }
    sqlite3_stmt *insert = engine->prepared[INSERT_ROW];
    bind_u64(insert, 1, end.index);
    bind_blob(insert, 2, end.chain.bytes, sizeof end.chain.bytes);
    bind_u64(insert, 3, end.next_command);
    bind_blob(insert, 4, entry->bytes, entry->length);
    return finish(insert);
}

/* A savepoint is a transaction when none is open, and a part of the caller's when one is. */
static enum journal_status end_savepoint(struct engine *engine, enum journal_status status)
{
    if (status == JOURNAL_OK) {
        status = execute(engine, "RELEASE journal");
    }
    if (status != JOURNAL_OK && sqlite3_get_autocommit(engine->database) == 0) {
        /* The first failure is the answer; a failed rollback shows at the caller's commit. */
        (void)execute(engine, "ROLLBACK TO journal");
        (void)execute(engine, "RELEASE journal");
    }
    return status;
}

static enum journal_status engine_append(void *self, uint64_t epoch,
                                         const struct journal_entry *entries, size_t count)
{
    struct engine *engine = self;
    if (engine->epoch == 0 || epoch != engine->epoch) {
        return JOURNAL_DEPOSED;
    }
    enum journal_status status = execute(engine, "SAVEPOINT journal");
    if (status != JOURNAL_OK) {
        return status;
    }
    for (size_t i = 0; i < count && status == JOURNAL_OK; i++) {
        status = insert_entry(engine, &entries[i]);
    }
    return end_savepoint(engine, status);
}

/* Reads the chain value of the entry before `index`, from its row or from the base. */
static enum journal_status read_before(struct engine *engine, uint64_t index,
                                       const struct journal_last *base,
                                       struct journal_last *ret_before)
{
    if (index == base->index + 1) {
        *ret_before = *base;
        return JOURNAL_OK;
    }
    sqlite3_stmt *select = engine->prepared[SELECT_ROW];
    bind_u64(select, 1, index - 1);
    int code = sqlite3_step(select);
    enum journal_status status = code == SQLITE_DONE ? JOURNAL_UNAVAILABLE : status_of(code);
    if (code == SQLITE_ROW) {
        status = column_last(select, ret_before) ? JOURNAL_OK : JOURNAL_CORRUPT;
    }
    (void)sqlite3_reset(select); /* repeats the step's code */
    return status;
}

enum journal_status journal_sqlite_check_row(sqlite3_stmt *select,
                                             const struct journal_last *before, struct row *ret_row)
{
    struct journal_last end;
    ret_row->bytes = sqlite3_column_blob(select, 3);
    ret_row->length = (size_t)sqlite3_column_bytes(select, 3);
    if (ret_row->bytes == NULL || !column_last(select, &ret_row->end) ||
        !follows(before, ret_row->bytes, ret_row->length, &end) ||
        end.index != ret_row->end.index || end.next_command != ret_row->end.next_command ||
        !hash32_equal(&end.chain, &ret_row->end.chain)) {
        return JOURNAL_CORRUPT;
    }
    return JOURNAL_OK;
}

/* The entry is copied: a statement left at its row would hold its read transaction open, and the
 * WAL would never be reused. */
static enum journal_status lend(struct engine *engine, const struct row *row)
{
    if (row->length > engine->lent_capacity) {
        uint8_t *bytes = realloc(engine->lent, row->length);
        if (bytes == NULL) {
            return JOURNAL_UNAVAILABLE;
        }
        engine->lent = bytes;
        engine->lent_capacity = row->length;
    }
    memcpy(engine->lent, row->bytes, row->length);
    return JOURNAL_OK;
}

static enum journal_status engine_next(void *self, uint64_t index, struct journal_entry *ret_entry,
                                       int timeout_ms)
{
    struct engine *engine = self;
    struct journal_last base;
    struct journal_last before;
    uint64_t epoch;
    (void)timeout_ms; /* no other thread can append meanwhile */
    enum journal_status status = journal_sqlite_read_base(engine, &base, &epoch);
    if (status == JOURNAL_OK && index <= base.index) {
        status = JOURNAL_BEHIND;
    }
    if (status == JOURNAL_OK) {
        status = read_before(engine, index, &base, &before);
    }
    if (status != JOURNAL_OK) {
        return status;
    }
    sqlite3_stmt *select = engine->prepared[SELECT_ROW];
    struct row row = {.length = 0};
    bind_u64(select, 1, index);
    int code = sqlite3_step(select);
    status = code == SQLITE_DONE ? JOURNAL_UNAVAILABLE : status_of(code);
    if (code == SQLITE_ROW) {
        status = journal_sqlite_check_row(select, &before, &row);
        status = status == JOURNAL_OK ? lend(engine, &row) : status;
    }
    (void)sqlite3_reset(select); /* repeats the step's code */
    if (status == JOURNAL_OK) {
        *ret_entry =
            (struct journal_entry){.index = index, .bytes = engine->lent, .length = row.length};
    }
    return status;
}

static enum journal_status engine_leader(void *self, struct journal_leader *ret_leader)
{
    struct engine *engine = self;
    if (engine->epoch == 0) {
        return JOURNAL_UNAVAILABLE;
    }
    *ret_leader = engine->leader;
    return JOURNAL_OK;
}

static void engine_destroy(void *self)
{
    struct engine *engine = self;
    for (size_t i = 0; i < STATEMENTS; i++) {
        (void)sqlite3_finalize(engine->prepared[i]); /* repeats the last step's code */
    }
    free(engine->lent);
    free(engine);
}

static const struct journal_engine functions = {
    .lead = engine_lead,
    .append = engine_append,
    .next = engine_next,
    .leader = engine_leader,
    .destroy = engine_destroy,
};

/* ---- start */

enum journal_status journal_sqlite_unreadable(struct engine *engine, struct problem *ret_problem)
{
    problem_set(ret_problem, "the journal cannot be read: %s", sqlite3_errmsg(engine->database));
    return status_of(sqlite3_errcode(engine->database)) == JOURNAL_CORRUPT ? JOURNAL_CORRUPT
                                                                           : JOURNAL_UNAVAILABLE;
}

static enum journal_status prepare(struct engine *engine, struct problem *ret_problem)
{
    if (execute(engine, schema) != JOURNAL_OK) {
        return journal_sqlite_unreadable(engine, ret_problem);
    }
    for (size_t i = 0; i < STATEMENTS; i++) {
        if (sqlite3_prepare_v3(engine->database, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &engine->prepared[i], NULL) != SQLITE_OK) {
            return journal_sqlite_unreadable(engine, ret_problem);
        }
    }
    return JOURNAL_OK;
}

/* One transaction does all, so that a refused journal leaves no new tables. */
static enum journal_status check_start(struct engine *engine,
                                       const struct journal_sqlite_start *start,
                                       struct journal_last *ret_last, struct problem *ret_problem)
{
    if (execute(engine, "BEGIN") != JOURNAL_OK) {
        return journal_sqlite_unreadable(engine, ret_problem);
    }
    enum journal_status status = prepare(engine, ret_problem);
    if (status == JOURNAL_OK) {
        status = journal_sqlite_check_pages(engine, ret_problem);
    }
    if (status == JOURNAL_OK) {
        status = journal_sqlite_check_entries(engine, start, ret_last, ret_problem);
    }
    if (status != JOURNAL_OK) {
        (void)execute(engine, "ROLLBACK"); /* the finding is the answer */
        return status;
    }
    return execute(engine, "COMMIT") == JOURNAL_OK ? JOURNAL_OK
                                                   : journal_sqlite_unreadable(engine, ret_problem);
}

enum journal_status journal_sqlite_open(sqlite3 *database, const struct journal_sqlite_start *start,
                                        struct journal **ret_journal, struct journal_last *ret_last,
                                        struct problem *ret_problem)
{
    struct engine *engine = calloc(1, sizeof *engine);
    *ret_journal = NULL;
    if (engine == NULL) {
        problem_set(ret_problem, "out of memory");
        return JOURNAL_UNAVAILABLE;
    }
    engine->database = database;
    enum journal_status status = check_start(engine, start, ret_last, ret_problem);
    if (status != JOURNAL_OK) {
        engine_destroy(engine);
        return status;
    }
    *ret_journal = journal_create(&functions, engine);
    if (*ret_journal == NULL) {
        problem_set(ret_problem, "out of memory");
        return JOURNAL_UNAVAILABLE;
    }
    return JOURNAL_OK;
}

bool journal_sqlite_number(sqlite3 *database, const char *query, uint64_t *ret_number)
{
    sqlite3_stmt *select = NULL;
    const bool found = sqlite3_prepare_v2(database, query, -1, &select, NULL) == SQLITE_OK &&
                       sqlite3_step(select) == SQLITE_ROW;
    if (found) {
        *ret_number = (uint64_t)sqlite3_column_int64(select, 0);
    }
    (void)sqlite3_finalize(select); /* repeats the step's code */
    return found;
}

bool journal_sqlite_last_entry(sqlite3 *database, uint64_t *ret_index)
{
    return journal_sqlite_number(database, "SELECT ifnull(max(idx), 0) FROM journal", ret_index);
}

enum journal_match journal_sqlite_has(sqlite3 *database, uint64_t index, const struct hash32 *chain)
{
    sqlite3_stmt *select;
    struct hash32 stored;
    if (sqlite3_prepare_v2(database,
                           "SELECT chain FROM journal WHERE idx = ?1"
                           " UNION ALL SELECT chain FROM journal_base WHERE idx = ?1",
                           -1, &select, NULL) != SQLITE_OK) {
        return JOURNAL_UNREAD;
    }
    bind_u64(select, 1, index <= INT64_MAX ? index : INT64_MAX);
    const int step = sqlite3_step(select);
    bool has =
        step == SQLITE_ROW && column_hash(select, 0, &stored) && hash32_equal(&stored, chain);
    (void)sqlite3_finalize(select); /* repeats the step's code */
    if (step == SQLITE_ROW) {
        return has ? JOURNAL_HAS : JOURNAL_HAS_OTHER;
    }
    return step == SQLITE_DONE ? JOURNAL_HAS_NOT : JOURNAL_UNREAD;
}
