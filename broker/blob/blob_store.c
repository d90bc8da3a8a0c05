#include "broker/blob/blob_store.h"

#include "base/text.h"
#include "broker/blob/blob_damage.h"
#include "broker/blob/blob_leftovers.h"
#include "broker/blob/blob_store_internal.h"
#include "broker/copies/copy_log.h"
#include "ledger/store/sqlite_code.h"
#include "ledger/store/wal.h"
#include "runtime/hasher.h"
#include "runtime/private_folder.h"
#include "runtime/stamp.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const statement_texts[STATEMENT_COUNT] = {
    [FIND] = "SELECT size, bytes FROM blob WHERE hash = ?1",
    [INSERT] = "INSERT OR IGNORE INTO blob (hash, size, bytes) VALUES (?1, ?2, ?3)",
    [REPLACE] = "INSERT OR REPLACE INTO blob (hash, size, bytes) VALUES (?1, ?2, ?3)",
    [OWNS] = ("SELECT 1 FROM owner WHERE account = ?1 AND hash = ?2 AND NOT EXISTS "
              "(SELECT 1 FROM condemned WHERE account = ?1 AND hash = ?2)"),
    [LENDS] = "SELECT 1 FROM owner WHERE account = ?1 AND hash = ?2",
    [OWN] = "INSERT OR IGNORE INTO owner (account, hash) VALUES (?1, ?2)",
    [SPARE] = "DELETE FROM condemned WHERE account = ?1 AND hash = ?2",
    [USE] = ("INSERT INTO usage (account, bytes) VALUES (?1, ?2) "
             "ON CONFLICT (account) DO UPDATE SET bytes = bytes + excluded.bytes"),
    [USAGE] = "SELECT bytes FROM usage WHERE account = ?1",
    [FORGET] = ("DELETE FROM blob WHERE hash = ?1 AND NOT EXISTS "
                "(SELECT 1 FROM owner WHERE owner.hash = ?1)"),
    [CONDEMN] = "INSERT OR IGNORE INTO condemned (account, hash, since_s) VALUES (?1, ?2, ?3)",
    [DISOWN] = "DELETE FROM owner WHERE account = ?1 AND hash = ?2",
    [NOTE_FORGOTTEN] = ("INSERT INTO forgotten (job, account, at_ms, reason, state) "
                        "VALUES (?1, ?2, ?3, ?4, ?5) "
                        "ON CONFLICT (job) DO UPDATE SET state = max(state, excluded.state)"),
    [FIND_FORGOTTEN] = "SELECT 1 FROM forgotten WHERE job = ?1",
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
};

enum blob_status blob_store_failed(struct blob_store *store, const char *what)
{
    int error = errno;
    (void)snprintf(store->error, sizeof store->error, "%s: %s", what, strerror(error));
    if (error == EMFILE || error == ENFILE) {
        return BLOB_TOO_MANY; /* strangers may have taken the last descriptor */
    }
    return error == ENOSPC || error == EDQUOT ? BLOB_DISK_FULL : BLOB_FAILED;
}

enum blob_status blob_store_sqlite_failed(struct blob_store *store)
{
    (void)snprintf(store->error, sizeof store->error, "blobs.db: %s",
                   sqlite3_errmsg(store->database));
    return sqlite3_errcode(store->database) == SQLITE_FULL ? BLOB_DISK_FULL : BLOB_FAILED;
}

const char *blob_store_error(const struct blob_store *store)
{
    return store->error;
}

/* ---------------------------------------------------------------- paths */

void blob_store_path(const struct blob_store *store, const struct hash32 *hash,
                     char ret_path[PATH_SIZE])
{
    char hex[HEX_SIZE];
    text_hex(hash->bytes, sizeof hash->bytes, hex);
    (void)snprintf(ret_path, PATH_SIZE, "%s/%.2s/%s", store->folder, hex, hex);
}

/* ---------------------------------------------------------------- opening */

/* Removes uploads that a former broker had not finished. Nobody was told that they are here. */
static bool empty_partials(const char *folder, struct problem *ret_problem)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/partial", folder);
    if (!private_folder(path, true, ret_problem)) {
        return false;
    }
    DIR *directory = opendir(path);
    if (directory == NULL) {
        problem_set(ret_problem, "%s: %s", path, strerror(errno));
        return false;
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] != '.') {
            (void)unlinkat(dirfd(directory), entry->d_name, 0); /* the next start tries again */
        }
    }
    (void)closedir(directory); /* only read */
    return true;
}

