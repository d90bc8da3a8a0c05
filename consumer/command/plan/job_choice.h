/* This module loads a job file. Only the market knows which needs of a list can be had, and how
 * long a model takes. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_JOB_CHOICE_H
#define BOURSE_CONSUMER_COMMAND_PLAN_JOB_CHOICE_H

#include "consumer/command/command.h"
#include "consumer/job/job_build.h"

#include <jansson.h>

/* Loads the job like job_build_load. A job that runs a model on arrays gets the time that the model
 * is expected to take on the market's devices, unless the file says one. Where the job's needs are
 * a list, takes the first that can be had, and says on stderr which one was taken, and why. Both
 * connect to the market. Returns false and the exit status after a message. */
bool job_choice_load(struct invocation *invocation, const char *path, job_file_edit *edit,
                     void *context, struct bourse_job **ret_job, int *ret_status);

/* Sets what a run of the job's model is expected to take, by the devices on the market. A job that
 * says so, or whose work is not known, stays as it is. Files are relative to `folder`. Connects to
 * the market when the work is known. Returns false and the exit status after a message. */
bool job_choice_expect(struct invocation *invocation, const char *folder, struct job_file *file,
                       int *ret_status);
/* Adds to the plan which needs of a list were taken, counted from 1. */
void job_choice_add_json(json_t *plan, const struct job_file *file);

#endif
