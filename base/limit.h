/* base/limit.h says whether somebody set a limit of money, and what it allows.
 *
 * The cap of a job is the most that it pays for a slot-hour, and its budget the most that all of it
 * costs. A limit is 0 or more micro-credits, or LIMIT_NONE when nobody set it. Messages have no
 * field for a limit that nobody set. */
#ifndef BOURSE_BASE_LIMIT_H
#define BOURSE_BASE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LIMIT_NONE INT64_C(-1)

static inline bool limit_is_set(int64_t limit_micro)
{
    return limit_micro >= 0;
}

/* Returns true when an amount (0 or more) is within the limit. Without a limit every amount is. */
static inline bool limit_allows(int64_t limit_micro, int64_t amount_micro)
{
    return !limit_is_set(limit_micro) || amount_micro <= limit_micro;
}

#endif
