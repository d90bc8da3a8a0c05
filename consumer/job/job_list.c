/* This file finds, lists and watches jobs on the market. */
#include "consumer/client/client.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/client/rows.h"
#include "consumer/job/submit.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PREFIX_MIN = 1 };

struct bourse_jobs {
    size_t count;
    struct bourse_job_row *rows;
    struct bourse_lease *leases; /* of all rows, one block */
};

void bourse_jobs_destroy(struct bourse_jobs **self)
{
    if (*self != NULL) {
        free((*self)->rows);
        free((*self)->leases);
        free(*self);
        *self = NULL;
    }
}

size_t bourse_jobs_count(const struct bourse_jobs *jobs)
{
    return jobs->count;
}

const struct bourse_job_row *bourse_jobs_row(const struct bourse_jobs *jobs, size_t index)
{
    return &jobs->rows[index];
}

static int newest_first(const void *a, const void *b)
{
    const struct bourse_job_row *left = a;
    const struct bourse_job_row *right = b;
    if (left->submitted_ms != right->submitted_ms) {
        return left->submitted_ms < right->submitted_ms ? 1 : -1;
    }
    return strcmp(left->id, right->id);
}

/* Returns the market's time now. */
static int64_t market_ms(const struct bourse *bourse)
{
    return consumer_session_log_time_ms(bourse->session, clock_monotonic_ns());
}

/* Fills in the leases of the reply's rows. Only the reply about one job has leases. */
static bool take_leases(struct bourse_jobs *jobs, const Bourse__V1__JobRow *wire,
                        struct bourse_job_row *row)
{
    if (wire->n_leases == 0 || jobs->leases != NULL) {
        return true;
    }
    jobs->leases = calloc(wire->n_leases, sizeof *jobs->leases);
    for (size_t i = 0; jobs->leases != NULL && i < wire->n_leases; i++) {
        rows_lease(wire->leases[i], &jobs->leases[i]);
    }
    row->leases = jobs->leases;
    row->lease_count = wire->n_leases;
    return jobs->leases != NULL;
}

/* Appends the rows of a reply, as far as `most` allows. Returns false when memory is short. */
static bool take_page(const struct bourse *bourse, struct bourse_jobs *jobs,
                      const Bourse__V1__JobsReply *reply, size_t most)
{
    const size_t room = most - jobs->count;
    const size_t count = reply->n_jobs < room ? reply->n_jobs : room;
    struct bourse_job_row *rows = realloc(jobs->rows, (jobs->count + count + 1) * sizeof *rows);
    if (rows == NULL) {
        return false;
    }
    jobs->rows = rows;
    for (size_t i = 0; i < count; i++) {
        struct bourse_job_row *row = &rows[jobs->count++];
        memset(row, 0, sizeof *row);
        rows_job(reply->jobs[i], row);
        row->seen_ms = market_ms(bourse);
        row->leases = NULL;
        row->lease_count = 0;
        if (!take_leases(jobs, reply->jobs[i], row)) {
            return false;
        }
    }
    return true;
}

/* Asks for one page, and appends it. Sets `from` of the body to the next page, if there is one. */
static bool ask_page(struct bourse *bourse, Bourse__V1__JobsRequest *body, size_t most,
                     struct bourse_jobs *jobs, struct bourse_error *ret_error)
{
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    if (!client_call(bourse, MESSAGE_JOBS_REQUEST, &body->base, MESSAGE_JOBS_REPLY, &answer,
                     ret_error)) {
        return false;
    }
    const Bourse__V1__JobsReply *reply = (const void *)answer;
    /* Each page must lead on, else a broker could keep its client asking for ever. */
    body->has_from =
        reply->has_next && reply->n_jobs > 0 && (!body->has_from || reply->next < body->from);
    body->from = reply->next;
    return take_page(bourse, jobs, reply, most) ||
           client_fail(ret_error, BOURSE_LOCAL, "out of memory");
}

/* Asks for the pages of the list, up to `most` jobs, or for the one job that the body names. */
static bool ask_pages(struct bourse *bourse, Bourse__V1__JobsRequest *body, size_t most,
                      struct bourse_jobs **ret_jobs, struct bourse_error *ret_error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = calloc(1, sizeof *jobs);
    if (jobs == NULL) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    body->has_limit = 1;
    body->limit = most < LIMIT_ROWS ? (uint32_t)most : LIMIT_ROWS;
    do {
        if (!ask_page(bourse, body, most, jobs, ret_error)) {
            return false;
        }
    } while (body->has_from && jobs->count < most);
    qsort(jobs->rows, jobs->count, sizeof *jobs->rows, newest_first);
    *ret_jobs = jobs;
    jobs = NULL;
    return true;
}

