#include "consumer/command/job/run_end.h"

#include "base/cleanup.h"
#include "consumer/command/job/jobs.h"
#include "consumer/command/job/live.h"
#include "consumer/command/job/stream.h"
#include "consumer/command/job/watch.h"
#include "consumer/command/notes.h"
#include "consumer/command/show.h"
#include "consumer/job/submit.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void run_end_say_outcome(const struct bourse_tasks *tasks, const struct bourse_outcome *outcome)
{
    stream_end_line();
    (void)fprintf(stderr, "%s: %s%s%s\n", cell_subtask(tasks, outcome->index),
                  outcome->outcome_text, outcome->detail[0] != '\0' ? ": " : "",
                  cell_sentence(outcome->detail));
}

struct run_report {
    struct invocation *invocation;
    const struct bourse_tasks *tasks; /* NULL: subtasks have only indices */
    struct live *live;                /* NULL: nothing was printed live */
    json_t *list;                     /* with --json */
    struct notes notes;
    int exit_code; /* the first that is not 0; with --exit-code, the command's */
    bool failed;   /* the job failed */
    bool ok;
    struct bourse_error error;
};

/* Prints a stream, or the rest of one that was printed live. */
static bool report_stream(struct run_report *run, const struct bourse_outcome *outcome,
                          bool is_error, struct notes_stream *ret_stream)
{
    const bool has = is_error ? outcome->has_standard_error : outcome->has_standard_output;
    const struct bourse_output *output =
        is_error ? &outcome->standard_error : &outcome->standard_output;
    struct live_printed printed;
    *ret_stream = notes_stream_of(outcome, is_error);
    if (!live_finish(run->live, outcome->index, outcome->attempt, is_error, has ? output : NULL,
                     &printed, &run->error)) {
        return false;
    }
    ret_stream->printed = printed.bytes;
    return printed.is_any || !has || run->list != NULL ||
           stream_output(run->invocation, output, is_error, &run->error);
}

/* Prints the output of one subtask. After several tries only the last decisive attempt counts. */
static bool report(void *context, const struct bourse_outcome *outcome)
{
    struct run_report *run = context;
    bool last_word = outcome->status == 0 || outcome->status == 1;
    if (run->exit_code == 0 && last_word) {
        run->exit_code = outcome->signal != 0 ? 128 + outcome->signal : outcome->exit_code;
    }
    if (run->list != NULL) {
        run->ok = json_array_append_new(run->list, json_outcome(outcome, run->tasks)) == 0;
    }
    /* The last attempt says why a job failed when none of its attempts could run. */
    if (run->list == NULL && outcome->outcome != 0 && (last_word || run->failed)) {
        run_end_say_outcome(run->tasks, outcome);
    }
    if (!last_word || (run->list != NULL && run->live == NULL)) {
        return run->ok; /* --json prints lines, unless --quiet leaves them out */
    }
    struct notes_stream streams[2];
    const bool is_out = report_stream(run, outcome, false, &streams[0]) || command_reader_is_gone();
    run->ok = (report_stream(run, outcome, true, &streams[1]) || command_reader_is_gone()) &&
              is_out && run->ok;
    if (run->ok && run->list == NULL && outcome->outcome == 0) { /* other outcomes say it */
        notes_say_cut(&run->notes, outcome->index, streams, 2);
    }
    live_is_over(run->live, outcome->index, outcome->attempt);
    return run->ok;
}

