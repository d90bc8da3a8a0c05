/* This file runs ps and judge, commands on submitted jobs. */
#include "consumer/command/job/jobs.h"
#include "consumer/command/show.h"
#include "consumer/command/state.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/job/replan.h"
#include "runtime/clock.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- ps */

enum {
    PS_STATES = 8,   /* words of --state that one command takes */
    PS_SHOWN = 1000, /* jobs that are shown without --limit */
};

static const char *state_of(const struct bourse_job_row *row)
{
    return row->state != BOURSE_OPEN ? row->state_text
           : row->running > 0        ? "running"
           : row->checking > 0       ? "checking"
                                     : "waiting";
}

static void add_job(struct grid *table, const struct bourse_job_row *row)
{
    char done[64];
    (void)snprintf(done, sizeof done, "%u/%u", row->accepted, row->subtasks);
    bool busy = row->state == BOURSE_OPEN && row->running > 0;
    const char *cells[] = {cell_short_id(row->id),
                           row->name,
                           state_of(row),
                           done,
                           cell_count(row->failed),
                           cell_count(row->running - row->queued),
                           cell_money(row->charged_micro),
                           cell_money(row->budget_micro),
                           cell_time(row->submitted_ms),
                           busy || row->state == BOURSE_DONE ? ""
                           : row->accused > 0
                               ? "a referee rejects what is held; see `bourse explain`"
                               : row->reason_text};
    grid_add(table, cells);
}

/* The list's rows that pass the filters of the command line, newest first. */
struct ps_filter {
    const char *states[PS_STATES]; /* words of --state */
    size_t state_count;            /* 0: every state */
    const char *name;              /* pattern; NULL: every name */
    int64_t since_ms;              /* submitted at this time or later */
    int64_t most;                  /* rows to show */
};

static bool is_shown(const struct ps_filter *filter, const struct bourse_job_row *row)
{
    bool has_state = filter->state_count == 0;
    for (size_t i = 0; i < filter->state_count; i++) {
        const char *word = filter->states[i];
        has_state = has_state || strcmp(word, state_of(row)) == 0 ||
                    (strcmp(word, "open") == 0 && row->state == BOURSE_OPEN);
    }
    return has_state && row->submitted_ms >= filter->since_ms &&
           (filter->name == NULL || fnmatch(filter->name, row->name, 0) == 0);
}

struct shown_jobs {
    const struct bourse_job_row **items; /* owned; the list owns the rows */
    size_t count;
    size_t left_out; /* jobs that pass the filters, too, and are older */
};

static void shown_jobs_fini(struct shown_jobs *shown)
{
    free(shown->items);
}

static bool show_which(const struct bourse_jobs *jobs, const struct ps_filter *filter,
                       struct shown_jobs *ret_shown)
{
    const size_t count = bourse_jobs_count(jobs);
    ret_shown->items = calloc(count + 1, sizeof(const struct bourse_job_row *));
    ret_shown->count = ret_shown->left_out = 0;
    for (size_t i = 0; ret_shown->items != NULL && i < count; i++) {
        const struct bourse_job_row *row = bourse_jobs_row(jobs, i);
        if (!is_shown(filter, row)) {
            continue;
        }
        if ((int64_t)ret_shown->count < filter->most) {
            ret_shown->items[ret_shown->count++] = row;
        } else {
            ret_shown->left_out++;
        }
    }
    return ret_shown->items != NULL;
}

static void print_jobs(const struct shown_jobs *jobs, bool color)
{
    static const char *const titles[] = {"JOB",     "NAME", "STATE",  "DONE",      "FAILED",
                                         "RUNNING", "COST", "BUDGET", "SUBMITTED", "WHY"};
    CLEANUP(grid_fini) struct grid table = grid_of(10, titles, "lllrrrrrll");
    for (size_t i = 0; i < jobs->count; i++) {
        add_job(&table, jobs->items[i]);
    }
    grid_print(&table, stdout, color);
}

/* An absent provider is one that is silent, or that the operator froze while the job had a lease of
 * it. Its subtasks wait for other slots. */
static bool is_absent(const struct bourse_lease *lease)
{
    return lease->silent_ms >= 0 || lease->frozen;
}

/* Returns true when an earlier row names the same provider as absent. */
static bool was_named(const struct bourse_job_row *row, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (is_absent(&row->leases[i]) &&
            strcmp(row->leases[i].provider, row->leases[index].provider) == 0) {
            return true;
        }
    }
    return false;
}

static void print_frozen(FILE *to, const struct bourse_lease *lease)
{
    (void)fprintf(to, "provider %s is frozen by the operator", cell_plain(lease->provider));
    if (lease->frozen_why[0] != '\0') {
        (void)fprintf(to, ": \"%s\"", cell_sentence(lease->frozen_why));
    }
    (void)fputs(". Its leases have ended, and its subtasks wait for other slots\n", to);
}

