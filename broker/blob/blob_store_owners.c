/* This file records which blobs the store has, and which accounts own them. */
#include "broker/blob/blob_store.h"

#include "broker/blob/blob_damage.h"
#include "broker/blob/blob_leftovers.h"
#include "broker/blob/blob_store_internal.h"
#include "broker/copies/copy_log.h"

#include <sqlite3.h>
#include <sys/stat.h>

enum blob_status blob_store_change(struct blob_store *store, enum statement which, uint32_t account,
                                   const struct hash32 *hash)
{
    sqlite3_stmt *statement = blob_store_fresh(store, which);
    (void)sqlite3_bind_int64(statement, 1, account);
    blob_store_bind_hash(statement, 2, hash);
    return blob_store_run(store, statement);
}

enum blob_status blob_store_use(struct blob_store *store, uint32_t account, int64_t bytes)
{
    sqlite3_stmt *statement = blob_store_fresh(store, USE);
    (void)sqlite3_bind_int64(statement, 1, account);
    (void)sqlite3_bind_int64(statement, 2, bytes);
    return blob_store_run(store, statement);
}

static enum blob_status note(struct blob_store *store, enum copy_kind kind,
                             const struct copy_facts *facts)
{
    return copy_log_note(store->copies, kind, facts) ? BLOB_OK : blob_store_sqlite_failed(store);
}

enum blob_status blob_store_note_owner(struct blob_store *store, uint32_t account,
                                       const struct hash32 *hash, uint64_t size, int64_t since_s)
{
    const struct copy_facts facts = {
        .account = account, .hash = *hash, .size = size, .since_s = since_s};
    return note(store, COPY_OWNER, &facts);
}

enum blob_status blob_store_note_disowned(struct blob_store *store, uint32_t account,
                                          const struct hash32 *hash)
{
    const struct copy_facts facts = {.account = account, .hash = *hash, .is_gone = true};
    return note(store, COPY_OWNER, &facts);
}

static enum blob_status note_pending(struct blob_store *store, const struct blob_holder *holder,
                                     uint32_t account, const struct hash32 *hash, uint64_t size)
{
    const struct copy_facts facts = {.provider = holder->provider,
                                     .job = holder->job,
                                     .account = account,
                                     .hash = *hash,
                                     .size = size};
    return note(store, COPY_PENDING, &facts);
}

static enum blob_status note_released(struct blob_store *store, const struct blob_holder *holder,
                                      const struct hash32 *hash)
{
    const struct copy_facts facts = {
        .provider = holder->provider, .job = holder->job, .hash = *hash, .is_gone = true};
    return note(store, COPY_PENDING, &facts);
}

/* Makes the account an owner of the blob. An account that forgot the blob, and owns it again, keeps
 * it (SPARE). */
static enum blob_status own(struct blob_store *store, uint32_t account, const struct hash32 *hash,
                            uint64_t size)
{
    enum blob_status status = blob_store_change(store, OWN, account, hash);
    status = status == BLOB_OK ? blob_store_change(store, SPARE, account, hash) : status;
    status = status == BLOB_OK ? blob_store_use(store, account, (int64_t)size) : status;
    return status == BLOB_OK ? blob_store_note_owner(store, account, hash, size, 0) : status;
}

/* Notes once more who has the blob, so that brokers that lack its bytes take them now. */
static enum blob_status note_again(struct blob_store *store, uint32_t account,
                                   const struct blob_lease *lease, const struct hash32 *hash,
                                   uint64_t size)
{
    if (account == BLOB_NOBODY) {
        return BLOB_OK;
    }
    return lease != NULL && blob_store_owns(store, account, hash) == BLOB_NOT_FOUND
               ? note_pending(store, &lease->holder, account, hash, size)
               : blob_store_note_owner(store, account, hash, size, 0);
}

enum blob_status blob_store_insert(struct blob_store *store, uint32_t account,
                                   const struct blob_lease *lease, const struct hash32 *hash,
                                   uint64_t size, const uint8_t *bytes)
{
    const bool was_lost = blob_store_health(store, hash) != BLOB_HEALTH_GOOD;
    sqlite3_stmt *statement = blob_store_fresh(store, was_lost ? REPLACE : INSERT);
    blob_store_bind_hash(statement, 1, hash);
    (void)sqlite3_bind_int64(statement, 2, (sqlite3_int64)size);
    if (bytes != NULL) {
        (void)sqlite3_bind_blob64(statement, 3, bytes, size, SQLITE_STATIC);
    }
    enum blob_status status = blob_store_run(store, statement);
    if (status == BLOB_OK && was_lost && bytes != NULL) {
        blob_leftovers_add(store->leftovers, hash); /* a file of wrong bytes may be there */
    }
    if (status == BLOB_OK && was_lost) {
        status = blob_damage_mend(store->damage, hash) ? BLOB_OK : blob_store_sqlite_failed(store);
    }
    if (status != BLOB_OK) {
        return status;
    }
    status = blob_store_is_stored_by(store, account, lease, hash);
    if (status == BLOB_OK && was_lost) {
        return note_again(store, account, lease, hash, size);
    }
    if (status == BLOB_NOT_FOUND && lease != NULL) {
        return blob_store_hold(store, &lease->holder, account, hash, size);
    }
    return status == BLOB_NOT_FOUND ? own(store, account, hash, size) : status;
}

