/* broker/core/release.h - effects of a committed group as messages: answers, pushes, and notes to
 * the directories and the blob store. Pure but for memory: where they go is the caller's. */
#ifndef BOURSE_BROKER_CORE_RELEASE_H
#define BOURSE_BROKER_CORE_RELEASE_H

#include "broker/core/messages.h"
#include "exchange/exchange.h"

#include <stdbool.h>

/* Takes `outgoing` over. */
typedef void release_send(void *context, struct outgoing *outgoing);

/* One message per effect, in order; neighbouring dispatches (and withdrawals) of one lease travel
 * together. JOB effects make none, LEDGER effects a note to the
 * blob port of what a result names. False when out of memory, with some already sent. */
bool release_effects(const struct exchange_effects *effects, release_send *send, void *context);

/* Which of its blobs a result makes the consumer's (enum results_blobs). `is_taken`: it was
 * accepted, or is held until it is checked. */
unsigned release_names(bool is_taken, unsigned outcome);

/* The directory's row for an account effect. */
void release_account(const struct exchange_effect *effect, struct directory_account *ret_account);

#endif