static void print_absent(FILE *to, const struct bourse_job_row *row)
{
    for (size_t i = 0; i < row->lease_count && row->state == BOURSE_OPEN; i++) {
        const struct bourse_lease *lease = &row->leases[i];
        if (!is_absent(lease) || was_named(row, i)) {
            continue;
        }
        if (lease->frozen) {
            print_frozen(to, lease);
            continue;
        }
        (void)fprintf(to,
                      "provider %s is silent%s%s: its subtasks wait for other slots, and its "
                      "results count if it comes back first\n",
                      cell_plain(lease->provider), lease->silent_ms > 0 ? ", for " : "",
                      lease->silent_ms > 0 ? cell_duration(lease->silent_ms) : "");
    }
}

void jobs_say_absent(struct progress *progress, const struct bourse_job_row *row, uint32_t *absent)
{
    uint32_t count = 0;
    if (row->leases == NULL) {
        return; /* a row of a watch tells nothing of leases */
    }
    for (size_t i = 0; i < row->lease_count; i++) {
        count += is_absent(&row->leases[i]) && !was_named(row, i);
    }
    if (count > *absent) {
        progress_end(progress);
        print_absent(stderr, row);
    }
    *absent = count;
}

void jobs_print_leases(FILE *to, const struct bourse_job_row *row, bool also_ended, bool color)
{
    static const char *const titles[] = {"LEASE", "PROVIDER", "DEVICE", "STATE",
                                         "SLOTS", "PRICE",    "DONE",   "COST"};
    CLEANUP(grid_fini) struct grid table = grid_of(8, titles, "rlllrrrr");
    for (size_t i = 0; i < row->lease_count; i++) {
        const struct bourse_lease *lease = &row->leases[i];
        if (!also_ended && strcmp(lease->state, "ended") == 0) {
            continue;
        }
        char device[CELL_SIZE];
        char state[CELL_SIZE];
        (void)snprintf(device, sizeof device, "%s%s", lease->simulated ? "SIM " : "",
                       lease->device);
        (void)snprintf(state, sizeof state, "%s%s", lease->state,
                       lease->frozen  ? ", frozen by the operator"
                       : lease->taken ? ", taken"
                                      : "");
        const char *cells[] = {cell_count(lease->lease),
                               lease->provider,
                               device,
                               state,
                               cell_count(lease->slots),
                               cell_money(lease->price_micro),
                               cell_count(lease->accepted),
                               cell_money(lease->charged_micro)};
        grid_add(&table, cells);
    }
    if (table.rows > 0) {
        (void)fputc('\n', to);
        grid_print(&table, to, color);
    }
    print_absent(to, row);
}

static void add_tasks(struct invocation *invocation, const struct bourse_job_row *row,
                      json_t *value)
{
    char id[BOURSE_ID_SIZE];
    CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, row->id);
    if (tasks != NULL && tasks_are_named(tasks)) {
        (void)json_object_set_new(value, "tasks", tasks_json(invocation, row, tasks));
    } else {
        uint32_t more = 0;
        (void)json_object_set_new(value, "failures", failures_json(invocation, row, tasks, &more));
        (void)json_object_set_new(value, "failures_left_out", json_integer((json_int_t)more));
    }
    if (tasks != NULL && bourse_tasks_continues(tasks, id)) {
        (void)json_object_set_new(value, "continues", json_string(id));
    }
}

/* The drift of an open job comes from a comparison with its plan. */
static int64_t drift_of(struct invocation *invocation, const struct bourse_job_row *row)
{
    int64_t percent = 0;
    return replan_drifts(invocation->bourse, row, &percent) ? percent : 0;
}

/* A user who gave --limit knows that there may be more. */
static void say_left_out(struct invocation *invocation, const struct shown_jobs *jobs)
{
    if (jobs->left_out > 0 && !option_given(invocation, "limit")) {
        (void)fprintf(stderr, "bourse: %zu older job%s not shown; `--limit %zu` shows all\n",
                      jobs->left_out, jobs->left_out == 1 ? " is" : "s are",
                      jobs->count + jobs->left_out);
    }
}

