/* consumer/job/quote/quote_limits.h computes the cap and the budget that a quote suggests for one
 * part of a job. The header is not installed, and the code is pure. */
#ifndef BOURSE_CONSUMER_JOB_QUOTE_QUOTE_LIMITS_H
#define BOURSE_CONSUMER_JOB_QUOTE_QUOTE_LIMITS_H

#include "base/checked.h"
#include "consumer/job/bourse_job.h"

static inline int64_t quote_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the sum, or INT64_MAX when the sum is larger. */
static inline int64_t quote_sum(int64_t a, int64_t b)
{
    int64_t sum;
    return checked_add(a, b, &sum) ? sum : INT64_MAX;
}

/* Returns one and a half times the amount, rounded up. */
static inline int64_t quote_with_half(int64_t micro)
{
    return quote_sum(micro, micro / 2 + (micro & 1));
}

/* Returns true when the order takes all its slots at once, or none. */
bool quote_is_whole(const struct job_file *file);
/* Returns how many subtasks of the part run at a time at most. */
int64_t quote_lanes(const struct order_part *part);

/* Returns the budget to suggest for the part; 0: no price is known. */
int64_t quote_budget(const struct job_file *file, const struct order_part *part,
                     const struct bourse_quote *quote);

#endif
