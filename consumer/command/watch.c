#include "consumer/command/watch.h"

#include "consumer/command/output.h"

int job_exit_status(const struct bourse_job_row *row)
{
    switch (row->state) {
    case BOURSE_OPEN:
    case BOURSE_DONE:
        return BOURSE_OK;
    case BOURSE_FAILED:
        return BOURSE_JOB_FAILED;
    case BOURSE_WAS_CANCELLED:
        return row->is_expired || row->is_unfilled ? BOURSE_NO_MATCH : BOURSE_CANCELLED;
    }
    return BOURSE_JOB_FAILED;
}

void say_how_to_return(const char *id)
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
    bool is_quiet, was_warned;
};

/* Once: what was agreed to no longer holds. */
static void warn_of_budget(struct watching *watching, const struct bourse_job_row *row)
{
    int64_t micro = 0;
    if (watching->was_warned || watching->is_quiet || !job_outgrows(row, &micro)) {
        return;
    }
    watching->was_warned = true;
    progress_end(&watching->progress);
    (void)fprintf(
        stderr,
        "bourse: subtasks take longer than expected: at this pace job %.8s costs about %s "
        "credits, and its budget is %s.\n        `bourse order replace %.8s --budget "
        "CREDITS` raises it.\n",
        row->id, money_text(micro), money_text(row->budget_micro), row->id);
}

static bool on_row(void *context, const struct bourse_job_row *row)
{
    struct watching *watching = context;
    if (row == NULL) {
        progress_text(&watching->progress, true,
                      "the broker cannot be reached; the job goes on, waiting for it");
    } else {
        progress_job(&watching->progress, row);
        warn_of_budget(watching, row);
    }
    return true;
}

bool watch_job(struct invocation *invocation, const char *id, struct bourse_job_row *ret_row,
               int *ret_status)
{
    int64_t most_ms = 0;
    if (!option_duration_ms(invocation, "wait-at-most", &most_ms)) {
        *ret_status = BOURSE_USAGE;
        return false;
    }
    struct watching watching = {.progress = progress_start(invocation),
                                .is_quiet = invocation->quiet};
    struct bourse_error error;
    bool ended = bourse_wait(invocation->bourse, id, most_ms, on_row, &watching, ret_row, &error);
    progress_end(&watching.progress);
    if (ended) {
        return true;
    }
    *ret_status = complain_with(invocation, &error);
    if (error.status == BOURSE_INTERRUPTED || error.status == BOURSE_TIMED_OUT) {
        say_how_to_return(id);
    }
    return false;
}
