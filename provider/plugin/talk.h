/* provider/plugin/talk.h holds the conversation with a plug-in, the owner's program for a device
 * (docs/plugins.md).
 *
 * The plug-in is a child process with two pipes. Each request is one line and has one answer of one
 * line (formats/plugin/plugin_line.h). A plug-in that breaks the protocol is killed. It does so
 * when it gives no answer in time, more than one line, or a line that is too long. */
#ifndef BOURSE_PROVIDER_PLUGIN_TALK_H
#define BOURSE_PROVIDER_PLUGIN_TALK_H

#include "base/problem.h"
#include "formats/plugin/plugin_line.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A plug-in has this time for an answer. The answer to `run` has only the subtask's limit, and that
 * to `multiply` only the challenge's; TALK_MULTIPLY_MS is for the product of the agent's start. */
enum {
    TALK_DESCRIBE_MS = 10000,
    TALK_PROBE_MS = 5000,
    TALK_FIGURES_MS = 2000,
    TALK_MULTIPLY_MS = 10000,
    TALK_CANCEL_MS = 2000, /* for the answer to a `run` that was cancelled */
    TALK_NO_LIMIT = -1
};

struct talk {
    pid_t pid;    /* 0: no plug-in runs */
    int to, from; /* the plug-in's standard input and output */
};

/* Starts the program, whose standard error is that of this process. Returns false with the
 * problem. */
bool talk_start(const char *program, struct talk *ret_talk, struct problem *ret_problem);
/* Kills the plug-in, if one runs, and waits for its end. */
void talk_end(struct talk *talk);
/* Returns true when the plug-in runs and has said nothing that it was not asked. Otherwise the
 * plug-in is ended. */
bool talk_is_ready(struct talk *talk);

/* Sends a request and waits for the answer, at most `limit_ms`. Returns false with the problem
 * when there is no answer; the plug-in is ended then. *ret_length counts no newline. */
bool talk_ask(struct talk *talk, const char *request, size_t length, int limit_ms,
              char ret_line[PLUGIN_LINE_BYTES], size_t *ret_length, struct problem *ret_problem);

/* A request may be cancelled while its answer is waited for. */
struct talk_cancel {
    int fd; /* readable when the request is cancelled; -1: nobody cancels it */
    /* The line that is sent then. The plug-in has TALK_CANCEL_MS to answer the request. NULL: the
     * plug-in is ended at once. */
    const char *line;
    size_t length;
};
/* Does the same for a request that may be cancelled. */
bool talk_ask_or_cancel(struct talk *talk, const char *request, size_t length, int limit_ms,
                        const struct talk_cancel *cancel, char ret_line[PLUGIN_LINE_BYTES],
                        size_t *ret_length, struct problem *ret_problem);

#endif
