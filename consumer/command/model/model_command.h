/* consumer/command/model/model_command.h runs a job of a model for `run model` and `train`. The
 * commands differ in the file that they make, and in how they choose parts. */
#ifndef BOURSE_CONSUMER_COMMAND_MODEL_MODEL_COMMAND_H
#define BOURSE_CONSUMER_COMMAND_MODEL_MODEL_COMMAND_H

#include "consumer/command/command.h"
#include "formats/job.h"

#include <stdbool.h>

/* Returns true for --parts auto. */
bool model_parts_are_auto(const struct invocation *invocation);

/* Makes the job's file from the options. The caller destroys the file. Returns NULL after a
 * message. */
typedef struct job_file *model_make(struct invocation *invocation);
/* Connects to the market, and puts the number of parts into the file, for --parts auto. Returns
 * false and the exit status after a message. */
typedef bool model_choose(struct invocation *invocation, struct job_file *file, int *ret_status);

/* Makes and places the job, waits for its end, and fetches its outputs. Returns the exit status. */
int model_command(struct invocation *invocation, model_make *make, model_choose *choose);

#endif
