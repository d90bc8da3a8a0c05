/* The price of a fill is the price of the lease that a bid and an ask make.
 *
 * A bid of a job whose order is `limit` or `post-only` pays the maker's price: the price of the
 * order that came first. Every other bid pays the *clearing price*: the highest of the ask's price
 * and the best limit that a person named, among the bids of other owners that the ask leaves
 * unfilled. The clearing price is never above the bid's own limit. It is the price of a multi-unit
 * auction in which the best bid that gets nothing sets the price (Vickrey 1961, section II). An ask
 * at 0 is always filled at 0.
 *
 * The clearing price is found in the market as it is just before the fill. The bids that the ask
 * meets are served in their order of price and time, the fill's bid first. Each takes what the
 * free slots and its budget allow at the ask's price. The first bid that would take more at its
 * own limit sets the clearing price, if a person named the limit. A limit is named by a cap; a
 * limit that follows from a budget is not named. Jobs that wait to be filled all at once are
 * passed over. */
#ifndef BOURSE_EXCHANGE_MARKET_FILL_PRICES_H
#define BOURSE_EXCHANGE_MARKET_FILL_PRICES_H

#include "exchange/state/records.h"

/* Returns the price at which the two would trade now. */
int64_t fill_price(const struct exchange *exchange, const struct part *part, const struct ask *ask);
/* Does the same for a part with the given number of wanted slots and the given free money. */
struct fill_means {
    uint32_t wanted;
    int64_t free_micro;
};
int64_t fill_price_with(const struct exchange *exchange, const struct part *part,
                        const struct fill_means *means, const struct ask *ask);
/* After a fill that the search foresaw, the result of the search still holds, so one search serves
 * all fills of a large ask. The caller calls fill_price_begin() before a fill of `slots` slots, and
 * passes its answer to fill_price_end() after the fill. */
bool fill_price_begin(const struct exchange *exchange, const struct part *part, struct ask *ask,
                      uint32_t slots);
void fill_price_end(const struct exchange *exchange, struct ask *ask, bool was_foreseen);

#endif
