/* This file computes latencies from the journal. The same commands through the same exchange give
 * the same dispatches, and log time says when each was sent and when its result was accepted. */
#include "bench/endtoend/parts.h"

#include "base/checked.h"
#include "broker/core/translate.h"
#include "broker/storage/replay.h"
#include "exchange/exchange.h"
#include "runtime/market.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct tracing {
    struct exchange *exchange;
    const struct id128 *jobs;
    size_t job_count;
    int64_t **sent_ns; /* of each job, by subtask: its last dispatch */
    uint64_t *leases;  /* (lease, job) of the leases of these jobs */
    size_t *lease_jobs;
    size_t lease_count, lease_capacity;
    int64_t *taken_ns;
    size_t count, capacity;
    uint64_t signatures, commits; /* that brought the `count` results */
    bool out_of_memory;
};

static size_t job_of(const struct tracing *tracing, const struct id128 *job)
{
    size_t i = 0;
    while (i < tracing->job_count && !id128_equal(&tracing->jobs[i], job)) {
        i++;
    }
    return i;
}

static void note_lease(struct tracing *tracing, const struct exchange_grant *grant)
{
    size_t job = job_of(tracing, &grant->job);
    if (job == tracing->job_count) {
        return;
    }
    if (tracing->lease_count == tracing->lease_capacity) {
        size_t capacity = 2 * tracing->lease_capacity + 64;
        uint64_t *leases = realloc(tracing->leases, capacity * sizeof *leases);
        tracing->leases = leases != NULL ? leases : tracing->leases;
        size_t *jobs = realloc(tracing->lease_jobs, capacity * sizeof *jobs);
        tracing->lease_jobs = jobs != NULL ? jobs : tracing->lease_jobs;
        if (leases == NULL || jobs == NULL) {
            tracing->out_of_memory = true;
            return;
        }
        tracing->lease_capacity = capacity;
    }
    tracing->leases[tracing->lease_count] = grant->lease;
    tracing->lease_jobs[tracing->lease_count++] = job;
    struct exchange_job_row row;
    if (tracing->sent_ns[job] == NULL && exchange_job(tracing->exchange, &grant->job, &row)) {
        tracing->sent_ns[job] = calloc(row.subtasks, sizeof **tracing->sent_ns);
        tracing->out_of_memory = tracing->sent_ns[job] == NULL;
    }
}

static int64_t *sent_of(struct tracing *tracing, uint64_t lease, uint32_t index)
{
    for (size_t i = tracing->lease_count; i-- > 0;) {
        if (tracing->leases[i] == lease) {
            return &tracing->sent_ns[tracing->lease_jobs[i]][index];
        }
    }
    return NULL;
}

static void note_result(struct tracing *tracing, const struct ledger_record *record)
{
    const int64_t *sent_ns = sent_of(tracing, record->lease, record->index);
    if (record->kind != LEDGER_RESULT || record->status != ATTEMPT_ACCEPTED || sent_ns == NULL) {
        return;
    }
    if (tracing->count == tracing->capacity) {
        size_t capacity = 2 * tracing->capacity + 1024;
        int64_t *taken = realloc(tracing->taken_ns, capacity * sizeof *taken);
        if (taken == NULL) {
            tracing->out_of_memory = true;
            return;
        }
        tracing->taken_ns = taken;
        tracing->capacity = capacity;
    }
    tracing->taken_ns[tracing->count++] = record->log_time_ns - *sent_ns;
}

static bool note_effects(void *context, const struct translation *said,
                         const struct exchange_effects *effects)
{
    struct tracing *tracing = context;
    const size_t before = tracing->count;
    for (size_t i = 0; i < effects->count && !tracing->out_of_memory; i++) {
        const struct exchange_effect *effect = &effects->items[i];
        if (effect->type == EFFECT_LEASE_GRANT) {
            note_lease(tracing, &effect->grant);
        } else if (effect->type == EFFECT_DISPATCH) {
            int64_t *sent_ns = sent_of(tracing, effect->work.lease, effect->work.index);
            if (sent_ns != NULL) {
                *sent_ns = exchange_log_time_ns(tracing->exchange);
            }
        } else if (effect->type == EFFECT_LEDGER) {
            note_result(tracing, &effect->ledger);
        }
    }
    if (tracing->count > before && said->results_count > 0) {
        tracing->signatures++; /* one Results message, which has one signature */
    }
    return !tracing->out_of_memory;
}

/* An entry of the journal is one commit. */
static bool walk(struct tracing *tracing, const char *folder, struct problem *problem)
{
    char path[ENDTOEND_PATH_SIZE + 32];
    sqlite3 *database = NULL;
    sqlite3_stmt *rows = NULL;
    (void)snprintf(path, sizeof path, "%s/" MARKET_DATABASE, folder);
    bool good = sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(database, "SELECT bytes FROM journal ORDER BY idx", -1, &rows,
                                   NULL) == SQLITE_OK;
    if (!good) {
        problem_set(problem, "%s cannot be read", path);
    }
    while (good && sqlite3_step(rows) == SQLITE_ROW) {
        const size_t before = tracing->count;
        good = replay_entry(tracing->exchange, sqlite3_column_blob(rows, 0),
                            (size_t)sqlite3_column_bytes(rows, 0), note_effects, tracing,
                            problem) == REPLAY_OK;
        tracing->commits += tracing->count > before;
    }
    (void)sqlite3_finalize(rows);
    (void)sqlite3_close(database); /* read only */
    return good && !tracing->out_of_memory;
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static double percentile_ms(const struct tracing *tracing, size_t per_cent)
{
    return tracing->count == 0
               ? 0
               : (double)tracing->taken_ns[(tracing->count - 1) * per_cent / 100] / 1e6;
}

bool latency_of(const char *folder, const struct id128 *jobs, size_t job_count,
                struct latency *ret_latency, struct problem *ret_problem)
{
    struct exchange_limits limits = exchange_limits_default();
    struct tracing tracing = {.exchange = exchange_create(&limits),
                              .jobs = jobs,
                              .job_count = job_count,
                              .sent_ns = calloc(job_count, sizeof(int64_t *))};
    problem_set(ret_problem, "out of memory");
    bool good =
        tracing.exchange != NULL && tracing.sent_ns != NULL && walk(&tracing, folder, ret_problem);
    if (good) {
        qsort(tracing.taken_ns, tracing.count, sizeof *tracing.taken_ns, compare);
        ret_latency->count = tracing.count;
        ret_latency->signatures = tracing.signatures;
        ret_latency->commits = tracing.commits;
        ret_latency->p50_ms = percentile_ms(&tracing, 50);
        ret_latency->p99_ms = percentile_ms(&tracing, 99);
    }
    for (size_t i = 0; tracing.sent_ns != NULL && i < job_count; i++) {
        free(tracing.sent_ns[i]);
    }
    free(tracing.sent_ns);
    free(tracing.leases);
    free(tracing.lease_jobs);
    free(tracing.taken_ns);
    exchange_destroy(&tracing.exchange);
    return good;
}