bool bourse_jobs(struct bourse *bourse, const char *id, struct bourse_jobs **ret_jobs,
                 struct bourse_error *ret_error)
{
    struct id128 job;
    Bourse__V1__JobsRequest body = BOURSE__V1__JOBS_REQUEST__INIT;
    if (id != NULL) {
        if (!client_id_read(id, &job, ret_error)) {
            return false;
        }
        body.has_job = 1;
        body.job = client_bytes(job.bytes, sizeof job.bytes);
    }
    struct bourse_jobs *jobs = NULL;
    if (!ask_pages(bourse, &body, LIMIT_ROWS, &jobs, ret_error)) {
        return false;
    }
    if (id != NULL && jobs->count == 0) {
        bourse_jobs_destroy(&jobs);
        return client_fail(ret_error, BOURSE_NOT_FOUND, "no job %s", id);
    }
    *ret_jobs = jobs;
    return true;
}

bool bourse_all_jobs(struct bourse *bourse, size_t most, struct bourse_jobs **ret_jobs,
                     struct bourse_error *ret_error)
{
    Bourse__V1__JobsRequest body = BOURSE__V1__JOBS_REQUEST__INIT;
    return ask_pages(bourse, &body, most < BOURSE_JOBS_MOST ? most : BOURSE_JOBS_MOST, ret_jobs,
                     ret_error);
}

bool bourse_subtasks(struct bourse *bourse, const char *id, struct bourse_subtask **ret_subtasks,
                     uint32_t *ret_count, struct bourse_error *ret_error)
{
    struct id128 job;
    Bourse__V1__JobsRequest body = BOURSE__V1__JOBS_REQUEST__INIT;
    if (!client_id_read(id, &job, ret_error)) {
        return false;
    }
    body.has_job = body.has_subtasks = body.subtasks = 1;
    body.job = client_bytes(job.bytes, sizeof job.bytes);
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    if (!client_call(bourse, MESSAGE_JOBS_REQUEST, &body.base, MESSAGE_JOBS_REPLY, &answer,
                     ret_error)) {
        return false;
    }
    const Bourse__V1__JobsReply *reply = (const void *)answer;
    const Bourse__V1__JobRow *row = reply->n_jobs == 1 ? reply->jobs[0] : NULL;
    const size_t count = row == NULL || row->states.len != row->n_tries ? 0 : row->n_tries;
    struct bourse_subtask *subtasks = calloc(count + 1, sizeof *subtasks);
    if (subtasks == NULL) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t state = row->states.data[i];
        if (state > BOURSE_SUBTASK_QUEUED) {
            free(subtasks);
            return client_fail(ret_error, BOURSE_UNVERIFIED,
                               "the broker sent no state of subtask %zu", i);
        }
        subtasks[i] = (struct bourse_subtask){(enum bourse_subtask_state)state, row->tries[i]};
    }
    *ret_subtasks = subtasks;
    *ret_count = (uint32_t)count;
    return true;
}

/* ---------------------------------------------------------------- finding */

static bool is_id_prefix(const char *text)
{
    size_t length = strlen(text);
    if (length < PREFIX_MIN || length >= BOURSE_ID_SIZE) {
        return false;
    }
    return strspn(text, "0123456789abcdefABCDEF") == length;
}

static bool is_whole_id(const char *text)
{
    return is_id_prefix(text) && strlen(text) == BOURSE_ID_SIZE - 1;
}

/* These jobs may be meant by a word. */
struct candidates {
    const struct bourse_job_row *by_prefix, *by_name; /* by_name: the newest, open before ended */
    size_t prefixes, open_names;
};

static struct candidates candidates_of(const struct bourse_jobs *jobs, const char *word)
{
    struct candidates found = {.prefixes = 0};
    for (size_t i = 0; i < jobs->count; i++) {
        const struct bourse_job_row *row = &jobs->rows[i];
        if (is_id_prefix(word) && strncasecmp(row->id, word, strlen(word)) == 0) {
            found.prefixes++;
            found.by_prefix = row;
        }
        if (strcmp(row->name, word) == 0) {
            const bool is_open = row->state == BOURSE_OPEN;
            if (found.by_name == NULL || (is_open && found.open_names == 0)) {
                found.by_name = row;
            }
            found.open_names += is_open;
        }
    }
    return found;
}

