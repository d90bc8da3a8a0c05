/* consumer/command/job/stream.h brings the printed output of a job's programs to the user.
 *
 * The bytes come from a stranger. A terminal shows them in visible form (base/text.h). A file, a
 * pipe, and a terminal with --raw get them unchanged. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_STREAM_H
#define BOURSE_CONSUMER_COMMAND_JOB_STREAM_H

#include "consumer/command/command.h"

/* Prints one stream of a result to stdout, or to stderr with `to_standard_error`. */
bool stream_output(struct invocation *invocation, const struct bourse_output *output,
                   bool to_standard_error, struct bourse_error *ret_error);
/* Writes an end of line to stderr when the last output or item that went to stderr, or to a
 * terminal, lacks one. Otherwise the command's next line would continue that output. */
void stream_end_line(void);
/* Prints bytes of a stream that comes in pieces; `state` begins as zeros. Returns false when the
 * bytes cannot be written. */
struct text_visible;
bool stream_piece(const struct invocation *invocation, struct text_visible *state,
                  const void *bytes, size_t size, bool to_standard_error);
/* Prints one of a job's streams to stdout. `subtask` names its subtask in errors. */
struct stream_item {
    const char *job, *subtask;
    bool is_standard_error;
    const char *hash;
    uint64_t size;
};
bool stream_item(struct invocation *invocation, const struct stream_item *item,
                 struct bourse_error *ret_error);
/* Prints the output of bourse_log to stdout. */
bool stream_log(struct invocation *invocation, const char *id, uint32_t index, bool standard_error,
                struct bourse_error *ret_error);

#endif