static bool prepare(struct blob_store *store, struct problem *ret_problem)
{
    static const char schema[] =
        "PRAGMA journal_mode = WAL;"
        "PRAGMA synchronous = FULL;"
        "CREATE TABLE IF NOT EXISTS blob (hash BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, bytes "
        "BLOB) STRICT;"
        "CREATE TABLE IF NOT EXISTS owner (account INTEGER NOT NULL, hash BLOB NOT NULL,"
        " PRIMARY KEY (account, hash)) STRICT, WITHOUT ROWID;"
        "CREATE TABLE IF NOT EXISTS usage (account INTEGER PRIMARY KEY, bytes INTEGER NOT NULL) "
        "STRICT;"
        /* Owners are found by hash, too, so that blobs without an owner go. */
        "CREATE INDEX IF NOT EXISTS owner_hash ON owner (hash);" BLOB_DAMAGE_SCHEMA
            BLOB_PENDING_SCHEMA BLOB_FORGET_SCHEMA COPY_LOG_SCHEMA;
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/blobs.db", store->folder);
    if (!wal_renew(path, ret_problem)) {
        return false;
    }
    sqlite_know_errors();
    bool good = sqlite3_open_v2(path, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                NULL) == SQLITE_OK &&
                sqlite3_exec(store->database, schema, NULL, NULL, NULL) == SQLITE_OK;
    for (int i = 0; good && i < STATEMENT_COUNT; i++) {
        good = sqlite3_prepare_v2(store->database, statement_texts[i], -1, &store->statements[i],
                                  NULL) == SQLITE_OK;
    }
    store->damage = good ? blob_damage_create(store->database) : NULL;
    store->pending = good ? blob_pending_create(store->database) : NULL;
    store->leftovers = good ? blob_leftovers_create(store->database, store->folder) : NULL;
    store->copies = good ? copy_log_create(store->database) : NULL;
    if (store->damage == NULL || store->pending == NULL || store->leftovers == NULL ||
        store->copies == NULL) {
        problem_set(ret_problem, "%s: %s%s", path, sqlite3_errmsg(store->database),
                    sqlite_could_not(store->database)
                        ? ". " PROBLEM_TRY_AGAIN
                        : ". The ledger is whole: move blobs.db and blobs.db-wal away, leave the "
                          "files, put blobs.db of the newest backup there, or none, and start "
                          "again");
        return false;
    }
    if (!sqlite_can_write(store->database, ret_problem)) {
        return false;
    }
    if (!wal_sync_name(path)) {
        problem_set(ret_problem, "%s cannot be made durable: %s", store->folder, strerror(errno));
        return false;
    }
    wal_init(&store->wal, store->database);
    return true;
}

bool blob_store_open(const struct blob_store_config *config, struct blob_store **ret_store,
                     struct problem *ret_problem)
{
    struct blob_store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    store->quota_bytes = config->quota_bytes;
    store->size_bytes = config->size_bytes;
    int length = snprintf(store->folder, sizeof store->folder, "%s", config->folder);
    if (length < 0 || (size_t)length >= sizeof store->folder) {
        problem_set(ret_problem, "%.100s...: the path of the blobs is too long", config->folder);
        free(store);
        return false;
    }
    if (!private_folder(store->folder, true, ret_problem) ||
        !empty_partials(store->folder, ret_problem) || !prepare(store, ret_problem)) {
        blob_store_close(&store);
        return false;
    }
    store->wal.checkpoint_pages =
        config->checkpoint_pages > 0 ? config->checkpoint_pages : BLOB_STORE_CHECKPOINT_PAGES;
    *ret_store = store;
    return true;
}

bool blob_store_is_empty(struct blob_store *store)
{
    sqlite3_stmt *select = NULL;
    const bool is_empty = sqlite3_prepare_v2(store->database, "SELECT 1 FROM blob LIMIT 1", -1,
                                             &select, NULL) == SQLITE_OK &&
                          sqlite3_step(select) == SQLITE_DONE;
    (void)sqlite3_finalize(select); /* read only */
    return is_empty;
}

