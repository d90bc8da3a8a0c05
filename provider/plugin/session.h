/* provider/plugin/session.h puts a plug-in to work. The plug-in is started when it is needed,
 * describes itself once, and is started anew after it broke the protocol. */
#ifndef BOURSE_PROVIDER_PLUGIN_SESSION_H
#define BOURSE_PROVIDER_PLUGIN_SESSION_H

#include "base/problem.h"
#include "provider/plugin/talk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct session {
    const char *program;
    struct talk talk;
    struct plugin_description description; /* of the plug-in that runs */
    /* A descriptor without blocking that is readable when the operation that runs is cancelled; 0:
     * nobody cancels. */
    int cancels;
};

enum session_status {
    SESSION_DONE,
    SESSION_FAILED, /* the request failed, or is none that the plug-in takes */
    SESSION_BROKEN, /* the plug-in broke the protocol, and was ended */
};

/* Asks a new process of the plug-in for all that it says of its device, and writes the answers to
 * `describe`, `probe` and `figures`, one line each. Returns false with the problem. */
bool session_look(struct session *session, FILE *out, struct problem *ret_problem);

/* Runs an operation. *ret_result has what the plug-in says of it when it was run. For any status
 * but SESSION_DONE the problem says why. */
enum session_status session_run(struct session *session, const char *operation,
                                const char *const *arguments, size_t count,
                                struct plugin_result *ret_result, struct problem *ret_problem);

/* Lets the plug-in multiply the matrices of its folder (plugin_write_multiply), in `limit_ms` or
 * with TALK_NO_LIMIT. For any status but SESSION_DONE the problem says why. */
enum session_status session_multiply(struct session *session, uint32_t side, int limit_ms,
                                     struct problem *ret_problem);

/* Returns the most memory that the plug-in had so far, or 0 when none runs. */
uint64_t session_peak_bytes(const struct session *session);
void session_end(struct session *session);

#endif
