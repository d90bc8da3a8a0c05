/* The control socket is the owner's line to the running agent. The socket is a unix socket in the
 * agent's folder. A client sends one line of JSON, gets one line back, and the connection ends.
 *
 *     {"command":"status"}
 *     {"command":"pause"}   {"command":"pause","now":true,"for_ms":7200000}
 *     {"command":"pause","save":true,"device":"gpu0"}
 *     {"command":"resume"}  {"command":"resume","device":"gpu0"}
 *     {"command":"drain"}
 *
 * An answer has "ok". A false "ok" comes with "error" (a stable name) and "text" (one line for
 * people). The agent hears its own user and root only. The folder is 0700, the socket 0600, and the
 * kernel says who connects.
 *
 * Nothing here blocks. A client has CONTROL_PATIENCE_NS to send its line and as long again to take
 * the answer. If all places are taken, a silent client makes room for a new one. This file moves
 * lines; owner.h gives them their meaning. */
#ifndef BOURSE_PROVIDER_CONTROL_H
#define BOURSE_PROVIDER_CONTROL_H

#include "base/checked.h"
#include "base/problem.h"
#include "provider/control_request.h"
#include "runtime/market.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_PATIENCE_NS (5 * NS_PER_S)
enum {
    CONTROL_ANSWER_MAX = 4 << 20,
    CONTROL_CLIENTS_MAX = 8,
};

/* ---------------------------------------------------------------- the agent's end */

struct control;

/* Listens at FOLDER/control.sock and replaces the socket of a former agent. The caller holds the
 * folder's lock. */
bool control_open(const char *folder, struct control **ret_control, struct problem *ret_problem);
/* Closes every connection and frees. Answers that clients have not taken are lost. */
void control_close(struct control **self);
/* Returns a descriptor that is readable when control_next has something to do. */
int control_fd(const struct control *control);
/* Returns the time at which control_next must be called even if nothing came, because a client's
 * time is over. INT64_MAX: no need. */
int64_t control_next_deadline_ns(const struct control *control);
/* Accepts, reads and writes what it can, and returns one complete request. The caller answers the
 * request with control_answer, now or later. Returns false when there is no request for now. This
 * function itself answers requests that are wrong. */
bool control_next(struct control *control, int64_t now_ns, uint64_t *ret_client,
                  struct control_request *ret_request);
/* Sends the answer and takes it over. A NULL answer means that memory was short; then the client is
 * dropped. A client that is gone misses its answer. */
void control_answer(struct control *control, int64_t now_ns, uint64_t client, json_t *answer);
/* Returns true while that client waits for its answer. */
bool control_waits(const struct control *control, uint64_t client);
json_t *control_refusal(const char *error, const char *text);

/* ---------------------------------------------------------------- the owner's end */

enum control_status {
    CONTROL_OK,
    CONTROL_NOBODY, /* no agent listens there */
    CONTROL_DENIED, /* the agent belongs to another user */
    CONTROL_FAILED,
};
/* Asks the agent of FOLDER and waits for its answer, at most `timeout_ms` (0: for ever). */
enum control_status control_ask(const char *folder, const struct control_request *request,
                                int64_t timeout_ms, json_t **ret_answer,
                                struct problem *ret_problem);

#endif