void blob_store_close(struct blob_store **self)
{
    struct blob_store *store = *self;
    if (store != NULL) {
        for (size_t i = 0; i < BLOB_PARTIALS_MAX; i++) {
            if (store->partials[i].is_used) {
                blob_store_drop_partial(store, &store->partials[i]);
            }
        }
        for (int i = 0; i < STATEMENT_COUNT; i++) {
            (void)sqlite3_finalize(store->statements[i]);
        }
        blob_damage_destroy(&store->damage);
        blob_pending_destroy(&store->pending);
        blob_leftovers_destroy(&store->leftovers);
        copy_log_destroy(&store->copies);
        (void)sqlite3_close(store->database); /* committed data is safe either way */
        hasher_destroy(&store->hasher);
        free(store);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- rows */

sqlite3_stmt *blob_store_fresh(struct blob_store *store, enum statement which)
{
    sqlite3_stmt *statement = store->statements[which];
    (void)sqlite3_reset(statement); /* repeats an error that was reported when it happened */
    (void)sqlite3_clear_bindings(statement);
    return statement;
}

enum blob_status blob_store_run(struct blob_store *store, sqlite3_stmt *statement)
{
    enum blob_status status =
        sqlite3_step(statement) == SQLITE_DONE ? BLOB_OK : blob_store_sqlite_failed(store);
    (void)sqlite3_reset(statement);
    return status;
}

enum blob_status blob_store_begin(struct blob_store *store)
{
    return blob_store_run(store, blob_store_fresh(store, BEGIN));
}

enum blob_status blob_store_commit(struct blob_store *store)
{
    if (sqlite3_get_autocommit(store->database)) {
        blob_store_undo(store);
        return BLOB_DISK_FULL; /* SQLite rolled back by itself when a statement met the full disk */
    }
    enum blob_status status = blob_store_run(store, blob_store_fresh(store, COMMIT));
    if (status != BLOB_OK) {
        blob_store_undo(store);
    } else {
        blob_leftovers_committed(store->leftovers);
        copy_log_committed(store->copies);
    }
    if (status == BLOB_OK && wal_checkpoint_when_due(&store->wal) != SQLITE_OK) {
        (void)blob_store_sqlite_failed(store);
        return BLOB_FAILED;
    }
    return status;
}

void blob_store_undo(struct blob_store *store)
{
    if (!sqlite3_get_autocommit(store->database)) {
        /* Nothing more can be done about a failure here. */
        (void)blob_store_run(store, blob_store_fresh(store, ROLLBACK));
    }
    blob_leftovers_rolled_back(store->leftovers);
    copy_log_rolled_back(store->copies);
    (void)blob_pending_reload(store->pending); /* after a failure it holds less than it could */
}

enum blob_status blob_store_look_up(struct blob_store *store, sqlite3_stmt *statement)
{
    switch (sqlite3_step(statement)) {
    case SQLITE_ROW:
        return BLOB_OK;
    case SQLITE_DONE:
        return BLOB_NOT_FOUND;
    default:
        (void)blob_store_sqlite_failed(store);
        return BLOB_FAILED;
    }
}

enum blob_status blob_store_of_pending(struct blob_store *store, enum pending_status status)
{
    switch (status) {
    case PENDING_OK:
        return BLOB_OK;
    case PENDING_NONE:
        return BLOB_NOT_FOUND;
    case PENDING_FAILED:
        break;
    }
    return blob_store_sqlite_failed(store);
}

static enum blob_status look_for_owner(struct blob_store *store, enum statement which,
                                       uint32_t account, const struct hash32 *hash)
{
    sqlite3_stmt *statement = blob_store_fresh(store, which);
    (void)sqlite3_bind_int64(statement, 1, account);
    blob_store_bind_hash(statement, 2, hash);
    enum blob_status status = blob_store_look_up(store, statement);
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return status;
}

enum blob_status blob_store_owns(struct blob_store *store, uint32_t account,
                                 const struct hash32 *hash)
{
    return look_for_owner(store, OWNS, account, hash);
}

enum blob_status blob_store_lends(struct blob_store *store, uint32_t account,
                                  const struct hash32 *hash)
{
    enum blob_status status = look_for_owner(store, LENDS, account, hash);
    return status == BLOB_NOT_FOUND
               ? blob_store_of_pending(store, blob_pending_for(store->pending, account, hash))
               : status;
}

enum blob_status blob_store_usage(struct blob_store *store, uint32_t account, int64_t *ret_bytes)
{
    sqlite3_stmt *statement = blob_store_fresh(store, USAGE);
    (void)sqlite3_bind_int64(statement, 1, account);
    enum blob_status status = blob_store_look_up(store, statement);
    *ret_bytes = status == BLOB_OK ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement);                     /* repeats the step's code */
    return status == BLOB_NOT_FOUND ? BLOB_OK : status; /* an account without a row has no blobs */
}

enum blob_status blob_store_find(struct blob_store *store, const struct hash32 *hash)
{
    sqlite3_stmt *statement = blob_store_fresh(store, FIND);
    blob_store_bind_hash(statement, 1, hash);
    enum blob_status status = blob_store_look_up(store, statement);
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return status;
}

/* ---------------------------------------------------------------- damage */

enum blob_health blob_store_health(struct blob_store *store, const struct hash32 *hash)
{
    char path[PATH_SIZE];
    blob_store_path(store, hash, path);
    enum blob_health health = blob_damage_look(store->damage, hash, path);
    if (health == BLOB_HEALTH_UNKNOWN) {
        (void)blob_store_sqlite_failed(store);
    } else if (health != BLOB_HEALTH_GOOD) {
        blob_damage_tell(store->damage, hash, path,
                         health == BLOB_HEALTH_LOST ? "lost, until somebody sends it again"
                                                    : "put in the place of a lost file",
                         store->error, sizeof store->error);
    }
    return health;
}

enum blob_status blob_store_look_for_damage(struct blob_store *store, const struct hash32 *hash)
{
    switch (blob_store_health(store, hash)) {
    case BLOB_HEALTH_GOOD:
        break;
    case BLOB_HEALTH_LOST:
        return BLOB_LOST;
    case BLOB_HEALTH_DOUBTED:
        return BLOB_UNCHECKED;
    case BLOB_HEALTH_UNKNOWN:
        return BLOB_FAILED;
    }
    return BLOB_OK;
}

enum blob_status blob_store_lose(struct blob_store *store, const struct hash32 *hash,
                                 const char *why)
{
    char path[PATH_SIZE];
    blob_store_path(store, hash, path);
    for (size_t i = 0; i < BLOB_HASHED_MAX; i++) {
        if (hash32_equal(&store->hashed[i].hash, hash)) {
            store->hashed[i].stamp.is_known = false;
        }
    }
    blob_damage_mark(store->damage, hash, path, why, store->error, sizeof store->error);
    return BLOB_LOST;
}

const char blob_store_wrong_bytes[] = "its bytes do not have its hash: the disk has changed them";

enum blob_status blob_store_may_read(struct blob_store *store, uint32_t account,
                                     const struct hash32 *hash)
{
    enum blob_status status = blob_store_owns(store, account, hash);
    return status == BLOB_NOT_FOUND
               ? blob_store_of_pending(store, blob_pending_for(store->pending, account, hash))
               : status;
}

enum blob_status blob_store_is_stored_by(struct blob_store *store, uint32_t account,
                                         const struct blob_lease *lease, const struct hash32 *hash)
{
    if (account == BLOB_NOBODY) {
        return blob_store_find(store, hash);
    }
    enum blob_status status = blob_store_owns(store, account, hash);
    return status == BLOB_NOT_FOUND && lease != NULL
               ? blob_store_of_pending(store,
                                       blob_pending_has(store->pending, &lease->holder, hash))
               : status;
}

/* Looks for the file of a blob that should have one. A disk that does not answer proves nothing. */
static enum blob_status look_at_file(struct blob_store *store, const struct hash32 *hash)
{
    char path[PATH_SIZE];
    struct stat file;
    sqlite3_stmt *statement = blob_store_fresh(store, FIND);
    blob_store_bind_hash(statement, 1, hash);
    enum blob_status status = blob_store_look_up(store, statement);
    const bool is_file = status == BLOB_OK && sqlite3_column_type(statement, 1) == SQLITE_NULL;
    const sqlite3_int64 size = is_file ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement); /* repeats the step's code */
    if (!is_file) {
        return status;
    }
    blob_store_path(store, hash, path);
    if (stat(path, &file) != 0) {
        return errno == ENOENT ? blob_store_lose(store, hash, strerror(ENOENT)) : BLOB_OK;
    }
    return (sqlite3_int64)file.st_size == size
               ? BLOB_OK
               : blob_store_lose(store, hash, "not as long as it was");
}

