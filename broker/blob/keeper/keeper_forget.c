/* The keeper decides here which blobs go, and has the blob port's thread do it. */
#include "broker/blob/keeper/keeper_internal.h"

#include "base/checked.h"
#include "base/text.h"
#include "broker/blob/port/forget_order.h"
#include "broker/core/outgoing.h"
#include "broker/fatal.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MS_PER_S INT64_C(1000)

/* Returns log time, which no jump of the wall clock brings ahead: what a year is to keep stays a
 * year. */
static int64_t now_ms(const struct keeper *keeper)
{
    return logtime_now(keeper->config.clock) / NS_PER_MS;
}

/* Hands the order to the blob port's thread, and waits until it is done. */
static enum keeper_status give_order(struct keeper *keeper, struct forget_order *order)
{
    struct outgoing *note = outgoing_create(OUTGOING_FORGET);
    if (note == NULL) {
        return KEEPER_FAILED;
    }
    note->order = order;
    watermark_init(&order->done, 0);
    const bool is_taken = queue_push(keeper->config.notes, &note->link);
    if (is_taken) {
        watermark_wait(&order->done, 1);
    } else {
        outgoing_destroy(&note);
    }
    watermark_fini(&order->done);
    return !is_taken ? KEEPER_FAILED : order->is_full ? KEEPER_FULL : KEEPER_OK;
}

bool keeper_settle(struct keeper *keeper)
{
    struct forget_order nothing = {.act = FORGET_SPARE}; /* the names are written before it */
    return give_order(keeper, &nothing) != KEEPER_FAILED;
}

/* A batch has blobs for the blob port, and the jobs that are noted with the first blobs. */
struct batch {
    struct keeper *keeper;
    struct forget_order order;
    struct hash32 hashes[FORGET_ORDER_HASHES];
    uint64_t bytes, blobs;
    enum keeper_status status;
};

static void flush(struct batch *batch)
{
    if (batch->status == KEEPER_OK && (batch->order.count > 0 || batch->order.job_count > 0)) {
        batch->order.hashes = batch->hashes;
        batch->status = give_order(batch->keeper, &batch->order);
        batch->bytes += batch->order.bytes;
        batch->blobs += batch->order.count;
    }
    batch->order.count = 0;
    batch->order.job_count = 0;
}

static void put(struct batch *batch, const struct hash32 *hash)
{
    batch->hashes[batch->order.count++] = *hash;
    if (batch->order.count == FORGET_ORDER_HASHES) {
        flush(batch);
    }
}

static struct batch batch_of(struct keeper *keeper, uint32_t account, enum forget_act act)
{
    return (struct batch){
        .keeper = keeper,
        .order = {.act = act, .account = account, .now_s = now_ms(keeper) / MS_PER_S}};
}

/* ---------------------------------------------------------------- jobs */

struct forgetting {
    struct keeper *keeper;
    uint32_t account;
    struct known_job *const *jobs;
    size_t count;
    bool is_dry;
    struct keeper_share *shares;
    struct batch batch; /* to condemn */
};

/* Collects the blobs of all jobs. A job whose manifest is lost gives what its results named. */
static enum keeper_status collect(struct forgetting *forgetting, struct hash_list *list)
{
    for (size_t i = 0; i < forgetting->count && !list->is_over; i++) {
        if (keeper_collect(forgetting->keeper, forgetting->jobs[i], (uint32_t)i, list) ==
                JOB_BLOBS_FAILED &&
            !list->is_over) {
            return KEEPER_FAILED;
        }
    }
    hash_list_sort(list);
    return KEEPER_OK;
}

static void condemn(struct forgetting *forgetting, const struct hash_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct hash_item *item = &list->items[i];
        const int64_t size = item->is_needed ? -1
                                             : keeper_owned_size(forgetting->keeper,
                                                                 forgetting->account, &item->hash);
        if (size < 0) {
            continue;
        }
        forgetting->shares[item->number].blobs++;
        forgetting->shares[item->number].bytes += (uint64_t)size;
        if (!forgetting->is_dry) {
            put(&forgetting->batch, &item->hash);
        }
    }
}

