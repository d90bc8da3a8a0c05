/* The writer of the ledger appends records in groups and commits each group. */
#include "base/array.h"
#include "ledger/store/effect.h"
#include "ledger/store/rows.h"
#include "ledger/store/sqlite_code.h"
#include "ledger/store/tables.h"
#include "ledger/store/tree.h"
#include "ledger/store/wal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* A value of the protocol's enum attempt_status: a late result decides nothing. */
enum { STATUS_LATE = 3 };

enum statement { MOVE_BALANCE, OPEN_BALANCE, PUT_BATCH, PUT_CHECKPOINT, STATEMENTS };

static const char *const statements[STATEMENTS] = {
    /* An upsert would not do: the table's CHECK would test the difference itself, which may be
     * negative. */
    [MOVE_BALANCE] =
        "UPDATE balances SET available = available + ?2, held = held + ?3 WHERE account = ?1",
    [OPEN_BALANCE] = "INSERT INTO balances VALUES(?1, ?2, ?3)",
    [PUT_BATCH] = "INSERT OR IGNORE INTO batches VALUES(?1, ?2, ?3)",
    [PUT_CHECKPOINT] = "INSERT INTO checkpoint VALUES(1, ?1, ?2) ON CONFLICT(id) DO UPDATE"
                       " SET tree_size = excluded.tree_size, note = excluded.note",
};

struct delta {
    uint32_t account;
    int64_t available_micro;
    int64_t held_micro;
};

struct ledger_store {
    sqlite3 *database;
    int lock_fd;
    struct wal wal;
    sqlite3_stmt *prepared[STATEMENTS];
    struct rows *rows;
    struct merkle tree;
    uint64_t next_entry;
    int node_error; /* the first failure inside merkle_append */
    bool has_tables, must_have_tables;

    bool in_group;
    uint64_t batch_index; /* the command whose batch this group has stored; 0: none */
    struct merkle tree_before;
    uint64_t next_entry_before;
    struct delta *deltas; /* netted per account until commit */
    size_t delta_count;
    size_t delta_capacity;

    char error[sizeof(struct problem)];
};

static __attribute__((format(printf, 2, 3))) void explain(struct ledger_store *store,
                                                          const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(store->error, sizeof store->error, format, arguments); /* cut, never overrun */
    va_end(arguments);
}

const char *ledger_store_error(const struct ledger_store *store)
{
    return store->error;
}

sqlite3 *ledger_store_database(struct ledger_store *store)
{
    return store->database;
}

const struct merkle *ledger_store_tree(const struct ledger_store *store)
{
    return &store->tree;
}

static enum ledger_store_status failure(struct ledger_store *store, const char *what, int code)
{
    explain(store, "%s: %s", what, sqlite3_errmsg(store->database));
    return store_status_of(code);
}

/* ---- opening */

/* POSIX locks on the database itself are SQLite's, and closing another descriptor of it would drop
 * them. The lock is therefore a separate file. */
static enum ledger_store_status lock(struct ledger_store *store, const char *path)
{
    char name[PATH_MAX];
    int length = snprintf(name, sizeof name, "%s-lock", path);
    if (length < 0 || (size_t)length >= sizeof name) {
        explain(store, "the path of the ledger is too long");
        return LEDGER_STORE_FAILED;
    }
    store->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (store->lock_fd < 0) {
        explain(store, "%s: %s", name, strerror(errno));
        return LEDGER_STORE_FAILED;
    }
    if (flock(store->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        explain(store, "%s is held by another broker", name);
        return LEDGER_STORE_LOCKED;
    }
    /* SQLite gives -wal and -shm the mode of the database. */
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        explain(store, "%s cannot be opened: %s%s", path, strerror(errno), problem_advice(errno));
        return LEDGER_STORE_FAILED;
    }
    (void)close(fd); /* nothing was written */
    return LEDGER_STORE_OK;
}

static int read_integer(sqlite3 *database, const char *sql, int64_t *ret_value)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
    if (code != SQLITE_OK) {
        return code;
    }
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        *ret_value = sqlite3_column_int64(statement, 0);
        code = SQLITE_OK;
    }
    (void)sqlite3_finalize(statement); /* repeats the step's code */
    return code;
}

