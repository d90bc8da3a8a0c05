#include "broker/blob/blob_store.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "base/text.h"
#include "broker/blob/blob_damage.h"
#include "broker/blob/blob_leftovers.h"
#include "ledger/store/sqlite_code.h"
#include "ledger/store/wal.h"
#include "runtime/files.h"
#include "runtime/hasher.h"
#include "runtime/private_folder.h"
#include "runtime/stamp.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, HEX_SIZE = 65, WRITEBACK_BYTES = 8 << 20 };

struct partial { /* an upload in progress */
    bool is_used;
    bool is_lent; /* another thread writes the file */
    uint32_t account;
    bool is_for_lease; /* a provider stores it, for the account */
    struct blob_lease lease;
    struct hash32 hash;
    uint64_t size, stored;
    int fd;
    struct sha256 hasher;
    int64_t touched_ns;
};

enum statement {
    FIND,
    INSERT,
    REPLACE,
    OWNS,
    OWN,
    USE,
    USAGE,
    FORGET,
    BEGIN,
    COMMIT,
    ROLLBACK,
    STATEMENT_COUNT
};

static const char *const statement_texts[STATEMENT_COUNT] = {
    [FIND] = "SELECT size, bytes FROM blob WHERE hash = ?1",
    [INSERT] = "INSERT OR IGNORE INTO blob (hash, size, bytes) VALUES (?1, ?2, ?3)",
    [REPLACE] = "INSERT OR REPLACE INTO blob (hash, size, bytes) VALUES (?1, ?2, ?3)",
    [OWNS] = "SELECT 1 FROM owner WHERE account = ?1 AND hash = ?2",
    [OWN] = "INSERT INTO owner (account, hash) VALUES (?1, ?2)",
    [USE] = ("INSERT INTO usage (account, bytes) VALUES (?1, ?2) "
             "ON CONFLICT (account) DO UPDATE SET bytes = bytes + excluded.bytes"),
    [USAGE] = "SELECT bytes FROM usage WHERE account = ?1",
    [FORGET] = "DELETE FROM blob WHERE hash = ?1 AND NOT EXISTS "
               "(SELECT 1 FROM owner WHERE owner.hash = ?1)",
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
};

struct blob_store {
    char folder[PATH_SIZE - 256];
    int64_t quota_bytes, size_bytes;
    sqlite3 *database;
    struct wal wal;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    struct blob_damage *damage;
    struct blob_pending *pending;
    struct blob_leftovers *leftovers;
    struct partial partials[BLOB_PARTIALS_MAX];
    struct hashed_file {
        struct hash32 hash;
        struct stamp stamp;
    } hashed[BLOB_HASHED_MAX]; /* written and hashed by this process */
    size_t hashed_next;        /* place of the next, which is that of the oldest */
    struct hasher *hasher;     /* made with the first large chunk, by the thread that puts */
    char error[PATH_SIZE + 256];
};

static enum blob_status failed(struct blob_store *store, const char *what)
{
    int error = errno;
    (void)snprintf(store->error, sizeof store->error, "%s: %s", what, strerror(error));
    if (error == EMFILE || error == ENFILE) {
        return BLOB_TOO_MANY; /* strangers at the door may have taken the last descriptor */
    }
    return error == ENOSPC || error == EDQUOT ? BLOB_DISK_FULL : BLOB_FAILED;
}

static enum blob_status sqlite_failed(struct blob_store *store)
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

static void partial_path(const struct blob_store *store, const struct partial *partial,
                         char ret_path[PATH_SIZE])
{
    char hex[HEX_SIZE];
    text_hex(partial->hash.bytes, sizeof partial->hash.bytes, hex);
    if (partial->is_for_lease) {
        char job[2 * sizeof partial->lease.holder.job.bytes + 1];
        text_hex(partial->lease.holder.job.bytes, sizeof partial->lease.holder.job.bytes, job);
        (void)snprintf(ret_path, PATH_SIZE, "%s/partial/%u-%s-%s", store->folder,
                       partial->lease.holder.provider, job, hex); /* fits: folder */
        return;
    }
    (void)snprintf(ret_path, PATH_SIZE, "%s/partial/%u-%s", store->folder, partial->account,
                   hex); /* fits: folder */
}

static void blob_folder(const struct blob_store *store, const struct hash32 *hash,
                        char ret_path[PATH_SIZE])
{
    (void)snprintf(ret_path, PATH_SIZE, "%s/%02x", store->folder, hash->bytes[0]);
}

static void blob_path(const struct blob_store *store, const struct hash32 *hash,
                      char ret_path[PATH_SIZE])
{
    char hex[HEX_SIZE];
    text_hex(hash->bytes, sizeof hash->bytes, hex);
    (void)snprintf(ret_path, PATH_SIZE, "%s/%.2s/%s", store->folder, hex, hex);
}

