/* consumer/command/job/piped.h reads what is piped into `bourse run`, for the program's standard
 * input. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_PIPED_H
#define BOURSE_CONSUMER_COMMAND_JOB_PIPED_H

#include "consumer/command/command.h"
#include "formats/job.h"

/* The most bytes that are sent as standard input. */
#define PIPED_BYTES_MAX (INT64_C(1) << 30)

/* Reads standard input to its end into a temporary file without a name. *ret_fd is -1 when nothing
 * is to be sent: a terminal, a device such as /dev/null, no bytes, or `--stdin`. Returns the
 * exit status, after a message unless it is BOURSE_OK. */
int piped_read(struct invocation *invocation, const struct job_file *file, int *ret_fd);

#endif
