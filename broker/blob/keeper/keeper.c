#include "broker/blob/keeper/keeper.h"

#include "base/checked.h"
#include "broker/blob/keeper/keeper_internal.h"
#include "broker/blob/port/forget_order.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "broker/fatal.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/process.h"

#include <stdlib.h>
#include <string.h>

static const char used_bytes[] = "SELECT bytes FROM usage WHERE account = ?1";

/* Returns the refusal of a request that cannot be answered now. */
static struct outgoing *refuse(const struct request *request, enum keeper_status status)
{
    switch (status) {
    case KEEPER_WAITS:
        return outgoing_refuse(request, REJECT_BUSY, "open_job", 0, 0);
    case KEEPER_GRACE:
        return outgoing_refuse(request, REJECT_BUSY, "forgotten_bytes", 0, 0);
    case KEEPER_FULL:
        return outgoing_refuse(request, REJECT_STORAGE_FULL, "", 0, 0);
    case KEEPER_OK:
    case KEEPER_FAILED:
        break;
    }
    log_error("the blobs of account %u could not be looked through", request->account);
    return outgoing_refuse(request, REJECT_UNAVAILABLE, "", 0, 0);
}

static ProtobufCBinaryData id_view(const struct id128 *id)
{
    /* Packed, never written. */
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)id->bytes, .len = sizeof id->bytes};
}

/* ---------------------------------------------------------------- what is stored */

struct storage_page {
    Bourse__V1__StorageRow wires[LIMIT_STORAGE_ROWS];
    Bourse__V1__StorageRow *pointers[LIMIT_STORAGE_ROWS];
    char names[LIMIT_STORAGE_ROWS][LIMIT_NAME_BYTES + 1];
    size_t count;
};

static void read_name(struct keeper *keeper, uint64_t entry, char ret_name[LIMIT_NAME_BYTES + 1])
{
    sqlite3_stmt *select = NULL;
    sqlite3 *ledger = ledger_reader_database(keeper->ledger);
    if (sqlite3_prepare_v2(ledger, "SELECT name FROM jobs WHERE entry = ?1", -1, &select, NULL) ==
        SQLITE_OK) {
        (void)sqlite3_bind_int64(select, 1, (sqlite3_int64)entry);
        if (sqlite3_step(select) == SQLITE_ROW) {
            const unsigned char *text = sqlite3_column_text(select, 0);
            (void)snprintf(ret_name, LIMIT_NAME_BYTES + 1, "%s",
                           text == NULL ? "" : (const char *)text);
        }
    }
    (void)sqlite3_finalize(select); /* only read */
}

/* Reads when the job's blobs were forgotten, and why. */
static void read_forgotten(struct keeper *keeper, const struct known_job *job,
                           Bourse__V1__StorageRow *wire)
{
    static const char text[] = "SELECT at_ms, reason FROM forgotten WHERE job = ?1";
    sqlite3_stmt *select = NULL;
    if (sqlite3_prepare_v2(keeper->blobs, text, -1, &select, NULL) == SQLITE_OK) {
        (void)sqlite3_bind_blob(select, 1, job->job.bytes, sizeof job->job.bytes, SQLITE_STATIC);
        if (sqlite3_step(select) == SQLITE_ROW) {
            wire->has_forgotten_ms = 1;
            wire->forgotten_ms = sqlite3_column_int64(select, 0);
            wire->has_expired = 1;
            wire->expired = sqlite3_column_int(select, 1) == FORGET_EXPIRED;
        }
    }
    (void)sqlite3_finalize(select); /* only read */
}

/* Counts the blobs that the job uses and its owner owns, and adds up their sizes. A job with more
 * than KEEPER_HASHES_MAX blobs is counted in slices of the space of hashes. */
static bool add_up(struct keeper *keeper, const struct known_job *job, uint64_t *ret_blobs,
                   uint64_t *ret_bytes)
{
    uint32_t slices = 1;
    *ret_blobs = *ret_bytes = 0;
    for (uint32_t slice = 0; slice < slices; slice++) {
        struct hash_list list = {.most = KEEPER_HASHES_MAX, .slice = slice, .slices = slices};
        const enum job_blobs_status status = keeper_collect(keeper, job, 0, &list);
        if (list.is_over) {
            slices *= 2;
            slice = 2 * slice - 1;
        } else if (status == JOB_BLOBS_FAILED) {
            hash_list_fini(&list);
            return false;
        } else {
            hash_list_sort(&list);
            for (size_t i = 0; i < list.count; i++) {
                const int64_t size = keeper_owned_size(keeper, job->account, &list.items[i].hash);
                *ret_blobs += size >= 0;
                *ret_bytes += size > 0 ? (uint64_t)size : 0;
            }
        }
        hash_list_fini(&list);
    }
    return true;
}

