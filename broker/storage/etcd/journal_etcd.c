#include "broker/storage/etcd/journal_etcd.h"

#include "base/checked.h"
#include "broker/storage/etcd/etcd_calls.h"
#include "broker/storage/etcd/etcd_log.h"
#include "broker/storage/etcd/etcd_values.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/log.h"
#include "runtime/process.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    REQUEST_MS = 300, /* one request of an append, at first */
    READ_MS = 3000,   /* one request of a read, which may bring megabytes */
    FOLLOW_MS = 500,  /* the same, of a read that waits for the next entry */
    POLL_MS = 50      /* between two reads of an entry that is not there yet */
};

/* Between two looks at which members do not answer. */
#define EXPLAIN_NS (5 * NS_PER_S)

/* An operation that a caller waits for. */
struct job {
    enum { JOB_LEAD, JOB_RESIGN, JOB_APPEND, JOB_TRUNCATE, JOB_READ, JOB_FOLLOW, JOB_LOOK } kind;
    uint64_t index, epoch, mark;
    const struct journal_leader *me;
    const struct journal_entry *entries;
    size_t count;
    const struct journal_base *base;
    bool is_done;
    enum journal_status status;
};

struct engine {
    struct journal_etcd_start start;
    struct etcd_calls *calls;
    struct etcd_log *log; /* of whoever has the mutex */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct job *job; /* NULL: none */
    bool ends, is_told;
    bool is_stuck;        /* the last append was not taken */
    bool is_away;         /* etcd takes no entry */
    int64_t explained_ns; /* monotonic: the reason is not looked for again before */
};

/* ---- the thread */

static enum journal_status begin(struct engine *engine, const struct job *job)
{
    switch (job->kind) {
    case JOB_LEAD:
        etcd_log_lead(engine->log, job->index, job->me, job->mark);
        return JOURNAL_OK;
    case JOB_RESIGN:
        return etcd_log_resign(engine->log, job->epoch, job->me);
    case JOB_APPEND:
        return etcd_log_append(engine->log, job->epoch, job->entries, job->count);
    case JOB_TRUNCATE:
        return etcd_log_truncate(engine->log, job->epoch, job->base);
    case JOB_READ:
    case JOB_FOLLOW:
        etcd_log_read(engine->log, job->index);
        return JOURNAL_OK;
    case JOB_LOOK:
        etcd_log_look(engine->log);
        return JOURNAL_OK;
    }
    return JOURNAL_CORRUPT;
}

static int64_t bound_of(const struct job *job)
{
    switch (job->kind) {
    case JOB_APPEND:
    case JOB_LOOK:
        return JOURNAL_ETCD_APPEND_MS;
    case JOB_TRUNCATE:
        return JOURNAL_ETCD_CUT_MS;
    case JOB_RESIGN:
        return JOURNAL_ETCD_RESIGN_MS;
    case JOB_FOLLOW:
        return JOURNAL_ETCD_FOLLOW_MS;
    case JOB_LEAD:
    case JOB_READ:
        break;
    }
    return JOURNAL_ETCD_START_MS;
}

static int64_t patience_of(const struct job *job)
{
    return job->kind == JOB_READ ? READ_MS : job->kind == JOB_FOLLOW ? FOLLOW_MS : REQUEST_MS;
}

/* Members come and go during an outage, so the reason is looked for again now and then. */
static void say_why(struct engine *engine, enum journal_status status, bool was_away)
{
    char why[QUORUM_NOTE_SIZE];
    const int64_t now_ns = clock_monotonic_ns();
    if (engine->start.quorum == NULL || (was_away && now_ns < engine->explained_ns)) {
        return;
    }
    engine->explained_ns = now_ns + EXPLAIN_NS;
    if (status == JOURNAL_FULL) {
        (void)snprintf(why, sizeof why, "etcd has reached its quota");
    } else {
        etcd_calls_explain(engine->calls, why, sizeof why);
    }
    quorum_note_say(engine->start.quorum, why);
}

