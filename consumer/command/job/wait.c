/* This file runs `wait`, which waits until all the jobs named have ended, or the first of them. The
 * option --after of `submit` and `run` waits in the same way. */
#include "consumer/command/job/job_words.h"
#include "consumer/command/job/jobs.h"
#include "consumer/command/job/watch.h"
#include "consumer/command/notes.h"
#include "consumer/command/show.h"
#include "consumer/command/state.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "runtime/clock.h"

#include <stdlib.h>
#include <string.h>

enum { ROUND_MS = 1000 };

struct waiting {
    struct invocation *invocation;
    struct job_ids ids;
    struct bourse_job_row rows[JOB_WORDS_MAX]; /* the last row of each job, without leases */
    bool has_ended[JOB_WORDS_MAX];
    uint32_t absent[JOB_WORDS_MAX]; /* providers of each job that are silent or frozen */
    size_t ended;
    size_t turn;         /* the open job that is watched next */
    int64_t most_ms;     /* how long the wait may take; 0: for ever */
    int64_t deadline_ns; /* INT64_MAX: none */
    bool is_any;         /* --any: the wait is over when the first job has ended */
    bool is_for_success; /* --after: a job without success ends the wait; ends are not printed */
    bool is_lost;        /* the broker cannot be reached */
    bool has_looked;     /* the broker answered once, so an outage no longer ends the command */
    struct progress progress;
};

static void say_absent(struct waiting *waiting, size_t index, const struct bourse_job_row *row)
{
    if (!waiting->invocation->quiet && row->state == BOURSE_OPEN) {
        jobs_say_absent(&waiting->progress, row, &waiting->absent[index]);
    }
}

static void take_row(struct waiting *waiting, size_t index, const struct bourse_job_row *row)
{
    say_absent(waiting, index, row);
    waiting->rows[index] = *row;
    waiting->rows[index].leases = NULL; /* the list owns the leases */
    waiting->rows[index].lease_count = 0;
    if (row->state == BOURSE_OPEN) {
        return;
    }
    waiting->has_ended[index] = true;
    waiting->ended++;
    if (waiting->invocation->json || waiting->is_for_success) {
        return;
    }
    progress_end(&waiting->progress);
    if (waiting->invocation->quiet) {
        (void)puts(row->id);
    } else {
        char line[JOB_ENDED_SIZE];
        job_ended_line(row, line);
        (void)puts(line);
    }
    (void)fflush(stdout);
    if (!waiting->is_lost) {
        notes_say_left_out_of(waiting->invocation, row->id);
    }
}

/* Asks for one job that the list of the newest jobs does not have. */
static bool look_at(struct waiting *waiting, size_t index, struct bourse_error *error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_jobs(waiting->invocation->bourse, waiting->ids.items[index], &jobs, error)) {
        return false;
    }
    take_row(waiting, index, bourse_jobs_row(jobs, 0));
    return true;
}

static const struct bourse_job_row *find(const struct bourse_jobs *jobs, const char *id)
{
    for (size_t i = 0; i < bourse_jobs_count(jobs); i++) {
        if (strcmp(bourse_jobs_row(jobs, i)->id, id) == 0) {
            return bourse_jobs_row(jobs, i);
        }
    }
    return NULL;
}

/* Reads the state of every job that has not ended. */
static bool look(struct waiting *waiting, struct bourse_error *error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_jobs(waiting->invocation->bourse, NULL, &jobs, error)) {
        return false;
    }
    for (size_t i = 0; i < waiting->ids.count; i++) {
        const struct bourse_job_row *row =
            waiting->has_ended[i] ? NULL : find(jobs, waiting->ids.items[i]);
        if (row != NULL) {
            take_row(waiting, i, row);
        } else if (!waiting->has_ended[i] && !look_at(waiting, i, error)) {
            return false;
        }
    }
    return true;
}

