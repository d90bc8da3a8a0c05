/* consumer/command/complain.h ends a command with a message. */
#ifndef BOURSE_CONSUMER_COMMAND_COMPLAIN_H
#define BOURSE_CONSUMER_COMMAND_COMPLAIN_H

#include "consumer/command/command.h"

/* Prints the error, as JSON on stdout with --json, and returns the exit status. */
int complain_with(struct invocation *invocation, const struct bourse_error *error);
/* The same for an error about a job that is on the market. The JSON names the job. */
int complain_about_job(struct invocation *invocation, const char *id,
                       const struct bourse_error *error);
/* Says on stderr that the broker at `endpoint` has been silent, unless the invocation is quiet. For
 * bourse_options.on_silence, with the invocation as its context. */
void complain_of_silence(void *context, const char *endpoint, int left_ms);
/* The same for bourse_options.on_moved. */
void complain_of_move(void *context, const char *endpoint, const char *what, int left_ms);
/* The same for bourse_options.on_stalled. */
void complain_of_stall(void *context, const char *endpoint, const char *what, int left_ms);
__attribute__((format(printf, 3, 4))) int
complain(struct invocation *invocation, enum bourse_status status, const char *format, ...);

#endif
