#include "exchange/view/smallest_change_candidate.h"

#include "base/limit.h"
#include "exchange/lifecycle.h"
#include "exchange/market/bands.h"
#include "exchange/market/part_limits.h"

#include <assert.h>
#include <string.h>

void smallest_change_copy(const struct requirement *from, struct requirement *ret_copy)
{
    ret_copy->count = from->count;
    memcpy(ret_copy->nodes, from->nodes, from->count * sizeof from->nodes[0]);
}

int64_t smallest_change_limit(const struct search *search, const struct candidate *candidate)
{
    const int64_t budget_micro = search_budget(search->need, candidate->budget_micro);
    const bool has_cap =
        limit_is_set(search->part->cap_micro) || candidate->cap_micro != search->need->cap_micro;
    if (candidate->term_ns == 0) {
        return candidate->cap_micro; /* the need has no term */
    }
    struct job job = *search->part->job;
    struct part changed = *search->part;
    if (job.part_count == 1) {
        job.parts = &changed;
    }
    changed.job = &job;
    changed.width = candidate->slots;
    changed.term_ns = candidate->term_ns;
    return part_limit(search->exchange, &changed, has_cap ? candidate->cap_micro : LIMIT_NONE,
                      budget_micro);
}

bool smallest_change_within_notional(const struct search *search, const struct candidate *candidate)
{
    const struct exchange *exchange = search->exchange;
    const int64_t most_micro = exchange->notional_most_micro;
    const int64_t budget_micro = search_budget(search->need, candidate->budget_micro);
    if (most_micro == 0) {
        return true;
    }
    struct part changed = *search->part;
    changed.width = candidate->slots;
    changed.term_ns = candidate->term_ns;
    changed.bid_micro = smallest_change_limit(search, candidate);
    return band_part_notional(exchange, &changed, budget_micro) <= most_micro;
}

void smallest_change_add(struct exchange_smallest_change *smallest_change,
                         const struct exchange_bid_change *change)
{
    assert(smallest_change->count < EXCHANGE_CHANGES_MOST);
    smallest_change->changes[smallest_change->count++] = *change;
}

void smallest_change_add_figure(struct exchange_smallest_change *smallest_change,
                                enum exchange_bid_change_kind kind, int64_t from, int64_t to)
{
    if (from != to) {
        const struct exchange_bid_change change = {.kind = kind, .from = from, .to = to};
        smallest_change_add(smallest_change, &change);
    }
}