static enum ledger_store_status check_version(struct ledger_store *store)
{
    int64_t version = 0;
    int code = read_integer(store->database, "PRAGMA user_version", &version);
    if (code != SQLITE_OK) {
        return failure(store, "the ledger cannot be read", code);
    }
    if (version != 0 && version != LEDGER_SCHEMA_VERSION) {
        explain(
            store,
            "the ledger has schema version %" PRId64 ", this program knows %d: use the %s program",
            version, LEDGER_SCHEMA_VERSION, version > LEDGER_SCHEMA_VERSION ? "newer" : "older");
        return LEDGER_STORE_NEWER;
    }
    if (version == 0 && store->must_have_tables) {
        explain(store, "the ledger has no tables: its WAL is damaged or missing");
        return LEDGER_STORE_CORRUPT;
    }
    store->has_tables = version == LEDGER_SCHEMA_VERSION;
    return LEDGER_STORE_OK;
}

static enum ledger_store_status set_modes(struct ledger_store *store)
{
    /* An older ledger keeps its size of pages. */
    int code = sqlite3_exec(store->database,
                            "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL;"
                            " PRAGMA synchronous = FULL",
                            NULL, NULL, NULL);
    return code == SQLITE_OK ? LEDGER_STORE_OK : failure(store, "the ledger cannot be read", code);
}

static enum ledger_store_status create_tables(struct ledger_store *store)
{
    if (store->has_tables) {
        return set_modes(store);
    }
    char version[64];
    /* The text fits. */
    (void)snprintf(version, sizeof version, "PRAGMA user_version = %d", LEDGER_SCHEMA_VERSION);
    enum ledger_store_status status = set_modes(store);
    if (status != LEDGER_STORE_OK) {
        return status;
    }
    int code = sqlite3_exec(store->database, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (code == SQLITE_OK) {
        code = tables_create(store->database);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_exec(store->database, version, NULL, NULL, NULL);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_exec(store->database, "COMMIT", NULL, NULL, NULL);
    }
    ledger_store_trust(store); /* we just made it */
    return code == SQLITE_OK ? LEDGER_STORE_OK
                             : failure(store, "the ledger's tables cannot be made", code);
}

static enum ledger_store_status prepare(struct ledger_store *store)
{
    for (size_t i = 0; i < STATEMENTS; i++) {
        int code = sqlite3_prepare_v3(store->database, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &store->prepared[i], NULL);
        if (code != SQLITE_OK) {
            return failure(store, "the ledger's tables are not ours", code);
        }
    }
    const int code = rows_create(store->database, &store->rows);
    return code == SQLITE_OK ? LEDGER_STORE_OK
                             : failure(store, "the ledger's tables are not ours", code);
}

static enum ledger_store_status load_tree(struct ledger_store *store)
{
    int64_t size = 0;
    struct tree_reader reader;
    int code = read_integer(store->database,
                            "SELECT ifnull(max(idx), -1) + 1 FROM tree WHERE level = 0", &size);
    if (code == SQLITE_OK) {
        code = tree_reader_init(&reader, store->database);
    }
    if (code != SQLITE_OK) {
        return failure(store, "table tree", code);
    }
    bool loaded = tree_load(&reader, (uint64_t)size, &store->tree);
    tree_reader_fini(&reader);
    if (!loaded) {
        explain(store,
                "table tree: a node above its %" PRId64 " leaves is missing or has the wrong size",
                size);
        return store_status_of(reader.error);
    }
    return LEDGER_STORE_OK;
}

static enum ledger_store_status load_next_entry(struct ledger_store *store)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        uint64_t last = 0;
        int code = table_last_entry(store->database, (enum ledger_table)i, &last);
        if (code != SQLITE_OK) {
            return failure(store, table_name((enum ledger_table)i), code);
        }
        if (last >= store->next_entry) {
            store->next_entry = last + 1;
        }
    }
    return LEDGER_STORE_OK;
}