/* ---------------------------------------------------------------- opening */

/* Uploads that a former broker had not finished: nobody was told that they are here. */
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
        /* owners are found by hash, too, so that what nobody owns goes */
        "CREATE INDEX IF NOT EXISTS owner_hash ON owner (hash);" BLOB_DAMAGE_SCHEMA
            BLOB_PENDING_SCHEMA;
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/blobs.db", store->folder);
    if (!wal_renew(path)) {
        problem_set(ret_problem, "%s-wal cannot be written again: %s%s", path, strerror(errno),
                    problem_advice(errno));
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
    if (store->damage == NULL || store->pending == NULL || store->leftovers == NULL) {
        problem_set(ret_problem, "%s: %s%s", path, sqlite3_errmsg(store->database),
                    sqlite_could_not(store->database)
                        ? ". " PROBLEM_TRY_AGAIN
                        : ". The ledger is whole: move the folder blobs away, put that of the "
                          "newest backup there, or none, and start again");
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
        problem_set(ret_problem, "the path of the blobs is too long");
        free(store);
        return false;
    }
    if (!private_folder(store->folder, true, ret_problem) ||
        !empty_partials(store->folder, ret_problem) || !prepare(store, ret_problem)) {
        blob_store_close(&store);
        return false;
    }
    if (config->checkpoint_pages > 0) {
        store->wal.checkpoint_pages = config->checkpoint_pages;
    }
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

static void drop_partial(struct blob_store *store, struct partial *partial)
{
    char path[PATH_SIZE];
    partial_path(store, partial, path);
    (void)close(partial->fd);
    (void)unlink(path); /* what is left is removed at the next start */
    *partial = (struct partial){0};
}

void blob_store_close(struct blob_store **self)
{
    struct blob_store *store = *self;
    if (store != NULL) {
        for (size_t i = 0; i < BLOB_PARTIALS_MAX; i++) {
            if (store->partials[i].is_used) {
                drop_partial(store, &store->partials[i]);
            }
        }
        for (int i = 0; i < STATEMENT_COUNT; i++) {
            (void)sqlite3_finalize(store->statements[i]);
        }
        blob_damage_destroy(&store->damage);
        blob_pending_destroy(&store->pending);
        blob_leftovers_destroy(&store->leftovers);
        (void)sqlite3_close(store->database); /* committed data is safe either way */
        hasher_destroy(&store->hasher);
        free(store);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- rows */

static sqlite3_stmt *fresh(struct blob_store *store, enum statement which)
{
    sqlite3_stmt *statement = store->statements[which];
    (void)sqlite3_reset(statement); /* repeats an error that was reported when it happened */
    (void)sqlite3_clear_bindings(statement);
    return statement;
}

static enum blob_status run(struct blob_store *store, sqlite3_stmt *statement)
{
    enum blob_status status =
        sqlite3_step(statement) == SQLITE_DONE ? BLOB_OK : sqlite_failed(store);
    (void)sqlite3_reset(statement);
    return status;
}

static void bind_hash(sqlite3_stmt *statement, int at, const struct hash32 *hash)
{
    (void)sqlite3_bind_blob(statement, at, hash->bytes, sizeof hash->bytes, SQLITE_STATIC);
}

enum blob_status blob_store_begin(struct blob_store *store)
{
    return run(store, fresh(store, BEGIN));
}

enum blob_status blob_store_commit(struct blob_store *store)
{
    if (sqlite3_get_autocommit(store->database)) {
        blob_leftovers_rolled_back(store->leftovers);
        (void)blob_pending_reload(store->pending); /* else it holds less than it could */
        return BLOB_DISK_FULL; /* SQLite rolled back by itself when a statement met the full disk */
    }
    enum blob_status status = run(store, fresh(store, COMMIT));
    if (status != BLOB_OK && !sqlite3_get_autocommit(store->database)) {
        (void)run(store,
                  fresh(store, ROLLBACK)); /* nothing more can be done about a failure here */
    }
    if (status != BLOB_OK) {
        blob_leftovers_rolled_back(store->leftovers);
        (void)blob_pending_reload(store->pending); /* else it holds less than it could */
    } else {
        blob_leftovers_committed(store->leftovers);
    }
    if (status == BLOB_OK && wal_checkpoint_when_due(&store->wal) != SQLITE_OK) {
        (void)sqlite_failed(store);
        return BLOB_FAILED;
    }
    return status;
}

/* Steps a query for one row: OK with the statement at it, NOT_FOUND, or FAILED. The caller
 * resets. */
static enum blob_status look_up(struct blob_store *store, sqlite3_stmt *statement)
{
    switch (sqlite3_step(statement)) {
    case SQLITE_ROW:
        return BLOB_OK;
    case SQLITE_DONE:
        return BLOB_NOT_FOUND;
    default:
        (void)sqlite_failed(store);
        return BLOB_FAILED;
    }
}

enum blob_status blob_store_owns(struct blob_store *store, uint32_t account,
                                 const struct hash32 *hash)
{
    sqlite3_stmt *statement = fresh(store, OWNS);
    (void)sqlite3_bind_int64(statement, 1, account);
    bind_hash(statement, 2, hash);
    enum blob_status status = look_up(store, statement);
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return status;
}

enum blob_status blob_store_usage(struct blob_store *store, uint32_t account, int64_t *ret_bytes)
{
    sqlite3_stmt *statement = fresh(store, USAGE);
    (void)sqlite3_bind_int64(statement, 1, account);
    enum blob_status status = look_up(store, statement);
    *ret_bytes = status == BLOB_OK ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement);                     /* repeats the step's code */
    return status == BLOB_NOT_FOUND ? BLOB_OK : status; /* it has none */
}

static enum blob_status find_blob(struct blob_store *store, const struct hash32 *hash)
{
    sqlite3_stmt *statement = fresh(store, FIND);
    bind_hash(statement, 1, hash);
    enum blob_status status = look_up(store, statement);
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return status;
}

/* ---------------------------------------------------------------- damage */

static enum blob_health health_of(struct blob_store *store, const struct hash32 *hash)
{
    char path[PATH_SIZE];
    blob_path(store, hash, path);
    enum blob_health health = blob_damage_look(store->damage, hash, path);
    if (health == BLOB_HEALTH_UNKNOWN) {
        (void)sqlite_failed(store);
    } else if (health != BLOB_HEALTH_GOOD) {
        blob_damage_tell(store->damage, hash, path,
                         health == BLOB_HEALTH_LOST ? "lost, until somebody sends it again"
                                                    : "put in the place of a lost file",
                         store->error, sizeof store->error);
    }
    return health;
}

/* BLOB_OK: nothing is known against it. */
static enum blob_status look_for_damage(struct blob_store *store, const struct hash32 *hash)
{
    switch (health_of(store, hash)) {
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

/* The blob is lost from now on. A mark that cannot be written is written when the damage is met
 * again. */
static enum blob_status lose(struct blob_store *store, const struct hash32 *hash, const char *why)
{
    char path[PATH_SIZE];
    blob_path(store, hash, path);
    for (size_t i = 0; i < BLOB_HASHED_MAX; i++) {
        if (hash32_equal(&store->hashed[i].hash, hash)) {
            store->hashed[i].stamp.is_known = false;
        }
    }
    blob_damage_mark(store->damage, hash, path, why, store->error, sizeof store->error);
    return BLOB_LOST;
}

static const char wrong_bytes[] = "its bytes do not have its hash: the disk has changed them";

static enum blob_status of_pending(struct blob_store *store, enum pending_status status)
{
    switch (status) {
    case PENDING_OK:
        return BLOB_OK;
    case PENDING_NONE:
        return BLOB_NOT_FOUND;
    case PENDING_FAILED:
        break;
    }
    return sqlite_failed(store);
}

enum blob_status blob_store_may_read(struct blob_store *store, uint32_t account,
                                     const struct hash32 *hash)
{
    enum blob_status status = blob_store_owns(store, account, hash);
    return status == BLOB_NOT_FOUND
               ? of_pending(store, blob_pending_for(store->pending, account, hash))
               : status;
}

/* The blob is stored when the account owns it, or when the provider stored it for the account. */
static enum blob_status is_stored_by(struct blob_store *store, uint32_t account,
                                     const struct blob_lease *lease, const struct hash32 *hash)
{
    enum blob_status status = blob_store_owns(store, account, hash);
    return status == BLOB_NOT_FOUND && lease != NULL
               ? of_pending(store, blob_pending_has(store->pending, &lease->holder, hash))
               : status;
}

/* Looks for the file of a blob that should have one. A disk that does not answer proves nothing. */
static enum blob_status look_at_file(struct blob_store *store, const struct hash32 *hash)
{
    char path[PATH_SIZE];
    struct stat file;
    sqlite3_stmt *statement = fresh(store, FIND);
    bind_hash(statement, 1, hash);
    enum blob_status status = look_up(store, statement);
    const bool is_file = status == BLOB_OK && sqlite3_column_type(statement, 1) == SQLITE_NULL;
    const sqlite3_int64 size = is_file ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement); /* repeats the step's code */
    if (!is_file) {
        return status;
    }
    blob_path(store, hash, path);
    if (stat(path, &file) != 0) {
        return errno == ENOENT ? lose(store, hash, strerror(ENOENT)) : BLOB_OK;
    }
    return (sqlite3_int64)file.st_size == size ? BLOB_OK
                                               : lose(store, hash, "not as long as it was");
}

enum blob_status blob_store_has(struct blob_store *store, uint32_t account,
                                const struct blob_lease *lease, const struct hash32 *hash)
{
    enum blob_status status = is_stored_by(store, account, lease, hash);
    if (status != BLOB_OK) {
        return status;
    }
    switch (health_of(store, hash)) {
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
        return lose(store, hash, wrong_bytes);
    }
    return blob_damage_mend(store->damage, hash) ? BLOB_OK : sqlite_failed(store);
}

/* ---------------------------------------------------------------- rows of what is stored */

static enum blob_status own(struct blob_store *store, uint32_t account, const struct hash32 *hash,
                            uint64_t size)
{
    sqlite3_stmt *statement = fresh(store, OWN);
    (void)sqlite3_bind_int64(statement, 1, account);
    bind_hash(statement, 2, hash);
    enum blob_status status = run(store, statement);
    if (status == BLOB_OK) {
        statement = fresh(store, USE);
        (void)sqlite3_bind_int64(statement, 1, account);
        (void)sqlite3_bind_int64(statement, 2, (sqlite3_int64)size);
        status = run(store, statement);
    }
    return status;
}

/* The row of the blob (with its bytes, or NULL for a file), its owner and what it costs him. It
 * takes the place of what was lost, which costs its owner nothing more. */
static enum blob_status insert(struct blob_store *store, uint32_t account,
                               const struct blob_lease *lease, const struct hash32 *hash,
                               uint64_t size, const uint8_t *bytes)
{
    const bool was_lost = health_of(store, hash) != BLOB_HEALTH_GOOD;
    sqlite3_stmt *statement = fresh(store, was_lost ? REPLACE : INSERT);
    bind_hash(statement, 1, hash);
    (void)sqlite3_bind_int64(statement, 2, (sqlite3_int64)size);
    if (bytes != NULL) {
        (void)sqlite3_bind_blob64(statement, 3, bytes, size, SQLITE_STATIC);
    }
    enum blob_status status = run(store, statement);
    if (status == BLOB_OK && was_lost && bytes != NULL) {
        blob_leftovers_add(store->leftovers, hash); /* of wrong bytes, if there is one */
    }
    if (status == BLOB_OK && was_lost) {
        status = blob_damage_mend(store->damage, hash) ? BLOB_OK : sqlite_failed(store);
    }
    if (status != BLOB_OK) {
        return status;
    }
    status = is_stored_by(store, account, lease, hash);
    if (status == BLOB_NOT_FOUND && lease != NULL) {
        return of_pending(store,
                          blob_pending_add(store->pending, &lease->holder, account, hash, size));
    }
    return status == BLOB_NOT_FOUND ? own(store, account, hash, size) : status;
}

enum blob_status blob_store_name(struct blob_store *store, const struct blob_holder *holder,
                                 const struct hash32 *hash)
{
    uint32_t account = 0;
    uint64_t size = 0;
    enum blob_status status =
        of_pending(store, blob_pending_take(store->pending, holder, hash, &account, &size));
    if (status == BLOB_OK) {
        status = blob_store_owns(store, account, hash);
        status = status == BLOB_NOT_FOUND ? own(store, account, hash, size) : status;
    }
    return status == BLOB_NOT_FOUND ? BLOB_OK : status; /* it was stored otherwise, or not at all */
}

/* The blob goes when nobody owns it and no other provider has stored it. */
static enum blob_status forget(struct blob_store *store, const struct hash32 *hash)
{
    enum blob_status status = of_pending(store, blob_pending_for(store->pending, UINT32_MAX, hash));
    if (status != BLOB_NOT_FOUND) {
        return status;
    }
    sqlite3_stmt *statement = fresh(store, FORGET);
    bind_hash(statement, 1, hash);
    status = run(store, statement);
    if (status == BLOB_OK && sqlite3_changes(store->database) > 0) {
        blob_leftovers_add(store->leftovers, hash);
        status = blob_damage_mend(store->damage, hash) ? BLOB_OK : sqlite_failed(store);
    }
    return status;
}

enum blob_status blob_store_drop(struct blob_store *store, const struct blob_holder *holder,
                                 size_t most)
{
    enum blob_status status = BLOB_OK;
    for (size_t i = 0; i < most && status == BLOB_OK; i++) {
        struct hash32 hash;
        uint32_t account;
        uint64_t size;
        status = of_pending(store, blob_pending_any(store->pending, holder, &hash));
        if (status == BLOB_OK) {
            status = of_pending(store,
                                blob_pending_take(store->pending, holder, &hash, &account, &size));
        }
        status = status == BLOB_OK ? forget(store, &hash) : status;
    }
    return status == BLOB_NOT_FOUND ? BLOB_OK : status;
}

enum blob_sweep blob_store_sweep(struct blob_store *store, size_t *ret_removed)
{
    assert(sqlite3_get_autocommit(store->database)); /* else a rollback could bring a row back */
    return blob_leftovers_sweep(store->leftovers, ret_removed);
}

size_t blob_store_holdings(const struct blob_store *store)
{
    return blob_pending_count(store->pending);
}

struct blob_holding blob_store_holding(const struct blob_store *store, size_t index)
{
    return blob_pending_at(store->pending, index);
}

/* ---------------------------------------------------------------- uploads */

static bool is_same_holder(const struct blob_holder *one, const struct blob_holder *other)
{
    return one->provider == other->provider && id128_equal(&one->job, &other->job);
}

/* Returns true for the account's own upload, or the provider's for the same job. */
static bool is_upload_of(const struct partial *partial, uint32_t account,
                         const struct blob_lease *lease)
{
    return partial->is_used && partial->account == account &&
           partial->is_for_lease == (lease != NULL) &&
           (lease == NULL || is_same_holder(&partial->lease.holder, &lease->holder));
}

/* Whoever sends it: the account itself, or a provider for whichever job. */
static bool is_of_sender(const struct partial *partial, uint32_t account,
                         const struct blob_lease *lease)
{
    return partial->is_used && partial->is_for_lease == (lease != NULL) &&
           (lease == NULL ? partial->account == account
                          : partial->lease.holder.provider == lease->holder.provider);
}

static struct partial *find_partial(struct blob_store *store, uint32_t account,
                                    const struct blob_lease *lease, const struct hash32 *hash)
{
    for (size_t i = 0; i < BLOB_PARTIALS_MAX; i++) {
        struct partial *partial = &store->partials[i];
        if (is_upload_of(partial, account, lease) && hash32_equal(&partial->hash, hash)) {
            return partial;
        }
    }
    return NULL;
}

/* Bytes promised to uploads that are not finished: the account's own, or the provider's for that
 * job. */
static uint64_t reserved(const struct blob_store *store, uint32_t account,
                         const struct blob_lease *lease, unsigned *ret_count)
{
    uint64_t bytes = 0;
    *ret_count = 0;
    for (size_t i = 0; i < BLOB_PARTIALS_MAX; i++) {
        if (is_upload_of(&store->partials[i], account, lease)) {
            bytes += store->partials[i].size;
            (*ret_count)++;
        }
    }
    return bytes;
}

/* A provider's blob counts against its lease, and against no quota before a result names the blob.
 * An owner whose quota is full gets no more all the same. */
static enum blob_status may_hold(const struct blob_store *store, uint32_t account,
                                 const struct blob_lease *lease, uint64_t size)
{
    unsigned count = 0;
    const struct blob_holding held = blob_pending_of(store->pending, &lease->holder);
    const uint64_t bytes = held.bytes + reserved(store, account, lease, &count);
    if (held.count + count >= lease->count_most || bytes > lease->bytes_most ||
        size > lease->bytes_most - bytes) {
        return BLOB_OVER_LEASE;
    }
    return BLOB_OK;
}

/* A lost blob that the account owns counts already. */
static enum blob_status may_store(struct blob_store *store, uint32_t account,
                                  const struct blob_lease *lease, const struct hash32 *hash,
                                  uint64_t size)
{
    unsigned count = 0;
    int64_t usage = 0;
    if (size > (uint64_t)store->size_bytes) {
        return BLOB_TOO_LARGE;
    }
    enum blob_status status = is_stored_by(store, account, lease, hash);
    if (status != BLOB_NOT_FOUND) {
        return status;
    }
    status = blob_store_usage(store, account, &usage);
    if (status != BLOB_OK) {
        return status;
    }
    uint64_t taken = (uint64_t)usage + reserved(store, account, NULL, &count);
    if (taken > (uint64_t)store->quota_bytes || size > (uint64_t)store->quota_bytes - taken) {
        return BLOB_OVER_QUOTA;
    }
    return lease == NULL ? BLOB_OK : may_hold(store, account, lease, size);
}

static enum blob_status open_partial(struct blob_store *store, uint32_t account,
                                     const struct blob_lease *lease, const struct hash32 *hash,
                                     uint64_t size, struct partial **ret_partial)
{
    unsigned count = 0;
    struct partial *place = NULL;
    for (size_t i = 0; i < BLOB_PARTIALS_MAX; i++) {
        place = store->partials[i].is_used ? place : &store->partials[i];
        count += is_of_sender(&store->partials[i], account, lease);
    }
    if (place == NULL || count >= BLOB_PARTIALS_PER_ACCOUNT) {
        return BLOB_TOO_MANY;
    }
    struct partial partial = {
        .is_used = true, .account = account, .hash = *hash, .size = size, .fd = -1};
    if (lease != NULL) {
        partial.is_for_lease = true;
        partial.lease = *lease;
    }
    char path[PATH_SIZE];
    partial_path(store, &partial, path);
    partial.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (partial.fd < 0) {
        return failed(store, path);
    }
    sha256_start(&partial.hasher);
    *place = partial;
    *ret_partial = place;
    return BLOB_OK;
}

/* The disk gets what is there while the rest is still on its way, so that at the end fsync has
 * little to wait for. */
static void begin_writeback(const struct partial *partial, size_t length)
{
    uint64_t before = partial->stored - partial->stored % WRITEBACK_BYTES;
    uint64_t after = partial->stored + length;
    after -= after % WRITEBACK_BYTES;
    if (after > before) { /* a hint: what fails is told by fsync */
        (void)sync_file_range(partial->fd, (off_t)before, (off_t)(after - before),
                              SYNC_FILE_RANGE_WRITE);
    }
}

/* A failed fsync is the end, whatever its reason (P11). */
static enum blob_status sync_failed(struct blob_store *store, const char *path)
{
    (void)failed(store, path);
    return BLOB_FAILED;
}

static enum blob_status sync_folder(struct blob_store *store, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return failed(store, path);
    }
    enum blob_status status = fsync(fd) == 0 ? BLOB_OK : sync_failed(store, path);
    (void)close(fd);
    return status;
}

/* The folder of a blob, durable before anything is in it. */
static enum blob_status make_folder(struct blob_store *store, const char *path)
{
    if (mkdir(path, 0700) != 0) {
        return errno == EEXIST ? BLOB_OK : failed(store, path);
    }
    enum blob_status status = sync_folder(store, store->folder);
    if (status != BLOB_OK) {
        (void)rmdir(path); /* else the next one would believe it durable */
    }
    return status;
}

/* Notes how the file looks under its own name; nothing changes the file after that. */
static void note_hashed(struct blob_store *store, const struct partial *partial)
{
    struct hashed_file *file = &store->hashed[store->hashed_next];
    store->hashed_next = (store->hashed_next + 1) % BLOB_HASHED_MAX;
    file->hash = partial->hash;
    (void)stamp_take(partial->fd, &file->stamp); /* else nothing is known of it */
}

static bool looks_as_hashed(const struct blob_store *store, const struct hash32 *hash, int fd)
{
    bool found = false;
    for (size_t i = 0; i < BLOB_HASHED_MAX && !found; i++) {
        const struct hashed_file *file = &store->hashed[i];
        found = file->stamp.is_known && hash32_equal(&file->hash, hash) &&
                !stamp_has_changed(&file->stamp, fd);
    }
    return found;
}

/* Moves a file from partial/ to its own name: bytes, then name, then folder become durable. */
static enum blob_status move_in(struct blob_store *store, const struct partial *partial)
{
    char from[PATH_SIZE];
    char to[PATH_SIZE];
    char folder[PATH_SIZE];
    partial_path(store, partial, from);
    blob_path(store, &partial->hash, to);
    blob_folder(store, &partial->hash, folder);
    enum blob_status status = make_folder(store, folder);
    if (status != BLOB_OK) {
        return status;
    }
    if (fsync(partial->fd) != 0) {
        return sync_failed(store, from);
    }
    if (rename(from, to) != 0) {
        return failed(store, to);
    }
    note_hashed(store, partial);
    return sync_folder(store, folder);
}

static bool is_right(struct partial *partial)
{
    struct hash32 hash = sha256_end(&partial->hasher);
    return hash32_equal(&hash, &partial->hash);
}

static enum blob_status finish(struct blob_store *store, struct partial *partial, bool has_hash)
{
    enum blob_status status = has_hash ? find_blob(store, &partial->hash) : BLOB_WRONG_HASH;
    if (status == BLOB_OK && health_of(store, &partial->hash) != BLOB_HEALTH_GOOD) {
        status = BLOB_NOT_FOUND; /* the right bytes take the place of the others */
    }
    status = status == BLOB_NOT_FOUND ? move_in(store, partial) : status;
    if (status == BLOB_OK) {
        status = insert(store, partial->account, partial->is_for_lease ? &partial->lease : NULL,
                        &partial->hash, partial->size, NULL);
    }
    drop_partial(store, partial); /* its file has its own name by now, or is not wanted */
    return status;
}

/* Hashed while it is written. */
static enum blob_status take_chunk(struct blob_store *store, struct partial *partial,
                                   const struct blob_chunk *chunk)
{
    if (store->hasher == NULL && chunk->length >= HASHER_LEAST_BYTES) {
        store->hasher = hasher_create();
    }
    hasher_begin(store->hasher, &partial->hasher, chunk->data, chunk->length);
    bool is_written = file_write_at(partial->fd, chunk->data, chunk->length, chunk->offset);
    int error = errno;
    hasher_finish(store->hasher);
    errno = error;
    return is_written ? BLOB_OK : failed(store, "an upload could not be written");
}

static enum blob_status append(struct blob_store *store, const struct blob_chunk *chunk,
                               int64_t now_ns, uint64_t *ret_stored, bool *ret_complete)
{
    struct partial *partial = find_partial(store, chunk->account, chunk->lease, &chunk->hash);
    uint64_t stored = partial == NULL ? 0 : partial->stored;
    if (partial != NULL && partial->is_lent) {
        return BLOB_TOO_MANY; /* it will be here, or not be lent any more */
    }
    if (chunk->offset != stored || (partial != NULL && partial->size != chunk->size)) {
        *ret_stored = stored;
        return BLOB_WRONG_OFFSET;
    }
    if (partial == NULL) {
        enum blob_status status =
            may_store(store, chunk->account, chunk->lease, &chunk->hash, chunk->size);
        status = status == BLOB_OK ? open_partial(store, chunk->account, chunk->lease, &chunk->hash,
                                                  chunk->size, &partial)
                                   : status;
        if (status != BLOB_OK) {
            return status;
        }
    }
    enum blob_status status = take_chunk(store, partial, chunk);
    if (status != BLOB_OK) {
        drop_partial(store, partial);
        return status;
    }
    begin_writeback(partial, chunk->length);
    partial->stored += chunk->length;
    partial->touched_ns = now_ns;
    *ret_stored = partial->stored;
    *ret_complete = partial->stored == partial->size;
    return *ret_complete ? finish(store, partial, is_right(partial)) : BLOB_OK;
}

static enum blob_status put_whole(struct blob_store *store, const struct blob_chunk *chunk)
{
    struct hash32 hash = sha256_of(chunk->data, chunk->length);
    if (!hash32_equal(&hash, &chunk->hash)) {
        return BLOB_WRONG_HASH;
    }
    enum blob_status status =
        may_store(store, chunk->account, chunk->lease, &chunk->hash, chunk->size);
    static const uint8_t nothing;
    return status == BLOB_OK ? insert(store, chunk->account, chunk->lease, &hash, chunk->size,
                                      chunk->length == 0 ? &nothing : chunk->data)
                             : status;
}

enum blob_status blob_store_put(struct blob_store *store, const struct blob_chunk *chunk,
                                int64_t now_ns, uint64_t *ret_stored, bool *ret_complete)
{
    *ret_stored = 0;
    *ret_complete = false;
    if (chunk->size > INT64_MAX || chunk->offset > chunk->size ||
        chunk->length > chunk->size - chunk->offset) {
        return BLOB_MALFORMED;
    }
    enum blob_status owned = blob_store_has(store, chunk->account, chunk->lease, &chunk->hash);
    if (owned == BLOB_FAILED) {
        return owned;
    }
    if (owned == BLOB_OK) {
        *ret_stored = chunk->size;
        *ret_complete = true;
        return BLOB_OK;
    }
    bool is_whole = chunk->offset == 0 && chunk->length == chunk->size;
    if (is_whole && chunk->size <= BLOB_ROW_BYTES) {
        enum blob_status status = put_whole(store, chunk);
        *ret_complete = status == BLOB_OK;
        *ret_stored = *ret_complete ? chunk->size : 0;
        return status;
    }
    if (chunk->length == 0) {
        return BLOB_MALFORMED; /* a chunk without bytes would never end */
    }
    return append(store, chunk, now_ns, ret_stored, ret_complete);
}

enum blob_status blob_store_lend(struct blob_store *store, uint32_t account,
                                 const struct blob_lease *lease, const struct hash32 *hash,
                                 uint64_t size, size_t *ret_upload, int *ret_fd)
{
    struct partial *partial = NULL;
    if (find_partial(store, account, lease, hash) != NULL) {
        return BLOB_TOO_MANY;
    }
    enum blob_status status =
        size > INT64_MAX ? BLOB_MALFORMED : may_store(store, account, lease, hash, size);
    status = status == BLOB_OK ? open_partial(store, account, lease, hash, size, &partial) : status;
    if (status == BLOB_OK) {
        partial->is_lent = true;
        *ret_upload = (size_t)(partial - store->partials);
        *ret_fd = partial->fd;
    }
    return status;
}

enum blob_status blob_store_take_back(struct blob_store *store, size_t upload, bool is_whole)
{
    assert(upload < BLOB_PARTIALS_MAX);
    struct partial *partial = &store->partials[upload];
    assert(partial->is_lent);
    return finish(store, partial, is_whole);
}

void blob_store_expire(struct blob_store *store, int64_t now_ns)
{
    for (size_t i = 0; i < BLOB_PARTIALS_MAX; i++) {
        struct partial *partial = &store->partials[i];
        if (partial->is_used && !partial->is_lent &&
            now_ns - partial->touched_ns > BLOB_PARTIAL_IDLE_S * NS_PER_S) {
            drop_partial(store, partial);
        }
    }
}

/* ---------------------------------------------------------------- reading */

static enum blob_status read_file(struct blob_store *store, const struct hash32 *hash,
                                  uint64_t offset, size_t length, uint8_t *ret_data)
{
    char path[PATH_SIZE];
    blob_path(store, hash, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT ? lose(store, hash, strerror(ENOENT)) : failed(store, path);
    }
    enum blob_status status = BLOB_OK;
    while (length > 0 && status == BLOB_OK) {
        ssize_t got = pread(fd, ret_data, length, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            status = got == 0 ? lose(store, hash, "shorter than it was") : failed(store, path);
            break;
        }
        ret_data += got;
        length -= (size_t)got;
        offset += (uint64_t)got;
    }
    (void)close(fd); /* only read */
    return status;
}

enum blob_status blob_store_file(struct blob_store *store, const struct hash32 *hash, int *ret_fd,
                                 bool *ret_is_hashed)
{
    char path[PATH_SIZE];
    *ret_fd = -1;
    *ret_is_hashed = false;
    enum blob_status status = look_for_damage(store, hash);
    if (status != BLOB_OK && status != BLOB_UNCHECKED) {
        return status;
    }
    blob_path(store, hash, path);
    *ret_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (*ret_fd < 0) {
        return errno == ENOENT ? lose(store, hash, strerror(ENOENT)) : failed(store, path);
    }
    *ret_is_hashed = looks_as_hashed(store, hash, *ret_fd);
    return status;
}

/* A row's bytes are all hashed, whatever is wanted of them. */
static bool copy_row(sqlite3_stmt *row, const struct hash32 *hash, uint64_t size, uint64_t offset,
                     size_t length, uint8_t *ret_data)
{
    const uint8_t *bytes = sqlite3_column_blob(row, 1);
    const size_t count = (size_t)sqlite3_column_bytes(row, 1);
    const struct hash32 found = sha256_of(bytes, count);
    if (count != size || !hash32_equal(&found, hash)) {
        return false;
    }
    memcpy(ret_data, bytes + offset, length);
    return true;
}

static enum blob_status get_from_file(struct blob_store *store, const struct hash32 *hash,
                                      uint64_t offset, size_t length, uint64_t size,
                                      uint8_t *ret_data)
{
    enum blob_status status = read_file(store, hash, offset, length, ret_data);
    if (status == BLOB_OK &&
        !blob_damage_read(store->damage, hash, offset, ret_data, length, size)) {
        status = lose(store, hash, wrong_bytes);
    }
    return status;
}

enum blob_status blob_store_get(struct blob_store *store, const struct hash32 *hash,
                                uint64_t offset, size_t length, uint8_t *ret_data,
                                size_t *ret_length, uint64_t *ret_size)
{
    sqlite3_stmt *statement = fresh(store, FIND);
    bind_hash(statement, 1, hash);
    enum blob_status status = look_up(store, statement);
    if (status != BLOB_OK) {
        (void)sqlite3_reset(statement); /* repeats the step's code */
        return status;
    }
    const uint64_t size = (uint64_t)sqlite3_column_int64(statement, 0);
    const bool is_file = sqlite3_column_type(statement, 1) == SQLITE_NULL;
    const size_t count = offset > size            ? 0
                         : length < size - offset ? length
                                                  : (size_t)(size - offset);
    const bool is_right =
        count == 0 || is_file || copy_row(statement, hash, size, offset, count, ret_data);
    (void)sqlite3_reset(statement);
    *ret_length = count;
    *ret_size = size;
    status = is_right ? look_for_damage(store, hash) : lose(store, hash, wrong_bytes);
    if (status == BLOB_OK && offset > size) {
        return BLOB_WRONG_OFFSET;
    }
    return status == BLOB_OK && count > 0 && is_file
               ? get_from_file(store, hash, offset, count, size, ret_data)
               : status;
}
