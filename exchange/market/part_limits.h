/* The limit of a part's bid follows from its cap, its budget and its lanes. */
#ifndef BOURSE_EXCHANGE_MARKET_PART_LIMITS_H
#define BOURSE_EXCHANGE_MARKET_PART_LIMITS_H

#include "exchange/state/records.h"

/* Returns the limit above which one term of all lanes would cost more than an int64 holds. A part
 * without a bound counts as one lane. */
int64_t part_limit_most(uint32_t subtasks, uint32_t at_most, uint32_t width, int64_t term_ns);
/* Returns the limit of a part's bid for a cap and a budget: the cap, or at market price what lets
 * the budget buy the planned time within the price band. A bid by value has its value. Bids that
 * wait to be filled all at once stay within what the budget covers for all. */
int64_t part_limit(const struct exchange *exchange, const struct part *part, int64_t cap_micro,
                   int64_t budget_micro);
/* Returns true when the budget of a job that waits for all at once sets the limit, not the cap. */
bool part_limit_is_of_budget(const struct part *part);
/* Returns the part's limit per slot-hour in the cell. */
int64_t part_limit_in(const struct exchange *exchange, const struct part *part, uint32_t cell);

#endif
