/* This header tells which asks a part may take, whatever the price. */
#ifndef BOURSE_EXCHANGE_MARKET_PART_ELIGIBILITY_H
#define BOURSE_EXCHANGE_MARKET_PART_ELIGIBILITY_H

#include "exchange/state/records.h"

/* A pair is an ask and a part that may trade, for the functions that pass over orders. */
struct pair_context {
    struct exchange *exchange;
    struct part *part;
    struct ask *ask;
    /* The only bid considered of those that wait for all their slots at once. NULL: each of them is
     * considered that can have all its slots now. */
    const struct part *whole;
    bool is_short; /* a term of some ask costs more than the budget has left */
};

/* Returns true when the job can never have a lane again. Nothing of the job runs, it has no lease
 * left, and something was charged or waits for a verdict. The job would then wait forever for slots
 * that its budget no longer covers. A job that was charged nothing may still wait for a better
 * price, and a job without a budget waits for donated slots. */
bool part_is_used_up(const struct job *job);
/* Returns true when the ask suits the part. The ask is for the job's owner, and the job takes an
 * ask that is interruptible. The price band lets a bid by value pay the ask's price. The job does
 * not avoid the provider. Where work waits, the provider may do some of it: nobody checks results
 * of its own. The device is not known to end all of it after the deadline (lateness.h). */
bool part_may_take(const struct exchange *exchange, const struct part *part, const struct ask *ask);

#endif
