/* The functions tell which asks a part may take, whatever the price. */
#ifndef BOURSE_EXCHANGE_MARKET_PART_ELIGIBILITY_H
#define BOURSE_EXCHANGE_MARKET_PART_ELIGIBILITY_H

#include "exchange/state/records.h"

/* An ask and a part that may trade, for the functions that pass over orders. */
struct pair_context {
    struct exchange *exchange;
    struct part *part;
    struct ask *ask;
    /* Bids that wait to be filled all at once are passed over, except this one; NULL: none is
     * passed over. */
    const struct part *whole;
    bool is_short; /* A term of some ask costs more than the budget has left. */
};

/* Returns true when the job can never have a lane again. A job may wait for a better price before
 * anything was charged or is held for a charge; a job without a budget waits for donated slots.
 * Afterwards, with nothing running and no lease left, the job would wait forever for slots that its
 * budget no longer covers. */
bool part_is_used_up(const struct job *job);
/* Returns true when the ask suits the part: not avoided, terms accepted, and work to do; nobody
 * leases to check its own results. */
bool part_may_take(const struct exchange *exchange, const struct part *part, const struct ask *ask);

#endif
