/* A past state is a second exchange that stands at the last entry that the journal surely has.
 *
 * While the journal takes no entry, the live exchange is ahead of it, and the entry that waits may
 * never be in. So reads are answered from the past state meanwhile. A thread makes it from the
 * newest snapshot and the entries in the ledger after it, as a start would. The market's own state
 * is untouched. Only the core's thread uses the functions. */
#ifndef BOURSE_BROKER_CORE_OUTAGE_PAST_STATE_H
#define BOURSE_BROKER_CORE_OUTAGE_PAST_STATE_H

#include "exchange/exchange.h"

struct past_state;

/* `database` is the ledger's path, and `snapshots` the folder of snapshots; both are borrowed.
 * Returns NULL when memory is short. */
struct past_state *past_state_create(const char *database, const char *snapshots,
                                     const struct exchange_limits *limits);
/* Waits for the thread, if it runs. */
void past_state_destroy(struct past_state **self);
/* Returns the past state, or NULL until it is made. The first call after past_state_drop() starts
 * the thread. When it failed, NULL is returned until the next drop, and the log has the reason. */
const struct exchange *past_state_look(struct past_state *past);
/* The journal takes entries again: the past state goes. Costs nothing when there is none. */
void past_state_drop(struct past_state *past);

#endif
