/* consumer/command/shell/shell_job.h makes the job file of a shell from the command line. */
#ifndef BOURSE_CONSUMER_COMMAND_SHELL_SHELL_JOB_H
#define BOURSE_CONSUMER_COMMAND_SHELL_SHELL_JOB_H

#include "consumer/command/command.h"
#include "formats/job.h"

/* Makes the job of one program with a terminal. `is_person` is true when a person types at a
 * terminal. Returns NULL after a message; the caller destroys the job file. */
struct job_file *shell_job(struct invocation *invocation, bool is_person);

#endif
