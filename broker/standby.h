/* A standby is what a broker that follows another one offers on its control port.
 *
 * Clients that only read get answers from the exchange that follows the journal, and from the
 * ledger behind it. Each answer says of which state it is. Everybody else is told who leads. The
 * standby has threads of its own. They read the exchange with the lock of standby_state(). */
#ifndef BOURSE_BROKER_STANDBY_H
#define BOURSE_BROKER_STANDBY_H

#include "broker/broker_internal.h"
#include "broker/gateway/following.h"

#include <pthread.h>

struct standby;

/* Starts the threads, for a broker whose exchange has a feed. No other thread uses the control port
 * until standby_stop(). The process ends when memory or threads are short. */
struct standby *standby_start(struct broker *broker);
/* Returns the lock that its owner holds while the exchange changes. */
pthread_mutex_t *standby_state(struct standby *standby);
/* Returns what answers say of the leader and of the state; the caller writes it. */
struct following_note *standby_following(struct standby *standby);
/* Notes the effects of an entry that was applied. The caller does not hold the lock. */
void standby_applied(struct standby *standby, const struct exchange_effects *effects);
/* Stops the threads. What is asked and not answered goes to another broker. */
void standby_stop(struct standby **self);

#endif