static bool on_row(void *context, const struct bourse_job_row *row)
{
    struct waiting *waiting = context;
    if (row == NULL) {
        watch_say_unreachable(&waiting->progress, waiting->invocation,
                              waiting->ids.count == 1 ? "the job goes on" : "the jobs go on",
                              waiting->is_lost);
    }
    waiting->is_lost = row == NULL;
    if (!waiting->is_lost) {
        say_absent(waiting, waiting->turn, row);
        progress_text(&waiting->progress, false, "%zu of %zu jobs ended", waiting->ended,
                      waiting->ids.count);
    }
    return true;
}

/* Watches one open job for a round. The jobs take turns, because a client judges the held results
 * only of the job that it watches. */
static bool wait_round(struct waiting *waiting, struct bourse_error *error)
{
    struct bourse_job_row last;
    do {
        waiting->turn = (waiting->turn + 1) % waiting->ids.count;
    } while (waiting->has_ended[waiting->turn]);
    int64_t round_ms = waiting->ids.count == 1 ? INT64_MAX : ROUND_MS;
    if (waiting->deadline_ns != INT64_MAX) {
        const int64_t rest_ms = (waiting->deadline_ns - clock_monotonic_ns()) / NS_PER_MS;
        round_ms = rest_ms < round_ms ? rest_ms : round_ms;
    }
    if (round_ms <= 0) {
        *error = (struct bourse_error){.status = BOURSE_TIMED_OUT, .name = "TIMED_OUT"};
        (void)snprintf(error->text, sizeof error->text, "%zu of %zu job%s not ended",
                       waiting->ids.count - waiting->ended, waiting->ids.count,
                       waiting->ids.count == 1 ? " has" : "s have");
        return false;
    }
    if (bourse_wait(waiting->invocation->bourse, waiting->ids.items[waiting->turn],
                    round_ms == INT64_MAX ? 0 : round_ms, on_row, waiting, &last, error)) {
        return true;
    }
    return error->status == BOURSE_TIMED_OUT ||
           (waiting->is_lost && error->status == BOURSE_UNREACHABLE);
}

static bool is_over(const struct waiting *waiting)
{
    for (size_t i = 0; waiting->is_for_success && i < waiting->ids.count; i++) {
        if (waiting->has_ended[i] && waiting->rows[i].state != BOURSE_DONE) {
            return true;
        }
    }
    return waiting->ended == waiting->ids.count || (waiting->is_any && waiting->ended > 0);
}

static bool wait_for_end(struct waiting *waiting, struct bourse_error *error)
{
    for (;;) {
        if (!waiting->is_lost && !look(waiting, error)) {
            const bool is_passing =
                error->status == BOURSE_UNREACHABLE || error->status == BOURSE_TIMED_OUT;
            if (!is_passing || !waiting->has_looked) {
                return false;
            }
            (void)on_row(waiting, NULL);
        }
        waiting->has_looked = true;
        if (is_over(waiting)) {
            return true;
        }
        if (!wait_round(waiting, error)) {
            return false;
        }
    }
}

/* Returns the exit status of the worst end: failed is worse than cancelled, then comes no device,
 * then done. */
static int worst_status(const struct waiting *waiting)
{
    static const int from_worst[] = {BOURSE_JOB_FAILED, BOURSE_CANCELLED, BOURSE_NO_MATCH};
    for (size_t k = 0; k < sizeof from_worst / sizeof *from_worst; k++) {
        for (size_t i = 0; i < waiting->ids.count; i++) {
            if (waiting->has_ended[i] && job_exit_status(&waiting->rows[i]) == from_worst[k]) {
                return from_worst[k];
            }
        }
    }
    return BOURSE_OK;
}

static int finish(const struct waiting *waiting)
{
    const int status = worst_status(waiting);
    if (!waiting->invocation->json) {
        return status;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < waiting->ids.count; i++) {
        if (waiting->has_ended[i]) {
            (void)json_array_append_new(list, json_job(&waiting->rows[i]));
        }
    }
    return json_print(json_pack("{s:o}", "jobs", list), status);
}