/* An etcd at its quota still answers looks. An append alone shows that entries are taken again. */
static void note_away(struct engine *engine, const struct job *job, enum journal_status status)
{
    const bool has_failed =
        status == JOURNAL_UNKNOWN || status == JOURNAL_FULL || status == JOURNAL_UNAVAILABLE;
    const bool was_away = engine->is_away;
    if (job->kind == JOB_APPEND) {
        if (has_failed && !engine->is_stuck) {
            log_warning("etcd took no entry in time; the last member that was asked: %s",
                        etcd_calls_error(engine->calls));
        }
        engine->is_stuck = has_failed;
    }
    engine->is_away = engine->is_stuck || has_failed;
    if (engine->is_away) {
        say_why(engine, status, was_away);
    }
    if (engine->start.quorum != NULL) {
        atomic_store(&engine->start.quorum->is_away, engine->is_away);
    }
}

static void run_job(struct engine *engine, struct job *job)
{
    const int64_t began_ns = clock_monotonic_ns();
    enum journal_status status = begin(engine, job);
    if (status == JOURNAL_OK) {
        status = etcd_calls_run(engine->calls, engine->log, bound_of(job), patience_of(job));
    }
    if (status == JOURNAL_OK && (job->kind == JOB_APPEND || job->kind == JOB_LEAD) &&
        engine->start.quorum != NULL) {
        atomic_store(&engine->start.quorum->taken_ns, began_ns);
    }
    if (job->kind == JOB_APPEND || job->kind == JOB_LOOK) {
        note_away(engine, job, status);
    }
    if (job->kind == JOB_FOLLOW && engine->start.replica != NULL &&
        (status == JOURNAL_OK || status == JOURNAL_UNAVAILABLE) &&
        etcd_log_is_at_end(engine->log)) {
        atomic_store(&engine->start.replica->at_end_ns, began_ns);
    }
    job->status = status;
}

/* A broker that was deposed, and has nothing to append, would answer from an old state. */
static void look(struct engine *engine)
{
    struct job job = {.kind = JOB_LOOK};
    if (etcd_log_epoch(engine->log) == 0) {
        return;
    }
    run_job(engine, &job);
    if (job.status == JOURNAL_DEPOSED && !engine->is_told && engine->start.deposed != NULL) {
        engine->is_told = true;
        engine->start.deposed(engine->start.context, etcd_log_leader(engine->log));
    }
}

static struct timespec after_ms(int64_t ms)
{
    const int64_t at_ns = clock_monotonic_ns() + ms * NS_PER_MS;
    return (struct timespec){.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S};
}

/* The thread has the mutex while it makes calls. A caller waits for the end of its job anyway. */
static void *run(void *argument)
{
    struct engine *engine = argument;
    process_name_thread("etcd");
    pthread_mutex_lock(&engine->mutex);
    struct timespec due = after_ms(JOURNAL_ETCD_LOOK_MS);
    while (!engine->ends) {
        struct job *job = engine->job;
        if (job != NULL && !job->is_done) {
            run_job(engine, job);
            job->is_done = true;
            pthread_cond_broadcast(&engine->changed);
            due = after_ms(JOURNAL_ETCD_LOOK_MS);
        } else if (pthread_cond_timedwait(&engine->changed, &engine->mutex, &due) != 0) {
            look(engine);
            due = after_ms(JOURNAL_ETCD_LOOK_MS);
        }
    }
    pthread_mutex_unlock(&engine->mutex);
    return NULL;
}

/* ---- the engine: what callers' threads do */

static enum journal_status wait_for(struct engine *engine, struct job *job)
{
    pthread_mutex_lock(&engine->mutex);
    while (engine->job != NULL) {
        pthread_cond_wait(&engine->changed, &engine->mutex);
    }
    engine->job = job;
    pthread_cond_broadcast(&engine->changed);
    while (!job->is_done) {
        pthread_cond_wait(&engine->changed, &engine->mutex);
    }
    engine->job = NULL;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
    return job->status;
}