static bool add_row(struct keeper *keeper, struct known_job *job, struct storage_page *page)
{
    Bourse__V1__StorageRow *wire = &page->wires[page->count];
    char *name = page->names[page->count];
    bourse__v1__storage_row__init(wire);
    read_name(keeper, job->entry, name);
    wire->job = id_view(&job->job);
    wire->name = name;
    wire->has_ended_ms = job->ended_ms > 0;
    wire->ended_ms = job->ended_ms;
    if (job->is_forgotten) {
        read_forgotten(keeper, job, wire);
    } else if (!add_up(keeper, job, &wire->blobs, &wire->bytes)) {
        return false;
    } else if (job->ended_ms > 0) {
        if (job->expires_ms == 0) {
            keeper_set_expiry(keeper, job);
        }
        wire->has_expires_ms = job->expires_ms > 0 && job->expires_ms < INT64_MAX;
        wire->expires_ms = job->expires_ms;
    }
    page->pointers[page->count++] = wire;
    return true;
}

/* Fills the page from job `from` of the catalogue on. *ret_next is the place of the next job. */
static bool fill_page(struct keeper *keeper, uint32_t account, uint64_t from,
                      struct storage_page *page, uint64_t *ret_next)
{
    uint64_t at = from;
    keeper->looks = 0;
    for (; at < job_catalog_count(keeper->catalog) && page->count < LIMIT_STORAGE_ROWS &&
           keeper->looks < KEEPER_LOOKS_MAX;
         at++) {
        struct known_job *job = job_catalog_at(keeper->catalog, (size_t)at);
        if (job->account == account && !job->is_forgotten && !add_row(keeper, job, page)) {
            return false;
        }
    }
    *ret_next = at;
    return true;
}

static struct outgoing *storage(struct keeper *keeper, const struct request *request)
{
    const Bourse__V1__StorageRequest *body = (const void *)request->translation.body;
    struct storage_page *page = calloc(1, sizeof *page);
    uint64_t next = UINT64_MAX;
    bool good = page != NULL;
    if (good && body->has_job) {
        const struct id128 id = codec_id(body->job);
        struct known_job *job = job_catalog_find(keeper->catalog, &id);
        if (job == NULL || job->account != request->account) {
            free(page);
            return outgoing_refuse(request, REJECT_NOT_FOUND, "job", 0, 0);
        }
        good = add_row(keeper, job, page);
    } else if (good) {
        good = fill_page(keeper, request->account, body->has_after ? body->after : 0, page, &next);
    }
    struct outgoing *outgoing = NULL;
    if (good) {
        Bourse__V1__StorageReply answer = BOURSE__V1__STORAGE_REPLY__INIT;
        answer.used_bytes = keeper_number(keeper, used_bytes, request->account, 0);
        answer.quota_bytes = keeper->config.quota_bytes;
        answer.grace_ms = keeper->config.grace_ms;
        answer.n_rows = page->count;
        answer.rows = page->pointers;
        answer.has_next = next < job_catalog_count(keeper->catalog);
        answer.next = next;
        outgoing = outgoing_reply(request, MESSAGE_STORAGE_REPLY, &answer.base);
    } else {
        outgoing = refuse(request, KEEPER_FAILED);
    }
    free(page);
    return outgoing;
}

/* ---------------------------------------------------------------- forgetting on request */

/* Finds the jobs of the request that can be forgotten, and fills a row for each job of the request,
 * in its order. ret_places has the row of each of the *ret_count jobs found. */
static void choose(struct keeper *keeper, const struct request *request,
                   Bourse__V1__ForgetRow *rows, struct known_job **ret_jobs, size_t *ret_places,
                   size_t *ret_count)
{
    const Bourse__V1__ForgetRequest *body = (const void *)request->translation.body;
    *ret_count = 0;
    for (size_t i = 0; i < body->n_jobs; i++) {
        const struct id128 id = codec_id(body->jobs[i]);
        struct known_job *job = job_catalog_find(keeper->catalog, &id);
        bool is_chosen = false;
        bourse__v1__forget_row__init(&rows[i]);
        rows[i].job = body->jobs[i];
        for (size_t k = 0; k < *ret_count; k++) {
            is_chosen = is_chosen || ret_jobs[k] == job;
        }
        if (job == NULL || job->account != request->account) {
            rows[i].state = FORGET_OUTCOME_UNKNOWN;
        } else if (job->is_forgotten || is_chosen) {
            rows[i].state = FORGET_OUTCOME_BEFORE;
        } else if (job->ended_ms == 0) {
            rows[i].state = FORGET_OUTCOME_OPEN;
        } else {
            rows[i].state = FORGET_OUTCOME_NOW;
            ret_places[*ret_count] = i;
            ret_jobs[(*ret_count)++] = job;
        }
    }
}

