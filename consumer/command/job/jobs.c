/* This file runs ps, fetch, judge and cancel, commands on submitted jobs. */
#include "consumer/command/job/jobs.h"
#include "consumer/command/show.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/job/replan.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* ---------------------------------------------------------------- ps */

static void add_job(struct grid *table, const struct bourse_job_row *row)
{
    char done[64];
    (void)snprintf(done, sizeof done, "%u/%u", row->accepted, row->subtasks);
    bool busy = row->state == BOURSE_OPEN && row->running > 0;
    const char *cells[] = {cell_short_id(row->id),
                           row->name,
                           busy                        ? "running"
                           : row->state != BOURSE_OPEN ? row->state_text
                           : row->checking > 0         ? "checking"
                                                       : "waiting",
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

static void print_jobs(const struct bourse_jobs *jobs, bool color)
{
    static const char *const titles[] = {"JOB",     "NAME", "STATE",  "DONE",      "FAILED",
                                         "RUNNING", "COST", "BUDGET", "SUBMITTED", "WHY"};
    CLEANUP(grid_fini) struct grid table = grid_of(10, titles, "lllrrrrrll");
    for (size_t i = 0; i < bourse_jobs_count(jobs); i++) {
        add_job(&table, bourse_jobs_row(jobs, i));
    }
    grid_print(&table, stdout, color);
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
        (void)snprintf(state, sizeof state, "%s%s", lease->state, lease->taken ? ", taken" : "");
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
        (void)json_object_set_new(value, "failures", failures_json(invocation, row, &more));
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

static int show_jobs(struct invocation *invocation, const struct bourse_jobs *jobs, bool one)
{
    size_t count = bourse_jobs_count(jobs);
    if (invocation->json) {
        json_t *list = json_array();
        for (size_t i = 0; i < count; i++) {
            (void)json_array_append_new(list, json_job(bourse_jobs_row(jobs, i)));
        }
        if (one) {
            const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
            add_tasks(invocation, row, json_array_get(list, 0));
            json_set_drifts(json_array_get(list, 0), drift_of(invocation, row) != 0);
        }
        return json_print(json_pack("{s:o}", "jobs", list), BOURSE_OK);
    }
    if (invocation->quiet) {
        for (size_t i = 0; i < count; i++) {
            (void)puts(bourse_jobs_row(jobs, i)->id);
        }
        return BOURSE_OK;
    }
    print_jobs(jobs, invocation->color);
    if (one) {
        const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
        CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, row->id);
        if (tasks != NULL) {
            tasks_print(invocation, row, tasks);
        }
        if (tasks == NULL || !tasks_are_named(tasks)) {
            failures_print(invocation, row);
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
    return BOURSE_OK;
}

int command_ps(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    bool one = invocation->word_count > 0;
    if (!command_connect(invocation, &status) ||
        (one && !command_resolve_job(invocation, invocation->words[0], id, &status))) {
        return status;
    }
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    struct bourse_error error;
    if (!bourse_jobs(invocation->bourse, one ? id : NULL, &jobs, &error)) {
        return complain_with(invocation, &error);
    }
    return show_jobs(invocation, jobs, one);
}

/* ---------------------------------------------------------------- fetch */

static void on_fetched(void *context, const struct bourse_fetched *fetched)
{
    progress_text(context, false, "fetched %llu file%s, %s", (unsigned long long)fetched->files,
                  text_plural(fetched->files), cell_bytes(fetched->bytes));
}

bool jobs_fetch_into(struct invocation *invocation, const char *id, const char *folder,
                     struct bourse_fetched *ret_fetched, struct bourse_error *ret_error)
{
    struct progress progress = progress_start(invocation);
    mode_t before = umask((mode_t)invocation->umask); /* outputs are the user's own files */
    bool ok =
        bourse_fetch(invocation->bourse, id, folder, on_fetched, &progress, ret_fetched, ret_error);
    (void)umask(before);
    progress_end(&progress);
    return ok;
}

/* Adds up the subtasks that left no declared outputs, because they are not accepted, and fills in
 * the job's row. A job that is done lacks none, whatever became of its checks. */
static bool count_missing(struct invocation *invocation, const char *id,
                          const struct bourse_fetched *fetched, struct bourse_job_row *ret_row,
                          uint32_t *ret_missing, struct bourse_error *ret_error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_jobs(invocation->bourse, id, &jobs, ret_error)) {
        return false;
    }
    if (bourse_jobs_count(jobs) > 0) {
        *ret_row = *bourse_jobs_row(jobs, 0);
        ret_row->leases = NULL;
        const bool lacks = fetched->declares_outputs && ret_row->state != BOURSE_DONE;
        *ret_missing = lacks ? ret_row->subtasks - ret_row->accepted : 0;
    }
    return true;
}

int command_fetch(struct invocation *invocation)
{
    int status = 0;
    uint32_t missing = 0;
    struct bourse_job_row row;
    char id[BOURSE_ID_SIZE];
    if (!command_connect(invocation, &status) ||
        !command_resolve_job(invocation, invocation->words[0], id, &status)) {
        return status;
    }
    char named[64];
    (void)snprintf(named, sizeof named, "bourse-%.8s", id);
    const char *folder = option_text(invocation, "output", named);
    struct bourse_fetched fetched;
    struct bourse_error error;
    if (!jobs_fetch_into(invocation, id, folder, &fetched, &error) ||
        !count_missing(invocation, id, &fetched, &row, &missing, &error)) {
        return complain_with(invocation, &error);
    }
    status = missing == 0 ? BOURSE_OK : BOURSE_JOB_FAILED;
    if (invocation->json) {
        return json_print(
            json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "job", id, "folder", folder,
                      "subtasks", (json_int_t)fetched.subtasks, "simulated",
                      (json_int_t)fetched.simulated, "files", (json_int_t)fetched.files, "written",
                      (json_int_t)fetched.written, "present", (json_int_t)fetched.present, "bytes",
                      (json_int_t)fetched.bytes, "missing", (json_int_t)missing),
            status);
    }
    if (!invocation->quiet && fetched.files == 0) {
        (void)fprintf(stderr,
                      "no files: the %llu accepted subtask%s of job %.8s left none; `bourse logs "
                      "%.8s` prints what they wrote\n",
                      (unsigned long long)fetched.subtasks, text_plural(fetched.subtasks), id, id);
    } else if (!invocation->quiet) {
        (void)fprintf(
            stderr, "%llu file%s of %llu subtask%s in %s (%llu fetched, %llu there already)\n",
            (unsigned long long)fetched.files, text_plural(fetched.files),
            (unsigned long long)fetched.subtasks, text_plural(fetched.subtasks), cell_plain(folder),
            (unsigned long long)fetched.written, (unsigned long long)fetched.present);
    }
    if (!invocation->quiet && fetched.simulated > 0) {
        (void)fprintf(stderr, "SIMULATED: %llu of %llu results are of simulated devices\n",
                      (unsigned long long)fetched.simulated, (unsigned long long)fetched.subtasks);
    }
    if (missing > 0) {
        (void)fprintf(stderr,
                      "%" PRIu32 " of %" PRIu32 " subtasks of job %.8s left no outputs: %" PRIu32
                      " failed, %" PRIu32 " cancelled, %" PRIu32
                      " not done yet; `bourse ps %.8s` shows them\n",
                      missing, row.subtasks, id, row.failed, row.cancelled,
                      missing - row.failed - row.cancelled, id);
    }
    return status;
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

/* ---------------------------------------------------------------- cancel */

/* A job that cannot be cancelled has ended, and its owner wants to know how. */
static void say_how_ended(struct invocation *invocation, const char *id, struct bourse_error *error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_jobs(invocation->bourse, id, &jobs, NULL)) {
        return;
    }
    const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
    if (row->state != BOURSE_OPEN) {
        (void)snprintf(error->text, sizeof error->text,
                       "job %.8s has ended: it is %s since %s, %u of %u subtask%s accepted", id,
                       row->state_text, cell_time(row->ended_ms), row->accepted, row->subtasks,
                       text_plural(row->subtasks));
    }
}

int command_cancel(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    if (!command_connect(invocation, &status) ||
        !command_resolve_job(invocation, invocation->words[0], id, &status)) {
        return status;
    }
    struct bourse_error error;
    if (!bourse_cancel(invocation->bourse, id, &error)) {
        if (strcmp(error.name, "STATE") == 0) {
            say_how_ended(invocation, id, &error);
        }
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return json_print(json_pack("{s:s, s:b}", "job", id, "cancelled", 1), BOURSE_OK);
    }
    (void)puts(invocation->quiet ? id : cell_short_id(id));
    return BOURSE_OK;
}
