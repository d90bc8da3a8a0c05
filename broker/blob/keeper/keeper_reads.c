/* The keeper reads here what jobs need, and what accounts own. */
#include "broker/blob/keeper/keeper_internal.h"

#include "broker/blob/needed.h"
#include "protocol/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4200, BUSY_MS = 2000 };
enum { MANIFEST_LOOKS = 64 }; /* reading and checking a manifest costs about as much */

bool keeper_open(struct keeper *keeper)
{
    static const char owned[] =
        "SELECT size FROM blob JOIN owner USING (hash) WHERE hash = ?2 AND account = ?1 AND NOT "
        "EXISTS (SELECT 1 FROM condemned WHERE account = ?1 AND hash = ?2)";
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/blobs.db", keeper->config.blobs);
    keeper->catalog = job_catalog_create();
    return keeper->catalog != NULL &&
           ledger_reader_open(keeper->config.database, &keeper->ledger) == LEDGER_STORE_OK &&
           sqlite3_open_v2(path, &keeper->blobs, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
           sqlite3_busy_timeout(keeper->blobs, BUSY_MS) == SQLITE_OK &&
           sqlite3_prepare_v2(keeper->blobs, owned, -1, &keeper->owned_size, NULL) == SQLITE_OK;
}

void keeper_close(struct keeper *keeper)
{
    (void)sqlite3_finalize(keeper->owned_size); /* only read */
    (void)sqlite3_close(keeper->blobs);
    ledger_reader_close(&keeper->ledger);
    job_catalog_destroy(&keeper->catalog);
}

/* Marks the jobs that blobs.db says are forgotten. */
static bool mark_forgotten(struct keeper *keeper)
{
    sqlite3_stmt *select = NULL;
    int code = sqlite3_prepare_v2(keeper->blobs, "SELECT job FROM forgotten", -1, &select, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(select);
        struct id128 id;
        if (code == SQLITE_ROW && sqlite3_column_bytes(select, 0) == (int)sizeof id.bytes) {
            memcpy(id.bytes, sqlite3_column_blob(select, 0), sizeof id.bytes);
            struct known_job *job = job_catalog_find(keeper->catalog, &id);
            if (job != NULL) {
                job->is_forgotten = true;
            }
        }
    }
    (void)sqlite3_finalize(select); /* only read */
    return code == SQLITE_DONE;
}

bool keeper_learn(struct keeper *keeper)
{
    const bool is_first = job_catalog_count(keeper->catalog) == 0;
    return job_catalog_read(keeper->catalog, ledger_reader_database(keeper->ledger)) &&
           (!is_first || mark_forgotten(keeper));
}

/* ---------------------------------------------------------------- what a job names */

static enum job_blobs_status manifest_of(struct keeper *keeper, const struct known_job *job,
                                         struct hash32 *ret_hash,
                                         Bourse__V1__Manifest **ret_manifest)
{
    const struct job_blobs_store store = {.database = keeper->blobs,
                                          .folder = keeper->config.blobs};
    return job_blobs_manifest(keeper->ledger, &store, job->entry, ret_hash, ret_manifest);
}

/* Visits the manifest's own hash and what the manifest names. *ret_is_checked says that results of
 * the job may wait for a check. */
static enum job_blobs_status visit_manifest(struct keeper *keeper, const struct known_job *job,
                                            job_blobs_visitor *visit, void *context,
                                            bool *ret_is_checked)
{
    struct hash32 hash;
    Bourse__V1__Manifest *manifest = NULL;
    enum job_blobs_status status = manifest_of(keeper, job, &hash, &manifest);
    *ret_is_checked = false;
    if (status == JOB_BLOBS_FAILED || !visit(context, &hash, 1)) {
        codec_manifest_free(&manifest);
        return JOB_BLOBS_FAILED;
    }
    keeper->looks += MANIFEST_LOOKS;
    if (status == JOB_BLOBS_OK) {
        size_t count = 0;
        keeper->looks += manifest->n_shared + manifest->n_subtasks;
        struct hash32 *hashes = needed_hashes(manifest, &count);
        const bool good = hashes != NULL && visit(context, hashes, count);
        status = good ? JOB_BLOBS_OK : JOB_BLOBS_FAILED;
        *ret_is_checked = manifest->terms != NULL && strcmp(manifest->terms->verify, "none") != 0;
        free(hashes);
        keeper->looks += count;
        codec_manifest_free(&manifest);
    }
    return status;
}

struct collection {
    struct keeper *keeper;
    struct hash_list *list;
    uint32_t number;
};

static bool add(void *context, const struct hash32 *hashes, size_t count)
{
    struct collection *collection = context;
    collection->keeper->looks += count;
    return hash_list_add(collection->list, hashes, count, collection->number);
}

enum job_blobs_status keeper_collect(struct keeper *keeper, const struct known_job *job,
                                     uint32_t number, struct hash_list *list)
{
    struct collection collection = {.keeper = keeper, .list = list, .number = number};
    bool is_checked;
    enum job_blobs_status status = visit_manifest(keeper, job, add, &collection, &is_checked);
    const bool good = status != JOB_BLOBS_FAILED &&
                      job_blobs_of_results(keeper->ledger, &job->job, add, &collection);
    return good ? status : JOB_BLOBS_FAILED;
}

static bool need(void *context, const struct hash32 *hashes, size_t count)
{
    struct collection *collection = context;
    collection->keeper->looks += count;
    hash_list_need(collection->list, hashes, count);
    return true;
}

/* Marks the blobs that one job needs. The blobs cannot be known while a result waits for its check,
 * because such a result is in no table yet. Nor can they be known when the manifest is lost. */
static enum keeper_status mark_needed_by(struct keeper *keeper, const struct known_job *job,
                                         struct hash_list *list)
{
    struct collection collection = {.keeper = keeper, .list = list};
    bool is_checked;
    enum job_blobs_status status = visit_manifest(keeper, job, need, &collection, &is_checked);
    if (status == JOB_BLOBS_FAILED ||
        !job_blobs_of_results(keeper->ledger, &job->job, need, &collection)) {
        return KEEPER_FAILED;
    }
    return job->ended_ms == 0 && (status == JOB_BLOBS_LOST || is_checked) ? KEEPER_WAITS
                                                                          : KEEPER_OK;
}

enum keeper_status keeper_mark_needed(struct keeper *keeper, uint32_t account,
                                      const struct known_job *const *chosen, size_t count,
                                      struct hash_list *list)
{
    enum keeper_status status = KEEPER_OK;
    for (size_t i = 0; i < job_catalog_count(keeper->catalog); i++) {
        const struct known_job *job = job_catalog_at(keeper->catalog, i);
        /* A note about an open job is of another time, as after a restore. */
        bool is_chosen = job->account != account || (job->is_forgotten && job->ended_ms != 0);
        for (size_t k = 0; k < count && !is_chosen; k++) {
            is_chosen = chosen[k] == job;
        }
        const enum keeper_status one = is_chosen ? KEEPER_OK : mark_needed_by(keeper, job, list);
        if (one == KEEPER_FAILED) {
            return one;
        }
        status = one == KEEPER_WAITS ? one : status;
    }
    return status;
}

/* ---------------------------------------------------------------- what blobs.db says */

int64_t keeper_owned_size(struct keeper *keeper, uint32_t account, const struct hash32 *hash)
{
    sqlite3_stmt *select = keeper->owned_size;
    (void)sqlite3_bind_int64(select, 1, account);
    (void)sqlite3_bind_blob(select, 2, hash->bytes, sizeof hash->bytes, SQLITE_STATIC);
    const int64_t size = sqlite3_step(select) == SQLITE_ROW ? sqlite3_column_int64(select, 0) : -1;
    (void)sqlite3_reset(select); /* only read */
    keeper->looks++;
    return size;
}

int64_t keeper_number(struct keeper *keeper, const char *text, int64_t parameter, int64_t otherwise)
{
    sqlite3_stmt *select = NULL;
    int64_t number = otherwise;
    if (sqlite3_prepare_v2(keeper->blobs, text, -1, &select, NULL) == SQLITE_OK) {
        (void)sqlite3_bind_int64(select, 1, parameter);
        if (sqlite3_step(select) == SQLITE_ROW) {
            number = sqlite3_column_int64(select, 0);
        }
    }
    (void)sqlite3_finalize(select); /* only read */
    return number;
}

void keeper_set_expiry(struct keeper *keeper, struct known_job *job)
{
    struct hash32 hash;
    Bourse__V1__Manifest *manifest = NULL;
    int64_t retain_ms = keeper->config.retain_most_ms;
    const enum job_blobs_status status = manifest_of(keeper, job, &hash, &manifest);
    if (status == JOB_BLOBS_FAILED) {
        return;
    }
    if (status == JOB_BLOBS_OK) {
        retain_ms = manifest->has_retain_ms ? manifest->retain_ms : keeper->config.retain_ms;
        codec_manifest_free(&manifest);
    }
    if (retain_ms > keeper->config.retain_most_ms) {
        retain_ms = keeper->config.retain_most_ms;
    }
    if (retain_ms < keeper->config.retain_least_ms) { /* whoever runs the job still fetches it */
        retain_ms = keeper->config.retain_least_ms;
    }
    job->expires_ms = job->ended_ms > INT64_MAX - retain_ms ? INT64_MAX : job->ended_ms + retain_ms;
}