static int finish_run(struct invocation *invocation, const struct bourse_job_row *row,
                      const struct replanning *replanning, bool has_outputs,
                      const struct bourse_tasks *tasks, struct live **live)
{
    struct run_report run = {.invocation = invocation,
                             .tasks = tasks,
                             .live = *live,
                             .notes = {.tasks = tasks},
                             .list = invocation->json ? json_array() : NULL,
                             .failed = row->state == BOURSE_FAILED,
                             .ok = true};
    struct bourse_fetched fetched = {.files = 0};
    bool ok = bourse_outcomes(invocation->bourse, row->id, 0, report, &run, &run.error) && run.ok;
    notes_end(&run.notes);
    ok = ok &&
         (!has_outputs || fetching_all(invocation, row->id, option_text(invocation, "output", "."),
                                       &fetched, &run.error));
    if (invocation->json) {
        live_end(live); /* lines of attempts without a result come before the last value */
    }
    if (!ok) {
        const int failed = complain_about_job(invocation, row->id, &run.error);
        json_decref(run.list);
        if (!invocation->json && !invocation->quiet) {
            job_say_ended(row);
            (void)fprintf(stderr,
                          "bourse: its results are kept: `bourse fetch %.8s -o FOLDER` and `bourse "
                          "logs %.8s` bring them\n",
                          row->id, row->id);
        }
        return failed;
    }
    int status = job_exit_status(row);
    if (option_given(invocation, "exit-code") && row->state != BOURSE_WAS_CANCELLED &&
        run.exit_code != 0) {
        status = run.exit_code;
    }
    if (invocation->json) {
        json_t *value = json_job(row);
        (void)json_object_set_new(value, "replans", replanning_json(replanning));
        (void)json_object_set_new(value, "outcomes", run.list);
        (void)json_object_set_new(value, "fetched", json_integer((json_int_t)fetched.files));
        return json_print(value, status);
    }
    notes_say_left_out(tasks, &fetched);
    if (!invocation->quiet || row->state != BOURSE_DONE) { /* -q concerns progress */
        job_say_ended(row);
    }
    return status;
}

/* Returns true when the output is printed while the subtasks run. Lines of several subtasks mix, so
 * only a terminal gets them live. A pipe gets one subtask after the other at the end, so that its
 * bytes are always the same. With --json each line names its subtask. A file gets even a single
 * subtask at the end: nobody watches a file, and a lost attempt leaves nothing in it. */
static bool prints_live(const struct invocation *invocation, uint32_t subtasks)
{
    struct stat status;
    const bool is_file = fstat(STDOUT_FILENO, &status) == 0 && S_ISREG(status.st_mode);
    return !invocation->quiet && !is_file &&
           (invocation->json || subtasks == 1 || isatty(STDOUT_FILENO) == 1);
}

int run_end_wait(struct invocation *invocation, struct bourse_job *job, const char *id,
                 bool has_outputs)
{
    int status = 0;
    struct bourse_job_row row;
    struct replanning replanning;
    struct bourse_job_summary summary;
    bourse_job_summary(job, &summary);
    const uint32_t subtasks = (uint32_t)summary.subtasks; /* at most LIMIT_SUBTASKS */
    CLEANUP(bourse_tasks_destroy)
    struct bourse_tasks *tasks = subtasks > 1 ? tasks_load(invocation, id) : NULL;
    CLEANUP(live_end) struct live *live = NULL;
    struct bourse_error ignored;
    struct live_options options = {.invocation = invocation,
                                   .id = id,
                                   .tasks = tasks,
                                   .subtasks = prints_live(invocation, subtasks) ? subtasks : 0,
                                   .shows_output = true,
                                   .shows_error = true,
                                   .splits = true,
                                   .is_whole = invocation->json || isatty(STDOUT_FILENO) != 1,
                                   .has_prefix = subtasks > 1};
    submit_keep(invocation->bourse, job);
    const bool has_ended = watch_job_live(invocation, &options, &row, &replanning, &live, &status);
    submit_keep(invocation->bourse, NULL);
    if (!has_ended) {
        return status;
    }
    if (live == NULL && invocation->json && !invocation->quiet) {
        options.subtasks = subtasks;
        options.is_past = true;
        live = live_begin(&options, &ignored); /* without memory, the lines are left out */
    }
    return finish_run(invocation, &row, &replanning, has_outputs, tasks, &live);
}
