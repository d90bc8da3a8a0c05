/* tests/support/slow_prices.h says at which price two orders of the slow market trade, and how many
 * slots. */
#ifndef BOURSE_TESTS_SLOW_PRICES_H
#define BOURSE_TESTS_SLOW_PRICES_H

#include "tests/support/slow_market.h"

/* Returns the slots that the two could trade, whoever they are and whatever the budget. */
uint32_t slow_tradable(const struct slow_part *part, const struct slow_ask *ask, uint32_t slots);
/* Returns true when the ask's conditions admit the job. */
bool slow_is_for(const struct slow_ask *ask, const struct slow_job *job);
/* Returns the same, for an ask whose owner is another account. */
bool slow_may_trade(const struct slow_job *job, const struct slow_ask *ask);
/* Returns the price of a term of so many slots, rounded up. */
int64_t slow_cost(const struct slow_part *part, int64_t price, uint32_t slots);
/* Returns true when the ask meets bid a before b. */
bool slow_is_before_on(const struct slow_ask *ask, const struct slow_part *a,
                       const struct slow_part *b);
/* Returns the price at which the two would trade now. */
int64_t slow_price_between(const struct slow_market *slow, const struct slow_job *job,
                           const struct slow_part *part, const struct slow_ask *ask);
/* Returns the slots, of those given, that the budget pays for at the price of the two. */
uint32_t slow_payable(const struct slow_market *slow, const struct slow_job *job,
                      const struct slow_part *part, const struct slow_ask *ask, uint32_t slots);

#endif
