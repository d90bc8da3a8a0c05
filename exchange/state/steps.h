/* Reads count their steps, which bound the cost of one answer. */
#ifndef BOURSE_EXCHANGE_STATE_STEPS_H
#define BOURSE_EXCHANGE_STATE_STEPS_H

#include "exchange/state/records.h"

static inline void steps_add(const struct exchange *exchange, uint64_t steps)
{
    *exchange->steps += steps;
}

/* Returns the steps of one match: each predicate is looked up among the attributes. */
static inline uint64_t steps_of_needs(const struct requirement *needs)
{
    return 4 + 2 * (uint64_t)needs->count;
}

#endif
