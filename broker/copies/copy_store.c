#include "broker/copies/copy_store.h"

#include "base/checked.h"
#include "broker/blob/blob_forget.h"
#include "broker/blob/blob_store_internal.h"
#include "broker/copies/copy_log.h"
#include "runtime/clock.h"

#include <sqlite3.h>
#include <string.h>

static enum blob_status status_of(struct blob_store *store, bool good)
{
    return good ? BLOB_OK : blob_store_sqlite_failed(store);
}

enum blob_status copy_store_begin(struct blob_store *store, uint64_t epoch)
{
    struct copy_log *log = store->copies;
    enum blob_status status = blob_store_begin(store);
    copy_log_set_time(log, clock_wall_ns() / NS_PER_S);
    if (status == BLOB_OK) {
        const bool good = epoch == 0            ? copy_log_be_alone(log)
                          : epoch == UINT64_MAX ? copy_log_follow(log)
                                                : copy_log_lead(log, epoch);
        status = status_of(store, good);
    }
    if (status != BLOB_OK) {
        blob_store_undo(store);
        return status;
    }
    return blob_store_commit(store);
}

bool copy_store_names_blob(const struct copy_change *change, struct copy_facts *ret_facts)
{
    return copy_change_read(change, ret_facts) && !ret_facts->is_gone &&
           (change->kind == COPY_OWNER || change->kind == COPY_PENDING);
}

bool copy_store_lacks(struct blob_store *store, const struct hash32 *hash)
{
    return blob_store_has(store, BLOB_NOBODY, NULL, hash) != BLOB_OK;
}

/* ---------------------------------------------------------------- rows */

/* Gives a blob whose bytes did not come a row. The blob is lost until somebody brings it. */
static enum blob_status expect(struct blob_store *store, const struct copy_facts *facts)
{
    const enum blob_status status = blob_store_find(store, &facts->hash);
    return status == BLOB_NOT_FOUND ? blob_store_adopt(store, &facts->hash, facts->size) : status;
}

static enum blob_status disown(struct blob_store *store, const struct copy_facts *facts)
{
    uint64_t bytes = 0;
    const enum blob_status status =
        blob_forget_condemn(store, facts->account, &facts->hash, 1, &bytes);
    return status == BLOB_OK ? blob_forget_remove(store, facts->account, &facts->hash, &bytes)
                             : status;
}

static enum blob_status apply_owner(struct blob_store *store, const struct copy_facts *facts)
{
    if (facts->is_gone) {
        return disown(store, facts);
    }
    uint64_t bytes = 0;
    enum blob_status status = expect(store, facts);
    status = status == BLOB_OK ? blob_store_give(store, facts->account, &facts->hash) : status;
    return status == BLOB_OK && facts->since_s > 0
               ? blob_forget_condemn(store, facts->account, &facts->hash, facts->since_s, &bytes)
               : status;
}

static enum blob_status apply_pending(struct blob_store *store, const struct copy_facts *facts)
{
    const struct blob_holder holder = {.provider = facts->provider, .job = facts->job};
    if (facts->is_gone) {
        return blob_store_release(store, &holder, &facts->hash);
    }
    const enum blob_status status = expect(store, facts);
    return status == BLOB_OK
               ? blob_store_hold(store, &holder, facts->account, &facts->hash, facts->size)
               : status;
}

static enum blob_status apply_forgotten(struct blob_store *store, const struct copy_facts *facts)
{
    const struct forgotten_job job = {.job = facts->job,
                                      .account = facts->account,
                                      .at_ms = facts->at_ms,
                                      .reason = (enum forget_reason)facts->reason,
                                      .state = (enum forget_state)facts->state};
    return facts->is_gone ? BLOB_OK : blob_forget_note(store, &job);
}

