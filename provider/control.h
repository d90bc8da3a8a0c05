/* provider/control.h - the owner's line to the running agent: a unix socket in the agent's folder,
 * one line of JSON in, one line out, then the end.
 *
 *     {"command":"status"}
 *     {"command":"pause"}   {"command":"pause","now":true,"for_ms":7200000}
 *     {"command":"resume"}
 *     {"command":"drain"}
 *
 * An answer has "ok"; when that is false, "error" (a stable name) and "text" (one line for people).
 * Only the agent's own user and root are heard: the folder is 0700, the socket 0600, and the kernel
 * says who connects.
 *
 * Nothing here blocks. A client has CONTROL_PATIENCE to say its line and as long to take its
 * answer; when all places are taken, who has said nothing yet makes room for who comes. This file
 * moves lines; what they mean is owner.h's. */
#ifndef BOURSE_PROVIDER_CONTROL_H
#define BOURSE_PROVIDER_CONTROL_H

#include "base/checked.h"
#include "base/problem.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_SOCKET "control.sock"
#define CONTROL_PATIENCE_NS (5 * NS_PER_S)
enum {
    CONTROL_LINE_MAX = 4096, /* of a request, its newline left out */
    CONTROL_ANSWER_MAX = 4 << 20,
    CONTROL_CLIENTS_MAX = 8,
};
#define CONTROL_PAUSE_LONGEST_MS INT64_C(31622400000) /* 366 days */

enum control_command { CONTROL_STATUS, CONTROL_PAUSE, CONTROL_RESUME, CONTROL_DRAIN };

struct control_request {
    enum control_command command;
    bool now;       /* PAUSE: what runs is cancelled, too */
    int64_t for_ms; /* PAUSE: 0: until somebody resumes */
};

/* ---------------------------------------------------------------- the line: pure */

/* `line` has no newline, and anybody may have written it. False with what is wrong. */
bool control_request_read(const char *line, size_t length, struct control_request *ret_request,
                          struct problem *ret_problem);
/* The other way, newline and NUL included; false when it does not fit. */
bool control_request_write(const struct control_request *request, char *ret_line, size_t capacity);

/* ---------------------------------------------------------------- the agent's end */

struct control;

/* Listens at FOLDER/control.sock, in the place of one that a former agent left: the caller holds
 * the folder's lock. */
bool control_open(const char *folder, struct control **ret_control, struct problem *ret_problem);
/* Answers that clients have not taken are lost. */
void control_close(struct control **self);
/* Readable when control_next has something to do. */
int control_fd(const struct control *control);
/* When control_next is to be called though nothing came: somebody's time is over. INT64_MAX: no
 * need. */
int64_t control_next_deadline_ns(const struct control *control);
/* Accepts, reads and writes what there is, and gives one whole request, which control_answer
 * answers now or later. False: no more for now. Requests that are wrong are answered here. */
bool control_next(struct control *control, int64_t now_ns, uint64_t *ret_client,
                  struct control_request *ret_request);
/* Takes the answer over (NULL, for want of memory: the client is dropped). A client that is gone
 * misses it. */
void control_answer(struct control *control, int64_t now_ns, uint64_t client, json_t *answer);
/* Whether that client still waits for its answer. */
bool control_waits(const struct control *control, uint64_t client);
json_t *control_refusal(const char *error, const char *text);

/* ---------------------------------------------------------------- the owner's end */

enum control_status {
    CONTROL_OK,
    CONTROL_NOBODY, /* no agent listens there */
    CONTROL_DENIED, /* somebody else's */
    CONTROL_FAILED,
};
/* Asks the agent of FOLDER and waits for its answer, at most `timeout_ms` (0: for ever). */
enum control_status control_ask(const char *folder, const struct control_request *request,
                                int64_t timeout_ms, json_t **ret_answer,
                                struct problem *ret_problem);

#endif