static bool pick(const struct bourse_jobs *jobs, const char *word, char ret_id[BOURSE_ID_SIZE],
                 struct bourse_error *error)
{
    const struct candidates found = candidates_of(jobs, word);
    if (found.prefixes > 1) {
        return client_fail(error, BOURSE_USAGE,
                           "'%.64s' begins the ids of %zu jobs; give more digits", word,
                           found.prefixes);
    }
    if (found.by_prefix != NULL && found.by_name != NULL && found.by_name != found.by_prefix) {
        return client_fail(error, BOURSE_USAGE,
                           "'%.64s' begins the id of job %.8s and is the name of job %.8s; give "
                           "more digits of the id that you mean",
                           word, found.by_prefix->id, found.by_name->id);
    }
    if (found.by_prefix == NULL && found.open_names > 1) {
        return client_fail(error, BOURSE_USAGE,
                           "%zu open jobs have the name '%.64s'; give the id of one, which `bourse "
                           "ps` shows",
                           found.open_names, word);
    }
    const struct bourse_job_row *row = found.by_prefix != NULL ? found.by_prefix : found.by_name;
    if (row == NULL) {
        return client_fail(error, BOURSE_NOT_FOUND,
                           "no job has the id or name '%.64s'; `bourse ps` lists yours", word);
    }
    memcpy(ret_id, row->id, BOURSE_ID_SIZE);
    return true;
}

bool bourse_find_job(struct bourse *bourse, const char *text, char ret_id[BOURSE_ID_SIZE],
                     struct bourse_error *ret_error)
{
    const bool is_last = strcmp(text, "last") == 0;
    if (is_whole_id(text)) { /* the broker knows whether the job exists */
        for (size_t i = 0; i < BOURSE_ID_SIZE; i++) {
            ret_id[i] = (char)tolower((unsigned char)text[i]);
        }
        return true;
    }
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_all_jobs(bourse, is_last ? 1 : BOURSE_JOBS_MOST, &jobs, ret_error)) {
        return false;
    }
    assert(jobs != NULL);
    if (!is_last) {
        return pick(jobs, text, ret_id, ret_error);
    }
    if (jobs->count == 0) {
        return client_fail(ret_error, BOURSE_NOT_FOUND, "this account has no job yet");
    }
    memcpy(ret_id, jobs->rows[0].id, BOURSE_ID_SIZE);
    return true;
}

/* ---------------------------------------------------------------- watching */

#define LOOK_NS (10 * NS_PER_S)       /* time between two looks at the job and its leases */
#define MEND_NS (2 * NS_PER_S)        /* time between two questions for lost files */
#define MEND_AGAIN_NS (10 * NS_PER_S) /* time to the next question after a failed sending */
#define JUDGE_AGAIN_NS (2 * NS_PER_S) /* least time between two tries to judge */

struct wait {
    struct bourse *client;
    struct id128 job;
    bourse_watcher *watcher;
    void *context;
    struct bourse_job_row *last;
    bool has_judged; /* results were judged here, and more may follow */
    int64_t judge_at_ns;
    bool is_lost; /* the connection is lost */
    int64_t mend_at_ns, look_at_ns;
};

/* Tells the watcher about a row. Returns false when the wait is over. */
static bool tell(const struct wait *wait, const struct bourse_job_row *row)
{
    const bool more = wait->watcher == NULL || wait->watcher(wait->context, row);
    *wait->last = *row;
    wait->last->leases = NULL;
    wait->last->lease_count = 0;
    return more && row->state == BOURSE_OPEN;
}

static enum consumer_status watch_anew(const struct wait *wait)
{
    struct id128 request = entropy_id();
    consumer_session_unwatch(wait->client->session, &wait->job);
    return consumer_session_watch(wait->client->session, clock_monotonic_ns(), &request,
                                  &wait->job);
}

/* Judges results that nobody else can judge. A failure says nothing about the job: the market still
 * holds the results, and `bourse explain` tells the user. */
static void judge_if_asked(struct wait *wait)
{
    const bool is_asked = wait->last->accused > 0 || (wait->has_judged && wait->last->checking > 0);
    struct bourse_judged judged;
    struct bourse_error ignored;
    if (!is_asked || clock_monotonic_ns() < wait->judge_at_ns) {
        return;
    }
    if (bourse_judge(wait->client, wait->last->id, &judged, &ignored)) {
        const uint32_t count = judged.accepted + judged.rejected + judged.unsure;
        wait->has_judged = wait->has_judged || count > 0;
        if (count > 0) {
            (void)watch_anew(wait); /* the judging consumed events of the watch */
        }
    }
    wait->judge_at_ns = clock_monotonic_ns() + JUDGE_AGAIN_NS;
}

/* Sends lost files again. A failure says nothing about the job. */
static void mend_if_due(struct wait *wait)
{
    struct bourse *client = wait->client;
    struct bourse_error error = {.status = BOURSE_OK};
    if (client->kept == NULL || wait->is_lost || clock_monotonic_ns() < wait->mend_at_ns) {
        return;
    }
    if (submit_send_lost(client, client->kept, &error)) {
        (void)watch_anew(wait); /* the sending consumed events of the watch */
    }
    wait->mend_at_ns = clock_monotonic_ns() + (error.status == BOURSE_OK ? MEND_NS : MEND_AGAIN_NS);
}

