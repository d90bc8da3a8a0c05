/* broker/answer/terminal_relay.h passes bytes between the two ends of terminals, the owner of a job
 * and the agent that runs it (docs/protocol.md, section 7).
 *
 * Nothing of it enters the log. A direction holds what its receiver has not taken, up to a window;
 * then its sender waits. Nothing is dropped: the bytes that a broker loses when it stops are still
 * with their sender. Each end has one message of each kind under way. Only the core's thread calls
 * these functions. */
#ifndef BOURSE_BROKER_ANSWER_TERMINAL_RELAY_H
#define BOURSE_BROKER_ANSWER_TERMINAL_RELAY_H

#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "exchange/exchange.h"
#include "protocol/limits.h"

enum {
    TERMINAL_RELAY_TERMINALS = 128, /* at a time; each takes 130 KiB */
    TERMINAL_RELAY_OF_ACCOUNT = 16, /* of one owner */
    /* Bytes a second of one terminal, typed and printed. As many may come at once. */
    TERMINAL_RELAY_IN_RATE = 256 << 10,
    TERMINAL_RELAY_OUT_RATE = 2 << 20,
};
/* A TerminalSend that brings nothing new is answered after this time. */
#define TERMINAL_RELAY_WAIT_NS (5 * INT64_C(1000000000))
/* A sender above its rate is answered after this time. */
#define TERMINAL_RELAY_RATE_NS (20 * INT64_C(1000000))
/* An owner who sends no request for this time is gone. */
#define TERMINAL_RELAY_GONE_NS (LIMIT_TERMINAL_AWAY_S * INT64_C(1000000000))
/* A terminal is forgotten when nobody asks about it for this time. */
#define TERMINAL_RELAY_TERM_NS (15 * INT64_C(1000000000))

struct terminal_relay;

/* Returns NULL when memory is short. */
struct terminal_relay *terminal_relay_create(void);
void terminal_relay_destroy(struct terminal_relay **self);

/* Takes a TerminalSend or a TerminalReceive of either end. Returns a refusal, or NULL:
 * terminal_relay_next then makes the answer, at once or later. A second message of one kind and end
 * replaces the first, and *ret_former (else NULL) answers the first. `now_ns` is the time of a
 * monotonic clock. */
struct outgoing *terminal_relay_take(struct terminal_relay *relay, const struct exchange *exchange,
                                     const struct request *request, int64_t now_ns,
                                     struct outgoing **ret_former);
void terminal_relay_forget(struct terminal_relay *relay, uint64_t session);

/* Returns the time of the next work for terminal_relay_next, or INT64_MAX when it has none. */
int64_t terminal_relay_due_ns(const struct terminal_relay *relay);
/* Returns the next answer that is due, or NULL when there is none. The answer's `account` is the
 * one that asked. */
struct outgoing *terminal_relay_next(struct terminal_relay *relay, int64_t now_ns);

#endif
