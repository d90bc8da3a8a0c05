/* The functions wait for the job of `bourse run` and print the output of its subtasks. Output is
 * printed live when somebody reads along, and the rest at the end. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_RUN_END_H
#define BOURSE_CONSUMER_COMMAND_JOB_RUN_END_H

#include "consumer/command/command.h"

/* Waits until the job has ended, fetches its outputs if it has some, and returns the exit status.
 */
int run_end_wait(struct invocation *invocation, struct bourse_job *job, const char *id,
                 bool has_outputs);
/* Says on stderr how an attempt ended. */
void run_end_say_outcome(const struct bourse_tasks *tasks, const struct bourse_outcome *outcome);

#endif
