/* The donation queue orders accounts by the slot-time that they had at price 0. */
#ifndef BOURSE_EXCHANGE_MARKET_DONATIONS_H
#define BOURSE_EXCHANGE_MARKET_DONATIONS_H

#include "exchange/state/records.h"

/* Returns the present day, in days since 1970 (UTC, log time). */
int64_t donation_day(const struct exchange *exchange);
/* Returns the member's donated use as faded now. */
int64_t donation_used_ns(const struct exchange *exchange, const struct member *member);
/* Returns the account's rank; the least rank is first in the donation queue. */
int64_t donation_rank(const struct exchange *exchange, uint32_t account);
/* Returns the promise of a lease whose term ends at `end_ns`. */
int64_t donation_promised_till(const struct exchange *exchange, struct lease *lease,
                               int64_t end_ns);
/* Returns the rank of the lease's owner if the lease ended now. */
int64_t donation_rank_without(const struct exchange *exchange, struct lease *lease);

#endif
