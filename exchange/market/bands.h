/* The bands bound the price and the value of an order on its arrival. */
#ifndef BOURSE_EXCHANGE_MARKET_BANDS_H
#define BOURSE_EXCHANGE_MARKET_BANDS_H

#include "exchange/state/records.h"

/* Returns the price itself when an order may have it, else the bound of the band that it breaks. */
int64_t band_price_bound(const struct exchange *exchange, int64_t price_micro);
/* Returns true when a bid by value may pay the ask's price within the band in force; other bids
 * were checked on arrival. */
bool band_reaches_ask(const struct exchange *exchange, const struct part *part,
                      const struct ask *ask);
/* Returns false when the price is outside the band; the command is then refused under `field`. */
bool band_allows_price(struct exchange *exchange, const char *field, int64_t price_micro);
/* Returns the cost of a lease of all slots of an ask for its longest term, or for an hour without
 * one. */
int64_t band_ask_notional(int64_t price_micro, uint32_t slots, int64_t max_term_ns);
/* Returns the cost of one term of all that a part wants at a time, at its limit. A bid by value
 * counts at the highest price. The job's budget bounds the result. */
int64_t band_part_notional(const struct exchange *exchange, const struct part *part,
                           int64_t budget_micro);
/* Returns false when the cost is above the bound; the command is then refused under `field`. */
bool band_allows_notional(struct exchange *exchange, const char *field, int64_t notional_micro);

#endif