static enum journal_status engine_lead(void *self, uint64_t last_index,
                                       const struct journal_leader *me, uint64_t *ret_epoch)
{
    struct engine *engine = self;
    struct job job = {.kind = JOB_LEAD, .index = last_index, .me = me, .mark = entropy_u64()};
    const enum journal_status status = wait_for(engine, &job);
    if (status == JOURNAL_OK) {
        pthread_mutex_lock(&engine->mutex);
        *ret_epoch = etcd_log_epoch(engine->log);
        pthread_mutex_unlock(&engine->mutex);
    }
    return status;
}

static enum journal_status engine_resign(void *self, uint64_t epoch,
                                         const struct journal_leader *as)
{
    struct job job = {.kind = JOB_RESIGN, .epoch = epoch, .me = as};
    return wait_for(self, &job);
}

static enum journal_status engine_append(void *self, uint64_t epoch,
                                         const struct journal_entry *entries, size_t count)
{
    struct job job = {.kind = JOB_APPEND, .epoch = epoch, .entries = entries, .count = count};
    return wait_for(self, &job);
}

static enum journal_status engine_truncate(void *self, uint64_t epoch,
                                           const struct journal_base *base)
{
    struct job job = {.kind = JOB_TRUNCATE, .epoch = epoch, .base = base};
    return wait_for(self, &job);
}

static bool is_kept(struct engine *engine, uint64_t index, struct journal_entry *ret_entry)
{
    pthread_mutex_lock(&engine->mutex);
    const bool found = etcd_log_entry(engine->log, index, ret_entry);
    pthread_mutex_unlock(&engine->mutex);
    return found;
}

static enum journal_status engine_next(void *self, uint64_t index, struct journal_entry *ret_entry,
                                       int timeout_ms)
{
    struct engine *engine = self;
    const int64_t end_ns = clock_monotonic_ns() + timeout_ms * NS_PER_MS;
    while (!is_kept(engine, index, ret_entry)) {
        struct job job = {.kind = timeout_ms > 0 ? JOB_FOLLOW : JOB_READ, .index = index};
        const enum journal_status status = wait_for(engine, &job);
        if (status == JOURNAL_UNAVAILABLE && clock_monotonic_ns() < end_ns) {
            const struct timespec pause = {.tv_nsec = POLL_MS * NS_PER_MS};
            (void)nanosleep(&pause, NULL); /* an early end only causes an early try */
        } else if (status != JOURNAL_OK) {
            return status;
        }
    }
    return JOURNAL_OK;
}

static enum journal_status engine_leader(void *self, struct journal_leader *ret_leader)
{
    struct engine *engine = self;
    struct job job = {.kind = JOB_LOOK};
    const enum journal_status status = wait_for(engine, &job);
    if (status == JOURNAL_OK || status == JOURNAL_DEPOSED) {
        pthread_mutex_lock(&engine->mutex);
        *ret_leader = *etcd_log_leader(engine->log);
        pthread_mutex_unlock(&engine->mutex);
        return ret_leader->epoch == 0 ? JOURNAL_UNAVAILABLE : JOURNAL_OK;
    }
    return status;
}

static void engine_destroy(void *self)
{
    struct engine *engine = self;
    if (engine->has_thread) {
        pthread_mutex_lock(&engine->mutex);
        engine->ends = true;
        pthread_cond_broadcast(&engine->changed);
        pthread_mutex_unlock(&engine->mutex);
        pthread_join(engine->thread, NULL);
    }
    pthread_cond_destroy(&engine->changed);
    pthread_mutex_destroy(&engine->mutex);
    etcd_calls_destroy(&engine->calls);
    etcd_log_destroy(&engine->log);
    free(engine);
}

/* ---- the start */