/* Asks for the job with its leases, which tell of silent providers. Rows of a watch have no leases,
 * and a busy broker may have no place for one more watch. Returns false when the wait is over. A
 * failure says nothing about the job. */
static bool look_if_due(struct wait *wait)
{
    const bool knows_job = wait->last->id[0] != '\0';
    bool more = true;
    if (wait->is_lost || clock_monotonic_ns() < wait->look_at_ns) {
        return true;
    }
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    struct bourse_error ignored;
    if (knows_job && bourse_jobs(wait->client, wait->last->id, &jobs, &ignored)) {
        more = tell(wait, &jobs->rows[0]);
    }
    if (more) {
        (void)watch_anew(wait); /* the question consumed events of the watch */
    }
    wait->look_at_ns = clock_monotonic_ns() + LOOK_NS;
    return more;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns when something is to be done without an event. */
static int64_t due_ns(const struct wait *wait)
{
    const int64_t mend_ns = wait->client->kept == NULL ? INT64_MAX : wait->mend_at_ns;
    const int64_t listen_ns = client_listening_turn(wait->client, &wait->job);
    return earlier(listen_ns, wait->is_lost ? INT64_MAX : earlier(mend_ns, wait->look_at_ns));
}

/* Takes an event. Returns false when the wait is over: with an error when the job is gone. */
static bool take_event(struct wait *wait, struct consumer_event *event, bool *ret_gone,
                       struct bourse_error *error)
{
    bool more = true;
    const bool is_ours = id128_equal(&event->job, &wait->job);
    wait->is_lost = event->type == CONSUMER_LOST;
    if (event->type == CONSUMER_JOB && is_ours) {
        struct bourse_job_row row;
        rows_job(event->row, &row);
        row.seen_ms = market_ms(wait->client);
        more = tell(wait, &row);
    } else if (event->type == CONSUMER_GONE && is_ours) {
        *ret_gone = true;
        more = client_rejected(error, event);
    } else if (wait->is_lost && wait->watcher != NULL) {
        more = wait->watcher(wait->context, NULL);
    }
    return more;
}

static bool watch_until(struct wait *wait, int64_t deadline_ns, struct bourse_error *error)
{
    for (;;) {
        struct consumer_event event;
        bool is_gone = false;
        mend_if_due(wait);
        if (!look_if_due(wait)) {
            return true;
        }
        enum client_wait got =
            client_next(wait->client, earlier(due_ns(wait), deadline_ns), &event, error);
        if (got == CLIENT_TIMEOUT && clock_monotonic_ns() < deadline_ns) {
            continue;
        }
        if (got == CLIENT_TIMEOUT) {
            bool is_told = wait->last->reason_text[0] != '\0';
            return client_fail(error, BOURSE_TIMED_OUT, "the job has not ended%s%s",
                               is_told ? ": " : "", is_told ? wait->last->reason_text : "");
        }
        if (got != CLIENT_EVENT) {
            return false;
        }
        if (client_listening_is(&event)) { /* it says nothing about the job */
            consumer_event_clear(&event);
            continue;
        }
        const bool more = take_event(wait, &event, &is_gone, error);
        consumer_event_clear(&event);
        if (!more) {
            return !is_gone;
        }
        judge_if_asked(wait);
    }
}

bool bourse_wait(struct bourse *bourse, const char *id, int64_t timeout_ms, bourse_watcher *watcher,
                 void *context, struct bourse_job_row *ret_row, struct bourse_error *ret_error)
{
    struct wait wait = {.client = bourse, .watcher = watcher, .context = context, .last = ret_row};
    *ret_row = (struct bourse_job_row){.state_text = "", .reason_text = ""};
    if (!client_id_read(id, &wait.job, ret_error) || !client_ready(bourse, ret_error)) {
        return false;
    }
    int64_t now_ns = clock_monotonic_ns();
    wait.look_at_ns = now_ns + LOOK_NS;
    if (watch_anew(&wait) != CONSUMER_OK) {
        return client_fail(ret_error, BOURSE_LOCAL, "too many jobs are watched at once");
    }
    int64_t deadline_ns = INT64_MAX;
    if (timeout_ms > 0 && (!checked_mul(timeout_ms, NS_PER_MS, &deadline_ns) ||
                           !checked_add(deadline_ns, now_ns, &deadline_ns))) {
        deadline_ns = INT64_MAX;
    }
    bool ended = watch_until(&wait, deadline_ns, ret_error);
    if (ended && !wait.is_lost) {
        client_listening_drain(bourse, &wait.job);
    }
    consumer_session_unwatch(bourse->session, &wait.job);
    return ended;
}