static struct outgoing *forget(struct keeper *keeper, const struct request *request)
{
    const Bourse__V1__ForgetRequest *body = (const void *)request->translation.body;
    Bourse__V1__ForgetRow rows[LIMIT_FORGET_JOBS];
    Bourse__V1__ForgetRow *pointers[LIMIT_FORGET_JOBS];
    struct known_job *jobs[LIMIT_FORGET_JOBS];
    struct keeper_share shares[LIMIT_FORGET_JOBS];
    size_t places[LIMIT_FORGET_JOBS];
    size_t count = 0;
    static_assert((int)LIMIT_FORGET_JOBS <= (int)KEEPER_JOBS_AT_ONCE,
                  "one request is forgotten at once");
    choose(keeper, request, rows, jobs, places, &count);
    const enum keeper_status status =
        keeper_forget(keeper, request->account, jobs, count, FORGET_ASKED,
                      body->has_dry_run && body->dry_run, shares);
    if (status != KEEPER_OK) {
        return refuse(request, status);
    }
    for (size_t i = 0; i < count; i++) {
        rows[places[i]].blobs = shares[i].blobs;
        rows[places[i]].bytes = shares[i].bytes;
    }
    for (size_t i = 0; i < body->n_jobs; i++) {
        pointers[i] = &rows[i];
    }
    Bourse__V1__ForgetReply answer = BOURSE__V1__FORGET_REPLY__INIT;
    answer.used_bytes = keeper_number(keeper, used_bytes, request->account, 0);
    answer.quota_bytes = keeper->config.quota_bytes;
    answer.grace_ms = keeper->config.grace_ms;
    answer.n_rows = body->n_jobs;
    answer.rows = pointers;
    return outgoing_reply(request, MESSAGE_FORGET_REPLY, &answer.base);
}

/* ---------------------------------------------------------------- the loop */

static struct outgoing *answer(struct keeper *keeper, const struct request *request)
{
    keeper->looks = 0;
    if (!keeper_settle(keeper) || !keeper_learn(keeper)) {
        return refuse(request, KEEPER_FAILED);
    }
    return request->envelope.type == MESSAGE_FORGET_REQUEST ? forget(keeper, request)
                                                            : storage(keeper, request);
}

/* Charges the account for the steps of the ledger and the looks, less what the core has charged. */
static void charge(struct keeper *keeper, const struct request *request,
                   const struct outgoing *outgoing)
{
    const struct budget_asker asker = {
        .account = request->account, .session = request->session, .kind = BUDGET_READS};
    const uint64_t steps =
        ledger_reader_steps(keeper->ledger) + keeper->looks * (uint64_t)BUDGET_LOOK_STEPS;
    if (keeper->config.budget != NULL) {
        budget_charge(keeper->config.budget, &asker,
                      budget_of_answer(BUDGET_LEDGER_LEAST + steps, outgoing->length) -
                          BUDGET_LEDGER_STEPS,
                      clock_monotonic_ns());
    }
}

static void *run(void *argument)
{
    struct keeper *keeper = argument;
    int64_t tidy_ns = 0;
    process_name_thread("keeper");
    while (!queue_finished(keeper->config.inbound)) {
        struct queue_link *link = queue_pop(keeper->config.inbound, NS_PER_S);
        const int64_t now_ns = clock_monotonic_ns();
        watermark_wait(keeper->config.applied, watermark_value(keeper->config.durable));
        if (now_ns >= tidy_ns) { /* even while requests come without a pause */
            keeper_tidy(keeper);
            keeper_expire(keeper);
            tidy_ns = now_ns + NS_PER_S;
        }
        if (link == NULL) {
            continue;
        }
        struct request *request = QUEUE_ELEMENT(link, struct request, link);
        (void)ledger_reader_steps(keeper->ledger); /* drops steps that no request caused */
        struct outgoing *outgoing = answer(keeper, request);
        if (outgoing == NULL) {
            fatal("out of memory");
        }
        charge(keeper, request, outgoing);
        if (!queue_push(keeper->config.releases, &outgoing->link)) {
            outgoing_destroy(&outgoing);
        }
        request_destroy(&request);
    }
    return NULL;
}

struct keeper *keeper_start(const struct keeper_config *config)
{
    struct keeper *keeper = calloc(1, sizeof *keeper);
    if (keeper == NULL) {
        fatal("the keeper of blobs cannot start: out of memory");
    }
    keeper->config = *config;
    keeper->tidied_account = keeper->expired_account = -1;
    if (!keeper_open(keeper)) {
        fatal("the keeper of blobs cannot open %s or blobs.db: there is no memory, or the disk "
              "did not give one of them. " PROBLEM_TRY_AGAIN,
              config->database);
    }
    if (pthread_create(&keeper->thread, NULL, run, keeper) != 0) {
        fatal("the keeper of blobs cannot start: no thread");
    }
    return keeper;
}

void keeper_stop(struct keeper **self)
{
    struct keeper *keeper = *self;
    if (keeper != NULL) {
        queue_close(keeper->config.inbound);
        pthread_join(keeper->thread, NULL);
        keeper_close(keeper);
        free(keeper);
        *self = NULL;
    }
}