/* Looks at one slice of the blobs. *ret_is_over: the slice has too many. */
static enum keeper_status forget_slice(struct forgetting *forgetting, uint32_t slice,
                                       uint32_t slices, bool *ret_is_over)
{
    struct hash_list list = {.most = KEEPER_HASHES_MAX, .slice = slice, .slices = slices};
    enum keeper_status status = collect(forgetting, &list);
    *ret_is_over = status == KEEPER_OK && list.is_over;
    if (status == KEEPER_OK && !list.is_over) {
        status = keeper_mark_needed(forgetting->keeper, forgetting->account,
                                    (const struct known_job *const *)forgetting->jobs,
                                    forgetting->count, &list);
    }
    if (status == KEEPER_OK && !list.is_over) {
        condemn(forgetting, &list);
        status = forgetting->batch.status;
    }
    hash_list_fini(&list);
    return status;
}

static enum keeper_status forget_blobs(struct forgetting *forgetting)
{
    enum keeper_status status = KEEPER_OK;
    bool is_over = false;
    uint32_t slices = 1;
    for (uint32_t slice = 0; status == KEEPER_OK && slice < slices; slice++) {
        status = forget_slice(forgetting, slice, slices, &is_over);
        if (is_over) { /* slices before this one were small enough: only the rest is cut finer */
            slices *= 2;
            slice = 2 * slice - 1;
        }
    }
    return status;
}

static void fill_notes(struct forgotten_job *notes, const struct forgetting *forgetting,
                       enum forget_reason reason, enum forget_state state)
{
    for (size_t i = 0; i < forgetting->count; i++) {
        notes[i] = (struct forgotten_job){.job = forgetting->jobs[i]->job,
                                          .account = forgetting->account,
                                          .at_ms = now_ms(forgetting->keeper),
                                          .reason = reason,
                                          .state = state};
    }
}

/* Forgotten blobs leave the quota at once, and the disk after the grace. So an account that stores
 * and forgets in turns has at most twice its quota, and one request more, on the disk. */
static int64_t condemned_bytes(struct keeper *keeper, uint32_t account)
{
    return keeper_number(keeper,
                         "SELECT CAST(total(size) AS INTEGER) FROM condemned JOIN blob USING "
                         "(hash) WHERE account = ?1",
                         account, 0);
}

enum keeper_status keeper_forget(struct keeper *keeper, uint32_t account,
                                 struct known_job *const *jobs, size_t count,
                                 enum forget_reason reason, bool is_dry,
                                 struct keeper_share *ret_shares)
{
    struct forgotten_job begun[KEEPER_JOBS_AT_ONCE];
    struct forgotten_job done[KEEPER_JOBS_AT_ONCE];
    struct forgetting forgetting = {.keeper = keeper,
                                    .account = account,
                                    .jobs = jobs,
                                    .count = count,
                                    .is_dry = is_dry,
                                    .shares = ret_shares,
                                    .batch = batch_of(keeper, account, FORGET_CONDEMN)};
    assert(count <= KEEPER_JOBS_AT_ONCE);
    memset(ret_shares, 0, count * sizeof *ret_shares);
    if (count == 0) {
        return KEEPER_OK;
    }
    fill_notes(begun, &forgetting, reason, FORGET_BEGUN);
    fill_notes(done, &forgetting, reason, FORGET_CONDEMNED);
    forgetting.batch.order.jobs = begun;
    forgetting.batch.order.job_count = is_dry ? 0 : count;
    if (!is_dry && condemned_bytes(keeper, account) > keeper->config.quota_bytes) {
        return KEEPER_GRACE;
    }
    enum keeper_status status = forget_blobs(&forgetting);
    if (status != KEEPER_OK || is_dry) {
        return status;
    }
    flush(&forgetting.batch);
    forgetting.batch.order.jobs = done;
    forgetting.batch.order.job_count = count;
    flush(&forgetting.batch);
    for (size_t i = 0; i < count && forgetting.batch.status == KEEPER_OK; i++) {
        jobs[i]->is_forgotten = true;
    }
    return forgetting.batch.status;
}

