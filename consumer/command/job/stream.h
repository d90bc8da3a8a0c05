/* consumer/command/job/stream.h - what a job's programs printed, on its way to the user.
 *
 * The bytes are a stranger's. A terminal shows them visible (base/text.h); a file or a pipe gets
 * them as they are, and so does a terminal with --raw. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_STREAM_H
#define BOURSE_CONSUMER_COMMAND_JOB_STREAM_H

#include "consumer/command/command.h"

/* Prints one stream of a result to stdout, or to stderr where `to_standard_error`. */
bool stream_output(struct invocation *invocation, const struct bourse_output *output,
                   bool to_standard_error, struct bourse_error *ret_error);
/* Prints to stdout what bourse_log brings. */
bool stream_log(struct invocation *invocation, const char *id, uint32_t index, bool standard_error,
                struct bourse_error *ret_error);

#endif
