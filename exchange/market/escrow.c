#include "exchange/market/escrow.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"

#include <assert.h>

int64_t escrow_micro(int64_t price_micro, uint32_t slots, int64_t term_ns)
{
    assert(price_micro >= 0 && term_ns >= 0);
    uint128 product = (uint128)price_micro * slots;
    if (product > (uint128)INT64_MAX) {
        return INT64_MAX;
    }
    int64_t micro;
    return checked_muldiv_ceil((int64_t)product, term_ns, NS_PER_HOUR, &micro) ? micro : INT64_MAX;
}

uint32_t escrow_affordable_lanes(const struct part *part, int64_t price_micro)
{
    int64_t one = escrow_micro(price_micro, part->width, part->term_ns);
    if (one == 0) {
        return UINT32_MAX;
    }
    int64_t lanes = escrow_free_micro(part->job) / one;
    return lanes > UINT32_MAX ? UINT32_MAX : (uint32_t)lanes;
}

int64_t escrow_free_micro(const struct job *job)
{
    int64_t left = hold_left(&job->hold) - job->reserved_micro;
    assert(left >= 0); /* leases draw no more than the budget */
    return left;
}