/* Makes a wait that ends after --wait-at-most. The caller frees it. On failure it prints a message,
 * sets *ret_status and returns NULL. */
static struct waiting *waiting_begin(struct invocation *invocation, int *ret_status)
{
    int64_t most_ms = 0;
    int64_t most_ns = 0;
    if (!option_duration_ms(invocation, "wait-at-most", &most_ms)) {
        *ret_status = BOURSE_USAGE;
        return NULL;
    }
    struct waiting *waiting = calloc(1, sizeof *waiting);
    if (waiting == NULL) {
        *ret_status = complain(invocation, BOURSE_LOCAL, "out of memory");
        return NULL;
    }
    waiting->invocation = invocation;
    waiting->most_ms = most_ms;
    waiting->deadline_ns = INT64_MAX;
    if (most_ms > 0 && (!checked_mul(most_ms, NS_PER_MS, &most_ns) ||
                        !checked_add(clock_monotonic_ns(), most_ns, &waiting->deadline_ns))) {
        waiting->deadline_ns = INT64_MAX;
    }
    return waiting;
}

static int run_wait(struct waiting *waiting)
{
    struct bourse_error error;
    state_say_of_market(waiting->invocation);
    waiting->progress = progress_start(waiting->invocation);
    const bool has_ended = wait_for_end(waiting, &error);
    progress_end(&waiting->progress);
    if (has_ended) {
        return finish(waiting);
    }
    const int status = complain_with(waiting->invocation, &error);
    if (error.status == BOURSE_INTERRUPTED || error.status == BOURSE_TIMED_OUT) {
        (void)fputs("bourse: the jobs go on without this command; `bourse ps` lists them\n",
                    stderr);
    }
    return status;
}

int command_wait(struct invocation *invocation)
{
    int status = 0;
    struct waiting *waiting = waiting_begin(invocation, &status);
    if (waiting == NULL) {
        return status;
    }
    waiting->is_any = option_given(invocation, "any");
    invocation->calls_most_ms = waiting->most_ms; /* also when no broker answers at all */
    if (command_connect(invocation, &status) &&
        job_words_resolve(invocation, &waiting->ids, &status)) {
        status = run_wait(waiting);
    }
    free(waiting);
    return status;
}

/* ---------------------------------------------------------------- a job after others */

static bool have_succeeded(struct waiting *waiting, int *ret_status)
{
    struct bourse_error error;
    waiting->is_for_success = true;
    waiting->progress = progress_start(waiting->invocation);
    const bool has_ended = wait_for_end(waiting, &error);
    progress_end(&waiting->progress);
    if (!has_ended) {
        *ret_status = complain_with(waiting->invocation, &error);
        (void)fputs("bourse: nothing was submitted\n", stderr);
        return false;
    }
    for (size_t i = 0; i < waiting->ids.count; i++) {
        const struct bourse_job_row *row = &waiting->rows[i];
        if (waiting->has_ended[i] && row->state != BOURSE_DONE) {
            const bool is_plain =
                row->reason_text[0] == '\0' || strcmp(row->reason_text, row->state_text) == 0;
            *ret_status = complain(waiting->invocation, BOURSE_CANCELLED,
                                   "job %.8s ended as %s%s%s, so the job after it does not begin; "
                                   "nothing was submitted",
                                   row->id, row->state_text, is_plain ? "" : ": ",
                                   is_plain ? "" : row->reason_text);
            return false;
        }
    }
    return true;
}

bool wait_for_success(struct invocation *invocation, const struct job_strings *more,
                      int *ret_status)
{
    struct waiting *waiting = waiting_begin(invocation, ret_status);
    const bool is_success =
        waiting != NULL &&
        job_words_of_option(invocation, "after", more, &waiting->ids, ret_status) &&
        have_succeeded(waiting, ret_status);
    free(waiting);
    return is_success;
}