/* ---------------------------------------------------------------- what was begun */

/* A noted has jobs of one account that have the same state in blobs.db. */
struct noted {
    uint32_t account;
    enum forget_reason reason;
    struct known_job *jobs[KEEPER_JOBS_AT_ONCE];
    size_t count;
};

/* Finds jobs of the account in `state` that were noted until `until_ms`. A job that the ledger does
 * not have has no blobs. */
static void find_noted(struct keeper *keeper, uint32_t of_account, enum forget_state state,
                       int64_t until_ms, struct noted *ret_noted)
{
    static const char text[] = "SELECT job, account, reason FROM forgotten WHERE state = ?1 AND "
                               "state < 2 AND at_ms <= ?2 AND account = ?3 ORDER BY reason";
    sqlite3_stmt *select = NULL;
    *ret_noted = (struct noted){.count = 0};
    if (sqlite3_prepare_v2(keeper->blobs, text, -1, &select, NULL) == SQLITE_OK) {
        (void)sqlite3_bind_int64(select, 1, state);
        (void)sqlite3_bind_int64(select, 2, until_ms);
        (void)sqlite3_bind_int64(select, 3, of_account);
        while (ret_noted->count < KEEPER_JOBS_AT_ONCE && sqlite3_step(select) == SQLITE_ROW) {
            struct id128 id = {0};
            const uint32_t account = (uint32_t)sqlite3_column_int64(select, 1);
            const enum forget_reason reason = (enum forget_reason)sqlite3_column_int(select, 2);
            if (sqlite3_column_bytes(select, 0) == (int)sizeof id.bytes) {
                memcpy(id.bytes, sqlite3_column_blob(select, 0), sizeof id.bytes);
            }
            struct known_job *job = job_catalog_find(keeper->catalog, &id);
            if (job == NULL || (ret_noted->count > 0 &&
                                (account != ret_noted->account || reason != ret_noted->reason))) {
                continue;
            }
            ret_noted->account = account;
            ret_noted->reason = reason;
            ret_noted->jobs[ret_noted->count++] = job;
        }
    }
    (void)sqlite3_finalize(select); /* only read */
}

/* Condemns the blobs that results named after the job was forgotten, and notes that its forgetting
 * is complete. */
static enum keeper_status end_noted(struct keeper *keeper, const struct noted *noted)
{
    struct forgotten_job ended[KEEPER_JOBS_AT_ONCE];
    struct keeper_share shares[KEEPER_JOBS_AT_ONCE] = {{0}};
    struct forgetting forgetting = {.keeper = keeper,
                                    .account = noted->account,
                                    .jobs = noted->jobs,
                                    .count = noted->count,
                                    .shares = shares,
                                    .batch = batch_of(keeper, noted->account, FORGET_CONDEMN)};
    const enum keeper_status status = forget_blobs(&forgetting);
    if (status != KEEPER_OK) {
        return status;
    }
    flush(&forgetting.batch);
    fill_notes(ended, &forgetting, noted->reason, FORGET_ENDED);
    forgetting.batch.order.jobs = ended;
    forgetting.batch.order.job_count = noted->count;
    flush(&forgetting.batch);
    return forgetting.batch.status;
}

/* ---------------------------------------------------------------- the end of the grace */

