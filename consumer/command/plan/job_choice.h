/* consumer/command/plan/job_choice.h loads a job file whose `needs:` may be a list. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_JOB_CHOICE_H
#define BOURSE_CONSUMER_COMMAND_PLAN_JOB_CHOICE_H

#include "consumer/command/command.h"
#include "consumer/job/job_build.h"

/* Loads the job like job_build_load. Where its needs are a list, connects to the market, takes the
 * first that can be had, and says on stderr which one was taken, and why. Returns false and the
 * exit status after a message. */
bool job_choice_load(struct invocation *invocation, const char *path, job_file_edit *edit,
                     void *context, struct bourse_job **ret_job, int *ret_status);

#endif
