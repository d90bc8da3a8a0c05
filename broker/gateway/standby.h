/* A standby is the thread on the control port of a broker that follows another one.
 *
 * It answers every message at once with NOT_LEADER and the address of the leader, as far as known.
 * It has no sessions, and looks at heads only. Whoever completed the handshake of the port gets an
 * answer, up to a rate that all share, so that a client with an invitation finds the leader too. */
#ifndef BOURSE_BROKER_GATEWAY_STANDBY_H
#define BOURSE_BROKER_GATEWAY_STANDBY_H

#include "runtime/router.h"

#include <stdint.h>

struct standby;

/* Starts the thread. No other one uses the router until standby_stop(). The process ends when
 * memory or threads are short. */
struct standby *standby_start(struct router *router);
/* Sets what answers say from now on: where the leader is ("": unknown), and the log time that this
 * broker has reached. */
void standby_say(struct standby *standby, const char *leader, int64_t log_time_ms);
void standby_stop(struct standby **self);

#endif
