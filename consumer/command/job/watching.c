/* This file runs watch, a live view of the user's jobs or of one job. The view asks the market once
 * a second and ends with the watched jobs. */
#include "consumer/command/forecast.h"
#include "consumer/command/job/jobs.h"
#include "consumer/command/job/live.h"
#include "consumer/command/job/replanning.h"
#include "consumer/command/job/watch.h"
#include "consumer/command/show.h"
#include "consumer/command/state.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "runtime/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WATCHED_MAX = 64,
    ROUND_MS = 1000,
    TAIL_LINES = 8, /* newest lines of output below the table */
    TAIL_LINE_SIZE = 256,
};
#define REDRAW_NS (200 * NS_PER_MS) /* between two drawings for new output */
static const int64_t LINE_NS = 5 * NS_PER_S;

struct watched {
    struct bourse_job_row row; /* last row seen; the row's list owns the leases */
    struct pace pace;
    bool is_told; /* the job's end was printed */
    int64_t told_ns;
    uint64_t told_done;
    struct replanning replanning;
    char note[REPLAN_TEXT];        /* text of the last replan; "": the job keeps to its plan */
    char late[FORECAST_LATE_SIZE]; /* forecast of a job that will be late; "": it will not */
};

struct view {
    struct invocation *invocation;
    const char *id; /* NULL: every job that is open or becomes open */
    bool terminal, lost;
    struct screen screen;
    struct watched *watched; /* room for WATCHED_MAX */
    size_t count;
    struct bourse_tasks *tasks; /* of the one job; NULL: subtasks have only numbers */
    struct live *live;          /* output of the one job; NULL: none is shown */
    char tail[TAIL_LINES][TAIL_LINE_SIZE];
    uint64_t tail_count; /* lines that came */
    int64_t drawn_ns;
};

/* ---------------------------------------------------------------- what is watched */

static struct watched *find(struct view *view, const char *id)
{
    for (size_t i = 0; i < view->count; i++) {
        if (strcmp(view->watched[i].row.id, id) == 0) {
            return &view->watched[i];
        }
    }
    return NULL;
}

static void take_rows(struct view *view, const struct bourse_jobs *jobs)
{
    for (size_t i = 0; i < bourse_jobs_count(jobs); i++) {
        const struct bourse_job_row *row = bourse_jobs_row(jobs, i);
        struct watched *watched = find(view, row->id);
        bool is_wanted = view->id != NULL || row->state == BOURSE_OPEN;
        if (watched == NULL && is_wanted && view->count < WATCHED_MAX) {
            watched = &view->watched[view->count++];
            *watched = (struct watched){.is_told = false};
        }
        if (watched != NULL) {
            watched->row = *row;
            progress_note_pace(&watched->pace, row);
        }
    }
}

