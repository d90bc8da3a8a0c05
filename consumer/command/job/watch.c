#include "consumer/command/job/watch.h"

#include "base/checked.h"
#include "consumer/command/forecast.h"
#include "consumer/command/job/jobs.h"
#include "consumer/command/show.h"
#include "runtime/clock.h"

int job_exit_status(const struct bourse_job_row *row)
{
    switch (row->state) {
    case BOURSE_OPEN:
    case BOURSE_DONE:
        return BOURSE_OK;
    case BOURSE_FAILED:
        return BOURSE_JOB_FAILED;
    case BOURSE_WAS_CANCELLED:
        return row->is_expired || row->is_late || row->is_unfilled ? BOURSE_NO_MATCH
                                                                   : BOURSE_CANCELLED;
    }
    return BOURSE_JOB_FAILED;
}

void watch_say_how_to_return(const char *id)
{
    (void)fprintf(
        stderr,
        "bourse: job %.8s goes on without this command. `bourse ps %.8s` shows it, `bourse logs "
        "--follow "
        "%.8s` and\n        `bourse fetch %.8s` bring its results, `bourse cancel %.8s` ends it.\n",
        id, id, id, id, id);
}

struct watching {
    struct progress progress;
    struct replanning *replanning;
    bool is_quiet, was_warned, was_told_late;
    uint32_t absent; /* providers of the job that are silent or frozen */
    bool is_unreachable;
    const struct invocation *invocation;
};

/* The warning comes once, when the agreed budget no longer suffices. */
static void warn_of_budget(struct watching *watching, const struct bourse_job_row *row)
{
    int64_t micro = 0;
    if (watching->was_warned || watching->is_quiet || !progress_outgrows(row, &micro)) {
        return;
    }
    watching->was_warned = true;
    progress_end(&watching->progress);
    (void)fprintf(
        stderr,
        "bourse: subtasks take longer than expected: at this pace job %.8s costs about %s "
        "credits, and its budget is %s.\n        `bourse order replace %.8s --budget "
        "CREDITS` raises it.\n",
        row->id, cell_money(micro), cell_money(row->budget_micro), row->id);
}

/* The forecast comes once, when the job will miss its deadline. */
static void warn_of_lateness(struct watching *watching, const struct bourse_job_row *row)
{
    const struct forecast forecast = forecast_of(row);
    if (watching->was_told_late || watching->is_quiet || !forecast_is_news(row, &forecast)) {
        return;
    }
    char text[FORECAST_LATE_SIZE];
    forecast_late_text(row, &forecast, text);
    watching->was_told_late = true;
    progress_end(&watching->progress);
    (void)fprintf(stderr, "bourse: %s\n", text);
}

void watch_say_unreachable(struct progress *progress, const struct invocation *invocation,
                           const char *what_goes_on, bool was_told)
{
    const char *endpoint = bourse_endpoint(invocation->bourse);
    if (progress->on) {
        progress_text(progress, true, "the broker at %s cannot be reached; %s, waiting for it",
                      endpoint, what_goes_on);
    } else if (!invocation->quiet && !was_told) {
        (void)fprintf(stderr,
                      "bourse: the broker at %s cannot be reached; %s, and this command waits for "
                      "the broker\n",
                      endpoint, what_goes_on);
    }
}

static bool on_row(void *context, const struct bourse_job_row *row)
{
    struct watching *watching = context;
    if (row == NULL) {
        watch_say_unreachable(&watching->progress, watching->invocation, "the job goes on",
                              watching->is_unreachable);
        watching->is_unreachable = true;
    } else {
        watching->is_unreachable = false;
        progress_job(&watching->progress, row, watching->replanning->percent);
        if (!watching->is_quiet && replanning_is_due(watching->replanning, row)) {
            return false; /* the wait must end before another call to the broker */
        }
        warn_of_budget(watching, row);
        warn_of_lateness(watching, row);
        if (!watching->is_quiet) {
            jobs_say_absent(&watching->progress, row, &watching->absent);
        }
    }
    return true;
}

static void plan_anew(struct invocation *invocation, struct watching *watching,
                      const struct bourse_job_row *row)
{
    char text[REPLAN_TEXT];
    struct replanning *replanning = watching->replanning;
    if (replanning_make(invocation, replanning, row, text)) {
        const int64_t cost_micro = replanning->made[replanning->count - 1].cost_micro;
        watching->was_warned = watching->was_warned || cost_micro > row->budget_micro;
        watching->was_told_late =
            watching->was_told_late || replanning->made[replanning->count - 1].late_ns > 0;
        progress_end(&watching->progress);
        (void)fprintf(stderr, "bourse: %s\n", text);
    }
}

/* Returns the rest of the time to wait; 0: for ever. */
static int64_t rest_ms(int64_t most_ms, int64_t began_ns)
{
    const int64_t rest = most_ms - (clock_monotonic_ns() - began_ns) / NS_PER_MS;
    return most_ms == 0 ? 0 : rest > 0 ? rest : 1;
}

bool watch_job(struct invocation *invocation, const char *id, struct bourse_job_row *ret_row,
               struct replanning *ret_replanning, int *ret_status)
{
    struct live *live = NULL;
    const struct live_options options = {.id = id};
    return watch_job_live(invocation, &options, ret_row, ret_replanning, &live, ret_status);
}

bool watch_job_live(struct invocation *invocation, const struct live_options *options,
                    struct bourse_job_row *ret_row, struct replanning *ret_replanning,
                    struct live **ret_live, int *ret_status)
{
    const char *id = options->id;
    int64_t most_ms = 0;
    const int64_t began_ns = clock_monotonic_ns();
    *ret_replanning = (struct replanning){.count = 0};
    if (!option_duration_ms(invocation, "wait-at-most", &most_ms)) {
        *ret_status = BOURSE_USAGE;
        return false;
    }
    struct watching watching = {.invocation = invocation,
                                .progress = progress_start(invocation),
                                .replanning = ret_replanning,
                                .is_quiet = invocation->quiet};
    struct bourse_error error;
    if (options->subtasks > 0) {
        struct live_options mine = *options;
        mine.progress = &watching.progress;
        *ret_live = live_begin(&mine, &error); /* without it, all is printed at the end */
    }
    bool ended = bourse_wait(invocation->bourse, id, most_ms, on_row, &watching, ret_row, &error);
    while (ended && ret_row->state == BOURSE_OPEN) {
        plan_anew(invocation, &watching, ret_row);
        ended = bourse_wait(invocation->bourse, id, rest_ms(most_ms, began_ns), on_row, &watching,
                            ret_row, &error);
    }
    progress_end(&watching.progress);
    live_set_progress(*ret_live, NULL);
    if (ended) {
        return true;
    }
    const bool could_write = live_could_write(*ret_live, &error);
    live_end(ret_live);
    *ret_status = complain_about_job(invocation, id, &error);
    if (!could_write || error.status == BOURSE_INTERRUPTED || error.status == BOURSE_TIMED_OUT) {
        watch_say_how_to_return(id);
    }
    return false;
}
