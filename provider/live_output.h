/* provider/live_output.h sends what running subtasks print to the broker, while somebody follows
 * their jobs.
 *
 * The output is read where the workers write it, so no subtask and no lane ever waits for it. One
 * message is under way at a time: a slow broker gets less of the output, not later results. */
#ifndef BOURSE_PROVIDER_LIVE_OUTPUT_H
#define BOURSE_PROVIDER_LIVE_OUTPUT_H

#include "protocol/route/contacts.h"
#include "provider/session/agent_session.h"
#include "provider/work/lanes.h"
#include "provider/work/network.h"

enum {
    LIVE_OUTPUT_MESSAGE_BYTES = 512 << 10, /* of one message */
    LIVE_OUTPUT_PIECES = 256,
    LIVE_OUTPUT_FLUSHES = 16, /* messages that one flush sends, at most */
};
#define LIVE_OUTPUT_LOOK_NS (100 * INT64_C(1000000)) /* between two looks at followed subtasks */
#define LIVE_OUTPUT_ASK_NS (1000 * INT64_C(1000000)) /* between two messages without output */

/* A follower has this time to come back after an outage of the broker. A client may wait for one
 * greeting that nobody answers, then until the next attempt, and the rest is for a busy machine. */
#define LIVE_OUTPUT_KEPT_NS                                                                        \
    (CONTACTS_ONE_GREETING_NS + CONTACTS_WAIT_MOST_NS + 20 * INT64_C(1000000000))
#define LIVE_OUTPUT_AWAY_NS (600 * INT64_C(1000000000))

struct live_output;

/* `network` counts the bytes that are sent; NULL: none does. Returns NULL when memory is short. */
struct live_output *live_output_create(struct network *network);
void live_output_destroy(struct live_output **self);

/* Sends what is new, and asks which leases are followed. Call it at live_output_due_ns or later. */
void live_output_tick(struct live_output *live, struct agent_session *session, struct lanes *lanes,
                      int64_t now_ns);
/* Sends at once what is left of subtasks that have ended, before their results go. */
void live_output_flush(struct live_output *live, struct agent_session *session, struct lanes *lanes,
                       int64_t now_ns);
/* Returns true while the result must wait: the work ended without a broker, somebody had followed
 * its output, and the end of the output is neither in the result nor sent. The broker takes no
 * output of an attempt with a result. The wait ends LIVE_OUTPUT_KEPT_NS after the broker is back,
 * and at the latest LIVE_OUTPUT_AWAY_NS after it began. */
bool live_output_holds(struct lanes *lanes, const struct agent_session *session,
                       struct outcome *outcome, int64_t now_ns);
/* Returns the time of the next tick, or INT64_MAX while the broker has yet to answer. */
int64_t live_output_due_ns(const struct live_output *live, const struct agent_session *session);

#endif