static bool add_condemned(struct keeper *keeper, int64_t account, int64_t until_s,
                          struct hash_list *list)
{
    static const char text[] = "SELECT hash FROM condemned WHERE account = ?1 AND since_s <= ?2 "
                               "LIMIT ?3";
    sqlite3_stmt *select = NULL;
    int code = sqlite3_prepare_v2(keeper->blobs, text, -1, &select, NULL);
    bool good = code == SQLITE_OK;
    if (good) {
        (void)sqlite3_bind_int64(select, 1, account);
        (void)sqlite3_bind_int64(select, 2, until_s);
        (void)sqlite3_bind_int64(select, 3, KEEPER_HASHES_MAX / 2);
        while (good && (code = sqlite3_step(select)) == SQLITE_ROW) {
            struct hash32 hash;
            if (sqlite3_column_bytes(select, 0) == (int)sizeof hash.bytes) {
                memcpy(hash.bytes, sqlite3_column_blob(select, 0), sizeof hash.bytes);
                good = hash_list_add(list, &hash, 1, 0);
            }
        }
    }
    (void)sqlite3_finalize(select); /* only read */
    hash_list_sort(list);
    return good && code == SQLITE_DONE;
}

/* Removes condemned blobs of one account that no job needs, and gives back the others. */
static enum keeper_status remove_condemned(struct keeper *keeper, uint32_t account, int64_t until_s)
{
    struct hash_list list = {.most = KEEPER_HASHES_MAX, .slices = 1};
    struct batch gone = batch_of(keeper, account, FORGET_REMOVE);
    struct batch spared = batch_of(keeper, account, FORGET_SPARE);
    enum keeper_status status =
        add_condemned(keeper, account, until_s, &list) ? KEEPER_OK : KEEPER_FAILED;
    status = status == KEEPER_OK ? keeper_mark_needed(keeper, account, NULL, 0, &list) : status;
    for (size_t i = 0; status == KEEPER_OK && i < list.count; i++) {
        put(list.items[i].is_needed ? &spared : &gone, &list.items[i].hash);
    }
    hash_list_fini(&list);
    flush(&spared);
    flush(&gone);
    if (gone.blobs > 0) {
        log_info("%" PRIu64 " forgotten blob%s of account %" PRIu32 " %s removed, %" PRIu64
                 " bytes",
                 gone.blobs, text_plural(gone.blobs), account, gone.blobs == 1 ? "is" : "are",
                 gone.bytes);
    }
    return status != KEEPER_OK ? status : spared.status != KEEPER_OK ? spared.status : gone.status;
}

/* Returns the first account above `after` that has something to remove or to go on with; -1: there
 * is none. */
static int64_t next_to_tidy(struct keeper *keeper, int64_t after, int64_t until_ms)
{
    char text[256];
    (void)snprintf(
        text, sizeof text,
        "SELECT account FROM (SELECT account FROM condemned WHERE since_s <= ?1 / 1000 "
        "UNION ALL SELECT account FROM forgotten WHERE state < 2 AND (state = 0 OR at_ms "
        "<= ?1)) WHERE account > %" PRId64 " ORDER BY account LIMIT 1",
        after);
    return keeper_number(keeper, text, until_ms, -1);
}

/* Goes on with what the account has begun to forget, and removes its condemned blobs after the
 * grace. Blobs are removed even when the first step fails, because it may wait for their
 * removal. */
static enum keeper_status tidy_account(struct keeper *keeper, uint32_t account, int64_t until_ms)
{
    struct noted noted;
    struct keeper_share shares[KEEPER_JOBS_AT_ONCE];
    enum keeper_status status = KEEPER_OK;
    find_noted(keeper, account, FORGET_BEGUN, INT64_MAX, &noted);
    if (noted.count > 0) {
        status = keeper_forget(keeper, noted.account, noted.jobs, noted.count, noted.reason, false,
                               shares);
    }
    find_noted(keeper, account, FORGET_CONDEMNED, until_ms, &noted);
    if (status == KEEPER_OK && noted.count > 0) {
        status = end_noted(keeper, &noted);
    }
    const enum keeper_status removed = remove_condemned(keeper, account, until_ms / MS_PER_S);
    return status == KEEPER_OK ? removed : status;
}

