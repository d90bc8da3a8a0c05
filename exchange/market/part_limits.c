#include "exchange/market/part_limits.h"

#include "base/checked.h"
#include "base/limit.h"
#include "exchange/lifecycle.h"
#include "exchange/state/parts.h"

#include <assert.h>

int64_t part_limit_most(uint32_t subtasks, uint32_t at_most, uint32_t width, int64_t term_ns)
{
    const uint32_t lanes = at_most == 0 ? 1 : part_lanes_most(subtasks, at_most, width);
    const int128 whole_ns = (int128)term_ns * width * lanes;
    assert(whole_ns > 0);
    const int128 most = (int128)INT64_MAX * NS_PER_HOUR / whole_ns;
    return most < INT64_MAX ? (int64_t)most : INT64_MAX;
}

/* Returns the slot-time that the whole job is expected to take. */
static int128 planned_ns(const struct job *job)
{
    int128 sum = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        const struct part *part = &job->parts[i];
        sum += (int128)part->expect_ns * (part->end - part->first) * part->width;
    }
    return sum;
}

/* Returns the price at which the budget covers one term of all lanes of the job, each lease rounded
 * up. */
static int64_t whole_limit(const struct job *job, int64_t budget_micro)
{
    int128 whole_ns = 0;
    int64_t lanes = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        const struct part *part = &job->parts[i];
        const uint32_t most = part_lanes_most(part->end - part->first, part->at_most, part->width);
        whole_ns += (int128)part->term_ns * part->width * most;
        lanes += most;
    }
    int128 limit = (int128)budget_micro * NS_PER_HOUR / whole_ns;
    if (limit * whole_ns % NS_PER_HOUR != 0) {
        limit = budget_micro > lanes ? (int128)(budget_micro - lanes) * NS_PER_HOUR / whole_ns : 0;
    }
    return limit < INT64_MAX ? (int64_t)limit : INT64_MAX;
}

static int64_t market_limit(const struct exchange *exchange, const struct part *part,
                            int64_t budget_micro)
{
    int128 whole_ns = planned_ns(part->job);
    int128 one_lease_ns = (int128)part->term_ns * part->width;
    whole_ns = whole_ns > one_lease_ns ? whole_ns : one_lease_ns;
    assert(whole_ns > 0);
    int128 limit = (int128)budget_micro * NS_PER_HOUR / whole_ns;
    return limit < exchange->price_band_micro ? (int64_t)limit : exchange->price_band_micro;
}

int64_t part_limit(const struct exchange *exchange, const struct part *part, int64_t cap_micro,
                   int64_t budget_micro)
{
    const int64_t limit =
        limit_is_set(cap_micro) ? cap_micro : market_limit(exchange, part, budget_micro);
    const int64_t whole =
        part->job->type == EXCHANGE_ALL_OR_NONE ? whole_limit(part->job, budget_micro) : INT64_MAX;
    return limit < whole ? limit : whole;
}

bool part_limit_is_of_budget(const struct part *part)
{
    return !limit_is_set(part->cap_micro) || part->bid_micro < part->cap_micro;
}

int64_t part_limit_in(const struct exchange *exchange, const struct part *part, uint32_t cell)
{
    return book_limit(exchange->book, (enum rate)part->rate, part->bid_micro, cell);
}