static enum ledger_store_status open_store(struct ledger_store *store, const char *path)
{
    enum ledger_store_status status = lock(store, path);
    if (status != LEDGER_STORE_OK) {
        return status;
    }
    struct problem problem;
    if (!wal_renew(path, &problem)) {
        /* Some file systems never write in place, so rewriting needs space. */
        bool is_full = errno == ENOSPC || errno == EDQUOT;
        explain(store, "%s", problem.text);
        return is_full ? LEDGER_STORE_FULL : LEDGER_STORE_FAILED;
    }
    sqlite_know_errors();
    /* One thread at a time uses the handle, so SQLite need not lock it at every call. */
    int code =
        sqlite3_open_v2(path, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK) {
        return failure(store, "the ledger cannot be opened", code);
    }
    (void)sqlite3_extended_result_codes(store->database, 1); /* cannot fail on an open handle */
    (void)sqlite3_busy_timeout(store->database, 2000);       /* readers may delay a checkpoint */
    wal_init(&store->wal, store->database);
    /* The WAL stays until the ledger is trusted. The call cannot fail either. */
    (void)sqlite3_db_config(store->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    static enum ledger_store_status (*const steps[])(struct ledger_store *) = {
        check_version, create_tables, prepare, load_tree, load_next_entry,
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == LEDGER_STORE_OK; i++) {
        status = steps[i](store);
    }
    if (status == LEDGER_STORE_FULL && sqlite_reads_failed()) {
        status = LEDGER_STORE_FAILED; /* SQLite calls an index that cannot be looked at too short */
    }
    if (status == LEDGER_STORE_OK && !sqlite_can_write(store->database, &problem)) {
        explain(store, "%s", problem.text);
        status = LEDGER_STORE_FAILED;
    }
    if (status == LEDGER_STORE_OK && !wal_sync_name(path)) {
        explain(store, "the folder of %s cannot be made durable: %s", path, strerror(errno));
        status = LEDGER_STORE_FAILED;
    }
    return status;
}

static enum ledger_store_status open_at(const char *path, bool must_have_tables,
                                        struct ledger_store **ret_store)
{
    struct ledger_store *store = calloc(1, sizeof *store);
    *ret_store = store;
    if (store == NULL) {
        return LEDGER_STORE_OUT_OF_MEMORY;
    }
    store->lock_fd = -1;
    store->next_entry = 1;
    store->must_have_tables = must_have_tables;
    return open_store(store, path);
}

enum ledger_store_status ledger_store_open(const char *path, struct ledger_store **ret_store)
{
    return open_at(path, false, ret_store);
}

enum ledger_store_status ledger_store_open_old(const char *path, struct ledger_store **ret_store)
{
    return open_at(path, true, ret_store);
}

void ledger_store_trust(struct ledger_store *store)
{
    /* The call cannot fail on an open handle. */
    (void)sqlite3_db_config(store->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
}

void ledger_store_close(struct ledger_store **self)
{
    struct ledger_store *store = *self;
    if (store == NULL) {
        return;
    }
    for (size_t i = 0; i < STATEMENTS; i++) {
        (void)sqlite3_finalize(store->prepared[i]); /* repeats the last step's code */
    }
    rows_destroy(&store->rows);
    /* An open transaction rolls back. Statements of others (a journal's) keep the handle until they
     * end. */
    (void)sqlite3_close_v2(store->database);
    if (store->lock_fd >= 0) {
        (void)close(store->lock_fd); /* releases the lock */
    }
    free(store->deltas);
    free(store);
    *self = NULL;
}

/* ---- groups */

static enum ledger_store_status begin(struct ledger_store *store, bool is_lazy)
{
    assert(!store->in_group);
    ledger_store_trust(store);
    int code = wal_set_lazy(&store->wal, is_lazy);
    if (code == SQLITE_OK) {
        code = sqlite3_exec(store->database, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    }
    if (code != SQLITE_OK) {
        return failure(store, "a transaction cannot begin", code);
    }
    store->in_group = true;
    store->tree_before = store->tree;
    store->next_entry_before = store->next_entry;
    store->batch_index = 0;
    store->delta_count = 0;
    return LEDGER_STORE_OK;
}

enum ledger_store_status ledger_store_begin(struct ledger_store *store)
{
    return begin(store, false);
}

enum ledger_store_status ledger_store_begin_lazily(struct ledger_store *store)
{
    return begin(store, true);
}

void ledger_store_rollback(struct ledger_store *store)
{
    if (!store->in_group) {
        return;
    }
    if (sqlite3_get_autocommit(store->database) == 0) {
        /* If even this fails, the handle never commits again, and the next begin reports an
         * error. */
        (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
    }
    store->in_group = false;
    store->tree = store->tree_before;
    store->next_entry = store->next_entry_before;
    store->delta_count = 0;
    rows_clear(store->rows);
}

static enum ledger_store_status roll_back_for(struct ledger_store *store, const char *what,
                                              int code)
{
    enum ledger_store_status status = failure(store, what, code);
    ledger_store_rollback(store);
    return status;
}

/* Steps a statement that returns no row, and resets it for the next use. */
static int finish(sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

static bool add_delta(struct ledger_store *store, uint32_t account, struct ledger_effect effect)
{
    size_t i = 0;
    while (i < store->delta_count && store->deltas[i].account != account) {
        i++;
    }
    if (i == store->delta_count) {
        struct delta *deltas = array_with_room(store->deltas, store->delta_count,
                                               &store->delta_capacity, sizeof *deltas);
        if (deltas == NULL) {
            return false;
        }
        store->deltas = deltas;
        store->deltas[store->delta_count++] = (struct delta){.account = account};
    }
    struct delta *delta = &store->deltas[i];
    return !__builtin_add_overflow(delta->available_micro, effect.available_micro,
                                   &delta->available_micro) &&
           !__builtin_add_overflow(delta->held_micro, effect.held_micro, &delta->held_micro);
}

static void put_node(void *context, unsigned level, uint64_t index, const struct hash32 *hash)
{
    struct ledger_store *store = context;
    if (level % TREE_LEVEL_STEP != 0 || store->node_error != SQLITE_OK) {
        return;
    }
    store->node_error = rows_add_node(store->rows, level, index, hash);
}

static int put_leaf(struct ledger_store *store, const struct ledger_record *record)
{
    uint8_t bytes[RECORD_LEAF_MAX];
    size_t length = record_leaf(record, bytes);
    struct hash32 leaf = merkle_leaf_hash(bytes, length);
    store->node_error = SQLITE_OK;
    merkle_append(&store->tree, &leaf, put_node, store);
    return store->node_error;
}

/* All results of one command came in one batch, one after another. */
static int put_batch(struct ledger_store *store, uint64_t log_index,
                     const struct ledger_batch *batch)
{
    if (store->batch_index == log_index) {
        return SQLITE_OK;
    }
    sqlite3_stmt *put = store->prepared[PUT_BATCH];
    /* A failed bind leaves NULL, which the column refuses. */
    (void)sqlite3_bind_int64(put, 1, (sqlite3_int64)log_index);
    (void)sqlite3_bind_blob(put, 2, batch->signature.bytes, sizeof batch->signature.bytes,
                            SQLITE_STATIC);
    (void)sqlite3_bind_blob64(put, 3, batch->leaves, batch->count * sizeof batch->leaves[0],
                              SQLITE_STATIC);
    int code = finish(put);
    store->batch_index = code == SQLITE_OK ? log_index : 0;
    return code;
}

/* Stores a RESULT. The batch of a held result was stored with its HELD. */
static int put_result(struct ledger_store *store, const struct ledger_record *record,
                      const struct ledger_batch *batch)
{
    int code = record->batch_index == record->log_index ? put_batch(store, record->log_index, batch)
                                                        : SQLITE_OK;
    if (code != SQLITE_OK || record->status == STATUS_LATE) {
        return code;
    }
    return rows_add_outcome(store->rows, record, store->next_entry);
}

static int put_record(struct ledger_store *store, const struct ledger_record *record)
{
    uint64_t leaf = store->tree.size;
    return rows_add_record(store->rows, record, store->next_entry,
                           record_is_logged(record) ? &leaf : NULL);
}

enum ledger_store_status ledger_store_append(struct ledger_store *store,
                                             const struct ledger_record *record,
                                             const struct ledger_batch *batch)
{
    assert(store->in_group);
    bool comes_with_batch =
        record->kind == LEDGER_HELD ||
        (record->kind == LEDGER_RESULT && record->batch_index == record->log_index);
    assert(!comes_with_batch ||
           (batch != NULL && batch->count > 0 && batch->count <= LEDGER_BATCH_MAX));
    (void)comes_with_batch;
    assert(record->amount_micro >= 0);
    int code = put_record(store, record);
    if (code == SQLITE_OK && record->kind == LEDGER_RESULT) {
        code = put_result(store, record, batch);
    } else if (code == SQLITE_OK && record->kind == LEDGER_HELD) {
        code = put_batch(store, record->log_index, batch);
    }
    if (code == SQLITE_OK && record_is_logged(record)) {
        code = put_leaf(store, record);
    }
    if (code != SQLITE_OK) {
        return roll_back_for(store, table_name(table_of_kind(record->kind)), code);
    }
    if (effect_is_money(record->kind) &&
        (!add_delta(store, record->debit, effect_on_debit(record)) ||
         !add_delta(store, record->credit, effect_on_credit(record)))) {
        explain(store, "the balances of one group do not fit");
        ledger_store_rollback(store);
        return LEDGER_STORE_OUT_OF_MEMORY;
    }
    store->next_entry++;
    return LEDGER_STORE_OK;
}

enum ledger_store_status ledger_store_set_checkpoint(struct ledger_store *store, const char *note,
                                                     size_t length, uint64_t tree_size)
{
    assert(store->in_group);
    assert(tree_size <= store->tree.size);
    sqlite3_stmt *put = store->prepared[PUT_CHECKPOINT];
    (void)sqlite3_bind_int64(put, 1, (sqlite3_int64)tree_size); /* as in put_batch */
    (void)sqlite3_bind_text64(put, 2, note, length, SQLITE_STATIC, SQLITE_UTF8);
    int code = finish(put);
    return code == SQLITE_OK ? LEDGER_STORE_OK : roll_back_for(store, "table checkpoint", code);
}

static int put_balance(sqlite3_stmt *put, const struct delta *delta)
{
    (void)sqlite3_bind_int64(put, 1, delta->account); /* as in put_batch */
    (void)sqlite3_bind_int64(put, 2, delta->available_micro);
    (void)sqlite3_bind_int64(put, 3, delta->held_micro);
    return finish(put);
}

static int put_balances(struct ledger_store *store)
{
    for (size_t i = 0; i < store->delta_count; i++) {
        int code = put_balance(store->prepared[MOVE_BALANCE], &store->deltas[i]);
        if (code == SQLITE_OK && sqlite3_changes(store->database) == 0) {
            code = put_balance(store->prepared[OPEN_BALANCE], &store->deltas[i]);
        }
        if (code != SQLITE_OK) {
            return code;
        }
    }
    return SQLITE_OK;
}

enum ledger_store_status ledger_store_commit(struct ledger_store *store)
{
    assert(store->in_group);
    const char *table = NULL;
    int code = rows_flush(store->rows, &table);
    if (code != SQLITE_OK) {
        return roll_back_for(store, table, code);
    }
    code = put_balances(store);
    if (code != SQLITE_OK) {
        return roll_back_for(store, "table balances", code);
    }
    code = sqlite3_exec(store->database, "COMMIT", NULL, NULL, NULL);
    if (code != SQLITE_OK) {
        return roll_back_for(store, "the transaction cannot be committed", code);
    }
    store->in_group = false;
    store->delta_count = 0;
    code = wal_checkpoint_when_due(&store->wal);
    return code == SQLITE_OK ? LEDGER_STORE_OK
                             : failure(store, "the log cannot be copied into the ledger", code);
}

bool ledger_store_is_synced(const struct ledger_store *store)
{
    return store->wal.is_synced;
}

enum ledger_store_status ledger_store_sync(struct ledger_store *store)
{
    assert(!store->in_group);
    const int code = wal_sync(&store->wal);
    return code == SQLITE_OK ? LEDGER_STORE_OK
                             : failure(store, "the log cannot be made durable", code);
}

void ledger_store_checkpoint_every(struct ledger_store *store, int pages)
{
    store->wal.checkpoint_pages = pages;
}
