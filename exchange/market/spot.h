/* The spot market lets bids take exposed leases from their holders. */
#ifndef BOURSE_EXCHANGE_MARKET_SPOT_H
#define BOURSE_EXCHANGE_MARKET_SPOT_H

#include "exchange/state/records.h"

/* Returns true when a part whose bid may take leases may take this exposed one, whatever the
 * prices. */
bool spot_may_be_taken(const struct exchange *exchange, const struct part *part,
                       const struct lease *lease);
/* Lets a bid that found nothing to fill from take a lease, in this step. */
void spot_challenge(struct exchange *exchange, struct part *part);
bool spot_turn(struct exchange *exchange); /* false: no challenge is left */

#endif
