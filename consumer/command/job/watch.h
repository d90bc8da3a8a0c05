/* consumer/command/job/watch.h - waiting for a job, shared by submit, run and logs. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_WATCH_H
#define BOURSE_CONSUMER_COMMAND_JOB_WATCH_H

#include "consumer/command/command.h"
#include "consumer/command/job/replanning.h"

/* The exit status that tells how a job ended: 0, 1, 9, or 5 where it got nothing or its time was
 * over. */
int job_exit_status(const struct bourse_job_row *row);

/* Waits with progress, at most --wait-at-most, and plans anew what no longer goes as planned. True:
 * the job has ended, *ret_row tells how. False: *ret_status is the exit status and it has been said
 * how to come back to the job. */
bool watch_job(struct invocation *invocation, const char *id, struct bourse_job_row *ret_row,
               struct replanning *ret_replanning, int *ret_status);

/* Tells that the job goes on without us. */
void say_how_to_return(const char *id);

#endif
