/* An all-or-none job takes everything that it wants at once, or waits. */
#ifndef BOURSE_EXCHANGE_MARKET_ALL_OR_NONE_H
#define BOURSE_EXCHANGE_MARKET_ALL_OR_NONE_H

#include "exchange/state/records.h"

/* Tells book_match to pass over a bid for the ask of a `struct pair_context`. */
bool all_or_none_skip_bid(void *context, uint32_t handle);
/* Fills all that the job's bids want, or returns false. A waiting job could not be filled when
 * slots last came. */
bool all_or_none_fill(struct exchange *exchange, struct job *job);

#endif
