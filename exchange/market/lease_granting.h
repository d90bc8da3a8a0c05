/* A trade grants a lease to the part of a job. */
#ifndef BOURSE_EXCHANGE_MARKET_LEASE_GRANTING_H
#define BOURSE_EXCHANGE_MARKET_LEASE_GRANTING_H

#include "exchange/state/records.h"

/* Takes the slots and arms the deadline. */
void lease_start_term(struct exchange *exchange, struct lease *lease);
/* Grants a lease of the ask, at once or promised in the place of `former`. Returns NULL when memory
 * is short; then nothing was granted. */
struct lease *lease_grant(struct exchange *exchange, struct part *part, struct ask *ask,
                          uint32_t slots, int64_t price_micro, struct lease *former);
/* Trades at most `slots` between the two. */
bool lease_grant_between(struct exchange *exchange, struct part *part, struct ask *ask,
                         uint32_t slots);

#endif