enum blob_status blob_store_hold(struct blob_store *store, const struct blob_holder *holder,
                                 uint32_t account, const struct hash32 *hash, uint64_t size)
{
    enum blob_status status =
        blob_store_of_pending(store, blob_pending_has(store->pending, holder, hash));
    if (status != BLOB_NOT_FOUND) {
        return status;
    }
    status =
        blob_store_of_pending(store, blob_pending_add(store->pending, holder, account, hash, size));
    return status == BLOB_OK ? note_pending(store, holder, account, hash, size) : status;
}

enum blob_status blob_store_release(struct blob_store *store, const struct blob_holder *holder,
                                    const struct hash32 *hash)
{
    uint32_t account;
    uint64_t size;
    enum blob_status status = blob_store_of_pending(
        store, blob_pending_take(store->pending, holder, hash, &account, &size));
    status = status == BLOB_OK ? blob_store_drop_unowned(store, hash) : status;
    status = status == BLOB_OK ? note_released(store, holder, hash) : status;
    return status == BLOB_NOT_FOUND ? BLOB_OK : status;
}

enum blob_status blob_store_name(struct blob_store *store, const struct blob_holder *holder,
                                 const struct hash32 *hash)
{
    uint32_t account = 0;
    uint64_t size = 0;
    enum blob_status status = blob_store_of_pending(
        store, blob_pending_take(store->pending, holder, hash, &account, &size));
    if (status == BLOB_OK) {
        status = blob_store_owns(store, account, hash);
        status = status == BLOB_NOT_FOUND ? own(store, account, hash, size) : status;
        /* The new owner is noted first, so that no broker drops the bytes in between. */
        status = status == BLOB_OK ? note_released(store, holder, hash) : status;
    }
    /* A blob that is not pending has an owner already, or is not stored. */
    return status == BLOB_NOT_FOUND ? BLOB_OK : status;
}

bool blob_store_has_file(const struct blob_store *store, const struct hash32 *hash,
                         uint64_t *ret_size)
{
    char path[PATH_SIZE];
    struct stat file;
    blob_store_path(store, hash, path);
    if (lstat(path, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size <= BLOB_ROW_BYTES) {
        return false;
    }
    *ret_size = (uint64_t)file.st_size;
    return true;
}

enum blob_status blob_store_adopt(struct blob_store *store, const struct hash32 *hash,
                                  uint64_t size)
{
    sqlite3_stmt *statement = blob_store_fresh(store, INSERT);
    blob_store_bind_hash(statement, 1, hash);
    (void)sqlite3_bind_int64(statement, 2, (sqlite3_int64)size);
    const enum blob_status status = blob_store_run(store, statement);
    return status != BLOB_OK || blob_damage_doubt(store->damage, hash)
               ? status
               : blob_store_sqlite_failed(store);
}

enum blob_status blob_store_size(struct blob_store *store, const struct hash32 *hash,
                                 uint64_t *ret_size)
{
    sqlite3_stmt *statement = blob_store_fresh(store, FIND);
    blob_store_bind_hash(statement, 1, hash);
    const enum blob_status status = blob_store_look_up(store, statement);
    *ret_size = status == BLOB_OK ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return status;
}

enum blob_status blob_store_give(struct blob_store *store, uint32_t account,
                                 const struct hash32 *hash)
{
    uint64_t size;
    enum blob_status status = blob_store_owns(store, account, hash);
    if (status != BLOB_NOT_FOUND) {
        return status;
    }
    status = blob_store_size(store, hash, &size);
    return status == BLOB_OK ? own(store, account, hash, size) : status;
}

enum blob_status blob_store_drop_unowned(struct blob_store *store, const struct hash32 *hash)
{
    enum blob_status status =
        blob_store_of_pending(store, blob_pending_for(store->pending, UINT32_MAX, hash));
    if (status != BLOB_NOT_FOUND) {
        return status;
    }
    sqlite3_stmt *statement = blob_store_fresh(store, FORGET);
    blob_store_bind_hash(statement, 1, hash);
    status = blob_store_run(store, statement);
    if (status == BLOB_OK && sqlite3_changes(store->database) > 0) {
        blob_leftovers_add(store->leftovers, hash);
        status = blob_damage_mend(store->damage, hash) ? BLOB_OK : blob_store_sqlite_failed(store);
    }
    return status;
}

enum blob_status blob_store_drop(struct blob_store *store, const struct blob_holder *holder,
                                 size_t most)
{
    enum blob_status status = BLOB_OK;
    for (size_t i = 0; i < most && status == BLOB_OK; i++) {
        struct hash32 hash;
        status = blob_store_of_pending(store, blob_pending_any(store->pending, holder, &hash));
        status = status == BLOB_OK ? blob_store_release(store, holder, &hash) : status;
    }
    return status == BLOB_NOT_FOUND ? BLOB_OK : status;
}
