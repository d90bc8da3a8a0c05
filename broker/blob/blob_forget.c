#include "broker/blob/blob_forget.h"

#include "broker/blob/blob_store_internal.h"

enum blob_status blob_forget_note(struct blob_store *store, const struct forgotten_job *job)
{
    sqlite3_stmt *statement = blob_store_fresh(store, NOTE_FORGOTTEN);
    (void)sqlite3_bind_blob(statement, 1, job->job.bytes, sizeof job->job.bytes, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 2, job->account);
    (void)sqlite3_bind_int64(statement, 3, job->at_ms);
    (void)sqlite3_bind_int64(statement, 4, job->reason);
    (void)sqlite3_bind_int64(statement, 5, job->state);
    const enum blob_status status = blob_store_run(store, statement);
    const struct copy_facts facts = {.job = job->job,
                                     .account = job->account,
                                     .at_ms = job->at_ms,
                                     .reason = (uint8_t)job->reason,
                                     .state = (uint8_t)job->state};
    return status != BLOB_OK || copy_log_note(store->copies, COPY_FORGOTTEN, &facts)
               ? status
               : blob_store_sqlite_failed(store);
}

bool blob_forget_has(struct blob_store *store, const struct id128 *job)
{
    sqlite3_stmt *statement = blob_store_fresh(store, FIND_FORGOTTEN);
    (void)sqlite3_bind_blob(statement, 1, job->bytes, sizeof job->bytes, SQLITE_STATIC);
    const bool has = blob_store_look_up(store, statement) == BLOB_OK;
    (void)sqlite3_reset(statement); /* repeats the step's code */
    return has;
}

enum blob_status blob_forget_condemn(struct blob_store *store, uint32_t account,
                                     const struct hash32 *hash, int64_t now_s, uint64_t *ret_bytes)
{
    uint64_t size = 0;
    enum blob_status status = blob_store_owns(store, account, hash);
    *ret_bytes = 0;
    if (status != BLOB_OK) {
        return status == BLOB_NOT_FOUND ? BLOB_OK : status;
    }
    status = blob_store_size(store, hash, &size); /* a blob without a row counts nothing */
    if (status != BLOB_OK && status != BLOB_NOT_FOUND) {
        return status;
    }
    sqlite3_stmt *statement = blob_store_fresh(store, CONDEMN);
    (void)sqlite3_bind_int64(statement, 1, account);
    blob_store_bind_hash(statement, 2, hash);
    (void)sqlite3_bind_int64(statement, 3, now_s);
    status = blob_store_run(store, statement);
    status = status == BLOB_OK ? blob_store_use(store, account, -(int64_t)size) : status;
    status = status == BLOB_OK ? blob_store_note_owner(store, account, hash, size, now_s) : status;
    *ret_bytes = status == BLOB_OK ? size : 0;
    return status;
}

/* Takes the blob from the condemned ones; *ret_was_there says whether it was one. */
static enum blob_status take(struct blob_store *store, uint32_t account, const struct hash32 *hash,
                             bool *ret_was_there)
{
    const enum blob_status status = blob_store_change(store, SPARE, account, hash);
    *ret_was_there = status == BLOB_OK && sqlite3_changes(store->database) > 0;
    return status;
}

enum blob_status blob_forget_spare(struct blob_store *store, uint32_t account,
                                   const struct hash32 *hash)
{
    bool was_there;
    uint64_t size = 0;
    enum blob_status status = take(store, account, hash, &was_there);
    if (status != BLOB_OK || !was_there) {
        return status;
    }
    status = blob_store_size(store, hash, &size);
    if (status != BLOB_OK) {
        return status == BLOB_NOT_FOUND ? BLOB_OK : status;
    }
    status = blob_store_use(store, account, (int64_t)size);
    return status == BLOB_OK ? blob_store_note_owner(store, account, hash, size, 0) : status;
}

enum blob_status blob_forget_remove(struct blob_store *store, uint32_t account,
                                    const struct hash32 *hash, uint64_t *ret_bytes)
{
    bool was_there;
    uint64_t size = 0;
    *ret_bytes = 0;
    enum blob_status status = take(store, account, hash, &was_there);
    if (status != BLOB_OK || !was_there) {
        return status;
    }
    status = blob_store_size(store, hash, &size);
    if (status == BLOB_OK || status == BLOB_NOT_FOUND) {
        status = blob_store_change(store, DISOWN, account, hash);
    }
    status = status == BLOB_OK ? blob_store_drop_unowned(store, hash) : status;
    status = status == BLOB_OK ? blob_store_note_disowned(store, account, hash) : status;
    if (status == BLOB_OK && blob_store_find(store, hash) == BLOB_NOT_FOUND) {
        *ret_bytes = size;
    }
    return status;
}
