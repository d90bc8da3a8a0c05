/* consumer/command/job/watch.h waits for a job, for submit, run and logs. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_WATCH_H
#define BOURSE_CONSUMER_COMMAND_JOB_WATCH_H

#include "consumer/command/command.h"
#include "consumer/command/job/live.h"
#include "consumer/command/job/replanning.h"
#include "formats/job.h"

/* Returns the exit status for the end of a job: 0, 1, 9, or 5. 5 means that the job got no device
 * or that its time was over. */
int job_exit_status(const struct bourse_job_row *row);

/* Waits with progress, at most --wait-at-most, and plans the job anew when it leaves its plan.
 * Returns true and the last row when the job has ended. Returns false and the exit status after the
 * user was told how to return to the job. */
bool watch_job(struct invocation *invocation, const char *id, struct bourse_job_row *ret_row,
               struct replanning *ret_replanning, int *ret_status);
/* Waits likewise, and prints what the subtasks print meanwhile. `options` are those of the caller;
 * the progress line is this function's. *ret_live, which is NULL when nothing can be printed live,
 * is the caller's to end, after the rest of each stream was printed. */
bool watch_job_live(struct invocation *invocation, const struct live_options *options,
                    struct bourse_job_row *ret_row, struct replanning *ret_replanning,
                    struct live **ret_live, int *ret_status);

/* Waits until every job of --after, and every one of `more`, has succeeded. Returns false and the
 * exit status after a message when one failed or was cancelled. */
bool wait_for_success(struct invocation *invocation, const struct job_strings *more,
                      int *ret_status);

/* Tells the user that the broker is away, and what goes on meanwhile. A reader who sees no progress
 * line is told once for each outage: the caller says whether that happened. */
void watch_say_unreachable(struct progress *progress, const struct invocation *invocation,
                           const char *what_goes_on, bool was_told);
/* Tells the user that the job goes on without this command. */
void watch_say_how_to_return(const char *id);

#endif