static enum blob_status apply(struct blob_store *store, enum copy_kind kind,
                              const struct copy_facts *facts)
{
    enum blob_status status = BLOB_OK;
    copy_log_silence(store->copies, true);
    switch (kind) {
    case COPY_OWNER:
        status = apply_owner(store, facts);
        break;
    case COPY_PENDING:
        status = apply_pending(store, facts);
        break;
    case COPY_FORGOTTEN:
        status = apply_forgotten(store, facts);
        break;
    case COPY_REIGN:
        break;
    }
    copy_log_silence(store->copies, false);
    return status;
}

/* ---------------------------------------------------------------- versions */

enum blob_status copy_store_take(struct blob_store *store, const struct copy_change *change)
{
    struct copy_facts facts;
    uint64_t version = 0;
    uint64_t stamp = 0;
    enum blob_status status = BLOB_OK;
    if (!copy_change_read(change, &facts)) {
        return BLOB_OK; /* a leader of a later release may know more kinds */
    }
    if (!copy_log_find(store->copies, change, &version, &stamp)) {
        return blob_store_sqlite_failed(store);
    }
    const bool is_ordered = copy_version_epoch(stamp) > 0;
    if (is_ordered &&
        (stamp > change->stamp || (stamp == change->stamp && version >= change->version))) {
        return BLOB_OK;
    }
    if (!is_ordered || stamp != change->stamp) {
        status = apply(store, change->kind, &facts);
    }
    return status == BLOB_OK ? status_of(store, copy_log_take(store->copies, change)) : status;
}

enum blob_status copy_store_accept(struct blob_store *store, const struct copy_change *offer,
                                   bool *ret_is_news)
{
    struct copy_facts facts;
    uint64_t version = 0;
    uint64_t stamp = 0;
    *ret_is_news = false;
    if (!copy_change_read(offer, &facts) || offer->kind == COPY_REIGN ||
        copy_version_epoch(offer->stamp) >= copy_log_epoch(store->copies)) {
        return BLOB_OK;
    }
    if (!copy_log_find(store->copies, offer, &version, &stamp)) {
        return blob_store_sqlite_failed(store);
    }
    /* Stamps of epoch 0 are of tables that no leader had written: they are not ordered. */
    if (version != 0 && (stamp >= offer->stamp || copy_version_epoch(offer->stamp) == 0)) {
        return BLOB_OK;
    }
    *ret_is_news = true;
    const enum blob_status status = apply(store, offer->kind, &facts);
    return status == BLOB_OK ? status_of(store, copy_log_note_late(store->copies, offer)) : status;
}

enum blob_status copy_store_begin_anew(struct blob_store *store)
{
    if (!copy_log_begin_anew(store->copies)) {
        return blob_store_sqlite_failed(store);
    }
    return blob_store_of_pending(store, blob_pending_reload(store->pending));
}

enum blob_status copy_store_sweep(struct blob_store *store, size_t most, size_t *ret_removed)
{
    static const char select[] =
        "SELECT hash FROM blob WHERE NOT EXISTS (SELECT 1 FROM owner WHERE owner.hash = blob.hash) "
        "AND NOT EXISTS (SELECT 1 FROM pending WHERE pending.hash = blob.hash) LIMIT 1";
    sqlite3_stmt *row = NULL;
    enum blob_status status = BLOB_OK;
    *ret_removed = 0;
    if (sqlite3_prepare_v2(store->database, select, -1, &row, NULL) != SQLITE_OK) {
        return blob_store_sqlite_failed(store);
    }
    while (status == BLOB_OK && *ret_removed < most && sqlite3_step(row) == SQLITE_ROW &&
           sqlite3_column_bytes(row, 0) == (int)sizeof(struct hash32)) {
        struct hash32 hash;
        memcpy(hash.bytes, sqlite3_column_blob(row, 0), sizeof hash.bytes);
        (void)sqlite3_reset(row);
        status = blob_store_drop_unowned(store, &hash);
        *ret_removed += status == BLOB_OK;
    }
    (void)sqlite3_finalize(row); /* a read that failed is tried again with the next change */
    return status;
}
