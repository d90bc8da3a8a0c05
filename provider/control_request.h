/* provider/control_request.h reads and writes the owner's request to the agent, one line of JSON.
 * provider/control.h shows the lines, and carries them. The code is pure. */
#ifndef BOURSE_PROVIDER_CONTROL_REQUEST_H
#define BOURSE_PROVIDER_CONTROL_REQUEST_H

#include "base/problem.h"
#include "base/requirement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTROL_LINE_MAX = 4096 };                     /* length of a request, newline excluded */
#define CONTROL_PAUSE_LONGEST_MS INT64_C(31622400000) /* 366 days */

enum control_command { CONTROL_STATUS, CONTROL_PAUSE, CONTROL_RESUME, CONTROL_DRAIN };

struct control_request {
    enum control_command command;
    bool now;       /* PAUSE: cancel running work, too */
    bool save;      /* PAUSE: the same, after programs that can do so have saved their state */
    int64_t for_ms; /* PAUSE: 0 means until resumed */
    char device[ATTRIBUTE_TEXT_SIZE]; /* PAUSE, RESUME: label of one device; "": the whole agent */
};

/* Reads a request from `line`, which has no newline; anybody may have written it. Returns false
 * with the problem. */
bool control_request_read(const char *line, size_t length, struct control_request *ret_request,
                          struct problem *ret_problem);
/* Writes the request with a newline and a NUL. Returns false when it does not fit. */
bool control_request_write(const struct control_request *request, char *ret_line, size_t capacity);

#endif
