/* broker/release.h - effects of a committed group as messages: answers, pushes, and notes to the
 * directories and the blob store. Pure but for memory: where they go is the caller's. */
#ifndef BOURSE_BROKER_RELEASE_H
#define BOURSE_BROKER_RELEASE_H

#include "broker/messages.h"
#include "exchange/exchange.h"

#include <stdbool.h>

/* Takes `outgoing` over. */
typedef void release_send(void *context, struct outgoing *outgoing);

/* One message per effect, in order; neighbouring dispatches (and withdrawals) of one lease travel
 * together. LEDGER and JOB effects make none. False when out of memory, with some already sent. */
bool release_effects(const struct exchange_effects *effects, release_send *send, void *context);

/* The directory's row for an account effect. */
void release_account(const struct exchange_effect *effect, struct directory_account *ret_account);

#endif