void keeper_tidy(struct keeper *keeper)
{
    const int64_t now_ns = clock_monotonic_ns();
    const int64_t until_ms = now_ms(keeper) - keeper->config.grace_ms;
    if (now_ns < keeper->next_removal_ns) {
        return;
    }
    const int64_t account = next_to_tidy(keeper, keeper->tidied_account, until_ms);
    if (account < 0) {            /* the round is over */
        if (keeper->tidy_waits) { /* for an open job, or a full disk: both may take long */
            keeper->next_removal_ns = now_ns + KEEPER_RETRY_S * NS_PER_S;
        }
        keeper->tidy_waits = false;
        keeper->tidied_account = -1;
    } else if (keeper_learn(keeper)) {
        keeper->tidied_account = account;
        keeper->tidy_waits |= tidy_account(keeper, (uint32_t)account, until_ms) != KEEPER_OK;
    }
}

/* ---------------------------------------------------------------- jobs that expired */

/* Reads manifests until *budget is used up; a job that is left for later is not due. */
static bool is_due(struct keeper *keeper, struct known_job *job, int64_t until_ms, size_t *budget)
{
    if (job->is_forgotten || job->ended_ms == 0) {
        return false;
    }
    if (job->expires_ms == 0 && *budget > 0) {
        keeper_set_expiry(keeper, job);
        --*budget;
    }
    return job->expires_ms != 0 && job->expires_ms <= until_ms;
}

/* Finds due jobs of the first account above `after` that has some. */
static size_t find_due(struct keeper *keeper, int64_t after, size_t *budget,
                       struct known_job *ret_jobs[KEEPER_JOBS_AT_ONCE])
{
    const int64_t until_ms = now_ms(keeper);
    size_t count = 0;
    for (size_t i = 0; i < job_catalog_count(keeper->catalog); i++) {
        struct known_job *job = job_catalog_at(keeper->catalog, i);
        if ((int64_t)job->account <= after || !is_due(keeper, job, until_ms, budget)) {
            continue;
        }
        if (count > 0 && job->account < ret_jobs[0]->account) {
            count = 0;
        }
        if (count < KEEPER_JOBS_AT_ONCE && (count == 0 || job->account == ret_jobs[0]->account)) {
            ret_jobs[count++] = job;
        }
    }
    return count;
}

void keeper_expire(struct keeper *keeper)
{
    struct known_job *jobs[KEEPER_JOBS_AT_ONCE];
    struct keeper_share shares[KEEPER_JOBS_AT_ONCE];
    size_t budget = KEEPER_MANIFESTS_AT_ONCE;
    const int64_t now_ns = clock_monotonic_ns();
    if (now_ns < keeper->next_expiry_ns || !keeper_learn(keeper)) {
        return;
    }
    const size_t count = find_due(keeper, keeper->expired_account, &budget, jobs);
    if (count == 0) { /* the round is over, unless manifests are left to read */
        const int64_t wait_s = keeper->expiry_waits ? KEEPER_RETRY_S : KEEPER_EXPIRY_S;
        keeper->next_expiry_ns = now_ns + (budget == 0 ? 0 : wait_s * NS_PER_S);
        keeper->expiry_waits = keeper->expiry_waits && budget == 0;
        keeper->expired_account = -1;
        return;
    }
    const uint32_t account = jobs[0]->account;
    const enum keeper_status status =
        keeper_forget(keeper, account, jobs, count, FORGET_EXPIRED, false, shares);
    if (status == KEEPER_OK) {
        log_info("the blobs of %zu ended job%s of account %" PRIu32 " have expired", count,
                 text_plural(count), account);
    } else {
        keeper->expiry_waits = true;
    }
    keeper->expired_account = account; /* the next round has what is left */
}