enum blob_status blob_store_has(struct blob_store *store, uint32_t account,
                                const struct blob_lease *lease, const struct hash32 *hash)
{
    enum blob_status status = blob_store_is_stored_by(store, account, lease, hash);
    if (status != BLOB_OK) {
        return status;
    }
    switch (blob_store_health(store, hash)) {
    case BLOB_HEALTH_GOOD:
        return look_at_file(store, hash);
    case BLOB_HEALTH_LOST:
    case BLOB_HEALTH_DOUBTED:
        return BLOB_NOT_FOUND; /* whoever has it may send it */
    case BLOB_HEALTH_UNKNOWN:
        break;
    }
    return BLOB_FAILED;
}

enum blob_status blob_store_checked(struct blob_store *store, const struct hash32 *hash,
                                    bool is_whole)
{
    if (!is_whole) {
        return blob_store_lose(store, hash, blob_store_wrong_bytes);
    }
    return blob_damage_mend(store->damage, hash) ? BLOB_OK : blob_store_sqlite_failed(store);
}

enum blob_sweep blob_store_sweep(struct blob_store *store, size_t *ret_removed)
{
    assert(sqlite3_get_autocommit(store->database)); /* a rollback could bring a row back */
    return blob_leftovers_sweep(store->leftovers, ret_removed);
}

struct copy_log *blob_store_copies(struct blob_store *store)
{
    return store->copies;
}

size_t blob_store_holdings(const struct blob_store *store)
{
    return blob_pending_count(store->pending);
}

struct blob_holding blob_store_holding(const struct blob_store *store, size_t index)
{
    return blob_pending_at(store->pending, index);
}