static int show_jobs(struct invocation *invocation, const struct shown_jobs *jobs, bool one)
{
    size_t count = jobs->count;
    if (invocation->json) {
        json_t *list = json_array();
        for (size_t i = 0; i < count; i++) {
            (void)json_array_append_new(list, json_job(jobs->items[i]));
        }
        if (one) {
            const struct bourse_job_row *row = jobs->items[0];
            add_tasks(invocation, row, json_array_get(list, 0));
            json_set_drifts(json_array_get(list, 0), drift_of(invocation, row) != 0);
        }
        return json_print(
            json_pack("{s:o, s:I}", "jobs", list, "left_out", (json_int_t)jobs->left_out),
            BOURSE_OK);
    }
    say_left_out(invocation, jobs);
    if (invocation->quiet) {
        for (size_t i = 0; i < count; i++) {
            (void)puts(jobs->items[i]->id);
        }
        return BOURSE_OK;
    }
    print_jobs(jobs, invocation->color);
    if (one) {
        const struct bourse_job_row *row = jobs->items[0];
        CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, row->id);
        if (tasks != NULL) {
            tasks_print(invocation, row, tasks);
        }
        if (tasks == NULL || !tasks_are_named(tasks)) {
            failures_print(invocation, row, tasks);
        }
        jobs_print_leases(stdout, row, true, invocation->color);
        char left[CELL_SIZE];
        progress_time_remaining(row, drift_of(invocation, row), left);
        if (left[0] != '\0') {
            (void)printf("\n%s\n", left);
        }
        if (row->saved > 0) {
            (void)printf("\n%u subtask%s a checkpoint, from which the next attempt goes on\n",
                         row->saved, row->saved == 1 ? " has" : "s have");
        }
    }
    state_say_of_market(invocation);
    state_say_behind(invocation);
    return BOURSE_OK;
}

static bool is_state(const char *word)
{
    static const char *const words[] = {"open", "waiting", "running",  "checking",
                                        "done", "failed",  "cancelled"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i], word) == 0) {
            return true;
        }
    }
    return false;
}

static bool read_states(struct invocation *invocation, struct ps_filter *filter)
{
    for (size_t i = 0; i < invocation->given_count; i++) {
        const char *word = invocation->given[i].value;
        if (strcmp(invocation->given[i].name, "state") != 0) {
            continue;
        }
        if (!is_state(word)) {
            (void)complain(invocation, BOURSE_USAGE,
                           "--state: '%.64s' is none of open, waiting, running, checking, done, "
                           "failed and cancelled",
                           word);
            return false;
        }
        if (filter->state_count == PS_STATES) {
            (void)complain(invocation, BOURSE_USAGE, "--state: at most %d", PS_STATES);
            return false;
        }
        filter->states[filter->state_count++] = word;
    }
    return true;
}

static bool read_filter(struct invocation *invocation, struct ps_filter *ret_filter)
{
    *ret_filter = (struct ps_filter){
        .name = option_text(invocation, "name", NULL), .since_ms = INT64_MIN, .most = PS_SHOWN};
    int64_t ago_ms = 0;
    if (!read_states(invocation, ret_filter) || !option_duration_ms(invocation, "since", &ago_ms) ||
        !option_count(invocation, "limit", 1, BOURSE_JOBS_MOST, &ret_filter->most)) {
        return false;
    }
    if (option_given(invocation, "since") &&
        !checked_sub(clock_wall_ns() / NS_PER_MS, ago_ms, &ret_filter->since_ms)) {
        ret_filter->since_ms = INT64_MIN;
    }
    return true;
}

static bool has_filter(const struct invocation *invocation)
{
    return option_given(invocation, "state") || option_given(invocation, "name") ||
           option_given(invocation, "since") || option_given(invocation, "limit");
}

int command_ps(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    struct ps_filter filter;
    bool one = invocation->word_count > 0;
    if (one && has_filter(invocation)) {
        return complain(invocation, BOURSE_USAGE,
                        "--state, --name, --since and --limit choose from the list of jobs; leave "
                        "out '%.64s' or the options",
                        invocation->words[0]);
    }
    if (!read_filter(invocation, &filter)) {
        return BOURSE_USAGE;
    }
    if (!command_connect(invocation, &status) ||
        (one && !command_resolve_job(invocation, invocation->words[0], id, &status))) {
        return status;
    }
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    CLEANUP(shown_jobs_fini) struct shown_jobs shown = {.count = 0};
    struct bourse_error error;
    if (one ? !bourse_jobs(invocation->bourse, id, &jobs, &error)
            : !bourse_all_jobs(invocation->bourse, BOURSE_JOBS_MOST, &jobs, &error)) {
        return complain_with(invocation, &error);
    }
    if (!show_which(jobs, &filter, &shown)) {
        return complain(invocation, BOURSE_LOCAL, "out of memory");
    }
    return show_jobs(invocation, &shown, one);
}

/* ---------------------------------------------------------------- judge */

int command_judge(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    if (!command_connect(invocation, &status) ||
        !command_resolve_job(invocation, invocation->words[0], id, &status)) {
        return status;
    }
    struct bourse_error error;
    struct bourse_judged judged;
    if (!bourse_judge(invocation->bourse, id, &judged, &error)) {
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return json_print(json_pack("{s:s, s:I, s:I, s:I, s:I}", "job", id, "accepted",
                                    (json_int_t)judged.accepted, "rejected",
                                    (json_int_t)judged.rejected, "unsure",
                                    (json_int_t)judged.unsure, "left", (json_int_t)judged.left),
                          BOURSE_OK);
    }
    if (!invocation->quiet) {
        (void)printf("%u accepted, %u rejected, %u unsure; %u left to another referee\n",
                     judged.accepted, judged.rejected, judged.unsure, judged.left);
    }
    return BOURSE_OK;
}