static const struct watched *first_open(const struct view *view)
{
    for (size_t i = 0; i < view->count; i++) {
        if (view->watched[i].row.state == BOURSE_OPEN) {
            return &view->watched[i];
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- on a terminal */

static const char *rate_text(int64_t per_hour, char text[32])
{
    if (per_hour >= 3600) {
        (void)snprintf(text, 32, "%" PRId64 ".%" PRId64 "/s", per_hour / 3600,
                       per_hour % 3600 * 10 / 3600);
    } else if (per_hour >= 60) {
        (void)snprintf(text, 32, "%" PRId64 "/min", per_hour / 60);
    } else {
        (void)snprintf(text, 32, "%" PRId64 "/h", per_hour);
    }
    return text;
}

static const char *state_of(const struct bourse_job_row *row)
{
    return row->state != BOURSE_OPEN ? row->state_text
           : row->running > 0        ? "running"
           : row->checking > 0       ? "checking"
                                     : "waiting";
}

static void add_watched(struct grid *table, const struct watched *watched)
{
    const struct bourse_job_row *row = &watched->row;
    char done[64];
    char rate[32] = "-";
    int64_t per_hour = 0;
    bool has_pace = progress_pace(&watched->pace, row, &per_hour);
    (void)snprintf(done, sizeof done, "%u/%u", row->accepted, row->subtasks);
    const char *cells[] = {cell_short_id(row->id),
                           state_of(row),
                           done,
                           cell_count(row->failed),
                           cell_count(row->running - row->queued),
                           has_pace ? rate_text(per_hour, rate) : "-",
                           row->left_ms >= 0 ? cell_duration(row->left_ms) : "-",
                           cell_money(row->charged_micro),
                           row->name,
                           row->running > 0 ? "" : row->reason_text};
    grid_add(table, cells);
}

/* Each statement of the note gets a line, because the terminal cuts long lines. */
static void print_note(const char *note, FILE *to)
{
    for (const char *at = note; *at != '\0';) {
        const char *stop = strstr(at, "; ");
        const size_t length = stop != NULL ? (size_t)(stop - at) : strlen(at);
        (void)fprintf(to, "%s%.*s\n", at == note ? "" : "  ", (int)length, at);
        at += length + (stop != NULL ? 2 : 0);
    }
}

static void print_view(const struct view *view, FILE *to)
{
    static const char *const titles[] = {"JOB",  "STATE", "DONE", "FAILED", "RUNNING",
                                         "RATE", "LEFT",  "COST", "NAME",   "WHY"};
    CLEANUP(grid_fini) struct grid table = grid_of(10, titles, "llrrrrrrll");
    for (size_t i = 0; i < view->count; i++) {
        add_watched(&table, &view->watched[i]);
    }
    grid_print(&table, to, false);
    if (view->id != NULL && view->count > 0) {
        jobs_print_leases(to, &view->watched[0].row, false, false);
    }
    for (size_t i = 0; i < view->count; i++) {
        if (view->watched[i].row.state == BOURSE_OPEN && view->watched[i].note[0] != '\0') {
            print_note(view->watched[i].note, to);
        }
    }
    for (size_t i = 0; i < view->count; i++) {
        print_note(view->watched[i].late, to);
    }
    const uint64_t first = view->tail_count > TAIL_LINES ? view->tail_count - TAIL_LINES : 0;
    for (uint64_t i = first; i < view->tail_count; i++) {
        (void)fprintf(to, "%s\n", view->tail[i % TAIL_LINES]);
    }
    if (view->lost) {
        (void)fputs("the broker cannot be reached; jobs go on, waiting for it\n", to);
    }
}

/* The new view replaces the one on the screen. */
static void redraw(struct view *view)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (to == NULL) {
        return;
    }
    print_view(view, to);
    (void)fclose(to); /* a memory stream has nothing to lose */
    if (text != NULL) {
        screen_draw(&view->screen, text);
    }
    free(text);
}

/* ---------------------------------------------------------------- elsewhere */

/* Prints a line when a job is first seen, when it moved on after a while, and when it ended. */
static void print_changes(struct view *view)
{
    int64_t now_ns = clock_monotonic_ns();
    for (size_t i = 0; i < view->count; i++) {
        struct watched *watched = &view->watched[i];
        bool is_over = watched->row.state != BOURSE_OPEN;
        bool is_first = watched->told_ns == 0;
        bool is_due = now_ns - watched->told_ns >= LINE_NS &&
                      watched->told_done != progress_done(&watched->row);
        if (watched->is_told || (!is_over && !is_first && !is_due)) {
            continue;
        }
        watched->is_told = is_over;
        watched->told_ns = now_ns;
        watched->told_done = progress_done(&watched->row);
        if (!view->invocation->quiet) {
            char line[JOB_LINE_SIZE];
            progress_line(&watched->row, watched->replanning.percent, line);
            (void)printf("%s%s%s\n", line, is_over ? ": " : "",
                         is_over ? watched->row.state_text : "");
        } else if (is_over) {
            (void)puts(watched->row.id);
        }
    }
    (void)fflush(stdout);
}

static void show(struct view *view)
{
    if (view->invocation->json) {
        return; /* one value, at the end */
    }
    if (view->terminal && !view->invocation->quiet) {
        redraw(view);
    } else {
        print_changes(view);
    }
}

/* ---------------------------------------------------------------- output */

/* Takes a line of a subtask for the screen. */
static void take_line(void *context, const char *subtask, const char *line, size_t size)
{
    struct view *view = context;
    char *to = view->tail[view->tail_count++ % TAIL_LINES];
    const int length = snprintf(to, TAIL_LINE_SIZE, "%.100s | ", subtask);
    text_printable(line, size, to + length, TAIL_LINE_SIZE - (size_t)length);
    const int64_t now_ns = clock_monotonic_ns();
    if (now_ns - view->drawn_ns >= REDRAW_NS) {
        view->drawn_ns = now_ns;
        redraw(view);
    }
}

/* Begins to show the output of the one job. Without it the view shows the rest. */
static void begin_output(struct view *view)
{
    const bool is_open = view->count == 1 && view->watched[0].row.state == BOURSE_OPEN;
    if (view->live != NULL || view->id == NULL || view->invocation->json ||
        view->invocation->quiet || !is_open) {
        return;
    }
    struct bourse_error ignored;
    view->tasks = tasks_load(view->invocation, view->id);
    const struct live_options options = {.invocation = view->invocation,
                                         .id = view->id,
                                         .tasks = view->tasks,
                                         .subtasks = view->watched[0].row.subtasks,
                                         .shows_output = true,
                                         .shows_error = true,
                                         .has_prefix = true,
                                         .take_line = view->terminal ? take_line : NULL,
                                         .context = view};
    view->live = live_begin(&options, &ignored);
}

/* ---------------------------------------------------------------- the command */

/* Shows at once, between two looks, that the broker was lost or came back. */
static bool on_row(void *context, const struct bourse_job_row *row)
{
    struct view *view = context;
    bool lost = row == NULL;
    if (lost == view->lost) {
        return true;
    }
    view->lost = lost;
    if (lost && !view->terminal) {
        (void)fputs("bourse: the broker cannot be reached; jobs go on, waiting for it\n", stderr);
    } else {
        show(view);
    }
    return true;
}

/* Plans jobs anew that no longer keep to their plan. On a terminal the note stands below the
 * table. */
static void plan_anew(struct view *view)
{
    const bool is_drawn = view->terminal && !view->invocation->json;
    for (size_t i = 0; i < view->count && !view->invocation->quiet; i++) {
        struct watched *watched = &view->watched[i];
        if (replanning_is_due(&watched->replanning, &watched->row) &&
            replanning_make(view->invocation, &watched->replanning, &watched->row, watched->note) &&
            !is_drawn) {
            (void)fprintf(stderr, "bourse: %s\n", watched->note);
        }
    }
}

/* Foretells which jobs will miss their deadlines. On a terminal the text stands below the table. */
static void foretell(struct view *view)
{
    const bool is_drawn = view->terminal && !view->invocation->json;
    for (size_t i = 0; i < view->count; i++) {
        struct watched *watched = &view->watched[i];
        const struct forecast forecast = forecast_of(&watched->row);
        const bool was_late = watched->late[0] != '\0';
        watched->late[0] = '\0';
        if (forecast_is_news(&watched->row, &forecast)) {
            forecast_late_text(&watched->row, &forecast, watched->late);
        }
        if (!was_late && watched->late[0] != '\0' && !is_drawn && !view->invocation->quiet) {
            (void)fprintf(stderr, "bourse: %s\n", watched->late);
        }
    }
}

/* Looks at the market once. Returns false and the error when the watch must end. */
static bool look(struct view *view, struct bourse_error *error)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if (!bourse_jobs(view->invocation->bourse, view->id, &jobs, error)) {
        return false;
    }
    take_rows(view, jobs);
    if (!live_catch_up(view->live, error)) {
        return false;
    }
    plan_anew(view);
    foretell(view);
    show(view);
    for (size_t i = 0; i < view->count; i++) { /* the list owns the leases */
        view->watched[i].row.leases = NULL;
        view->watched[i].row.lease_count = 0;
    }
    return true;
}

static bool is_passing(const struct view *view, const struct bourse_error *error)
{
    return error->status == BOURSE_TIMED_OUT || (view->lost && error->status == BOURSE_UNREACHABLE);
}

static bool watch_all(struct view *view, struct bourse_error *error)
{
    struct bourse_job_row last;
    while (view->lost || look(view, error)) {
        const struct watched *open = first_open(view);
        if (open == NULL) {
            return true;
        }
        begin_output(view);
        if (!bourse_wait(view->invocation->bourse, open->row.id, ROUND_MS, on_row, view, &last,
                         error) &&
            !is_passing(view, error)) {
            return false;
        }
    }
    return false;
}

static int finish(const struct view *view)
{
    if (view->invocation->json) {
        json_t *list = json_array();
        for (size_t i = 0; i < view->count; i++) {
            json_t *value = json_job(&view->watched[i].row);
            json_set_drifts(value, view->watched[i].replanning.percent != 0);
            (void)json_object_set_new(value, "replans",
                                      replanning_json(&view->watched[i].replanning));
            (void)json_array_append_new(list, value);
        }
        int status = view->id != NULL ? job_exit_status(&view->watched[0].row) : BOURSE_OK;
        return json_print(json_pack("{s:o}", "jobs", list), status);
    }
    if (view->count == 0 && !view->invocation->quiet) {
        (void)fputs("bourse: no job of this account is open\n", stderr);
    }
    return view->id != NULL ? job_exit_status(&view->watched[0].row) : BOURSE_OK;
}

int command_watch(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    bool one = invocation->word_count > 0;
    if (!command_connect(invocation, &status) ||
        (one && !command_resolve_job(invocation, invocation->words[0], id, &status))) {
        return status;
    }
    struct view view = {.invocation = invocation,
                        .id = one ? id : NULL,
                        .terminal = isatty(STDOUT_FILENO) == 1,
                        .watched = calloc(WATCHED_MAX, sizeof *view.watched)};
    if (view.watched == NULL) {
        return complain(invocation, BOURSE_LOCAL, "out of memory");
    }
    struct bourse_error error;
    state_say_of_market(invocation);
    bool ended = watch_all(&view, &error);
    live_end(&view.live);
    bourse_tasks_destroy(&view.tasks);
    status = ended ? finish(&view) : complain_with(invocation, &error);
    if (!ended && one && error.status == BOURSE_INTERRUPTED) {
        watch_say_how_to_return(id);
    }
    free(view.watched);
    return status;
}