static struct engine *make_engine(const struct journal_etcd_start *start)
{
    struct engine *engine = calloc(1, sizeof *engine);
    pthread_condattr_t monotonic;
    if (engine == NULL) {
        return NULL;
    }
    engine->start = *start;
    pthread_mutex_init(&engine->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&engine->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    engine->calls = etcd_calls_create(start->config, start->etcd_cluster);
    engine->log = etcd_log_create(&start->cluster);
    if (engine->calls == NULL || engine->log == NULL) {
        engine_destroy(engine);
        return NULL;
    }
    return engine;
}

/* The journal of a recovered market is found by the market's id: the journal of that name has ended
 * and says which one goes on. On an etcd that has neither, this says so first, so that no older
 * folder can begin the journal again there. */
static enum journal_status point_to_log(struct engine *engine)
{
    uint8_t ended[ETCD_ENDED_BYTES];
    struct etcd_answer answer;
    const struct etcd_key key = etcd_key_leader(&engine->start.market);
    const struct etcd_bytes value = {.bytes = ended, .length = sizeof ended};
    etcd_ended_write(&engine->start.cluster, ended);
    const struct etcd_request request = {
        .method = ETCD_TXN,
        .compare_count = 1,
        .compares = {{.condition = ETCD_IS_ABSENT, .key = etcd_key_bytes(&key)}},
        .then_count = 1,
        .then = {{.kind = ETCD_PUT, .key = etcd_key_bytes(&key), .value = value}},
        .otherwise_count = 1,
        .otherwise = {{.kind = ETCD_GET, .key = etcd_key_bytes(&key)}},
    };
    if (id128_is_zero(&engine->start.market) ||
        id128_equal(&engine->start.market, &engine->start.cluster)) {
        return JOURNAL_OK;
    }
    const enum journal_status status = etcd_calls_send(engine->calls, &request, READ_MS, &answer);
    if (status != JOURNAL_OK || answer.succeeded) {
        return status;
    }
    return etcd_bytes_equal(etcd_answer_value(&answer, etcd_key_bytes(&key)), value)
               ? JOURNAL_OK
               : JOURNAL_DEPOSED;
}

static enum journal_status open_log(struct engine *engine, struct problem *ret_problem)
{
    if (!etcd_calls_check(engine->calls, ret_problem)) {
        return JOURNAL_UNAVAILABLE;
    }
    enum journal_status status = point_to_log(engine);
    if (status == JOURNAL_OK) {
        etcd_log_open(engine->log, &engine->start.last, &engine->start.entry);
        status = etcd_calls_run(engine->calls, engine->log, JOURNAL_ETCD_START_MS, READ_MS);
    }
    if (status == JOURNAL_CORRUPT) {
        problem_set(ret_problem,
                    "what etcd has under this market's name was not written by a broker");
    } else if (status == JOURNAL_DEPOSED) {
        problem_set(ret_problem,
                    "this folder's journal has ended: the market was recovered, and goes on in a "
                    "new journal. Make the folder anew from a backup of a broker that is there, "
                    "with bourse-broker cluster join");
    } else if (status != JOURNAL_OK) {
        problem_set(ret_problem, "etcd does not open the journal: %s: %s",
                    journal_status_text(status), etcd_calls_error(engine->calls));
    }
    return status;
}

enum journal_status journal_etcd_open(const struct journal_etcd_start *start,
                                      struct journal **ret_journal, uint64_t *ret_etcd_cluster,
                                      struct problem *ret_problem)
{
    static const struct journal_engine functions = {
        .lead = engine_lead,
        .append = engine_append,
        .next = engine_next,
        .leader = engine_leader,
        .resign = engine_resign,
        .truncate = engine_truncate,
        .destroy = engine_destroy,
    };
    *ret_journal = NULL;
    struct engine *engine = make_engine(start);
    if (engine == NULL) {
        problem_set(ret_problem, "no memory for the journal on etcd, or libcurl lacks HTTP/2");
        return JOURNAL_UNAVAILABLE;
    }
    const enum journal_status status = open_log(engine, ret_problem);
    if (status != JOURNAL_OK) {
        engine_destroy(engine);
        return status;
    }
    *ret_etcd_cluster = etcd_calls_cluster(engine->calls);
    engine->has_thread = pthread_create(&engine->thread, NULL, run, engine) == 0;
    if (!engine->has_thread) {
        problem_set(ret_problem, "no thread is left for the journal on etcd");
        engine_destroy(engine);
        return JOURNAL_UNAVAILABLE;
    }
    *ret_journal = journal_create(&functions, engine);
    if (*ret_journal == NULL) {
        problem_set(ret_problem, "out of memory");
        return JOURNAL_UNAVAILABLE;
    }
    return JOURNAL_OK;
}
