/* The smallest change of a bid that is filled all at once is a change of its figures. */
#include "base/limit.h"
#include "exchange/market/escrow.h"
#include "exchange/market/part_limits.h"
#include "exchange/state/parts.h"
#include "exchange/view/smallest_change_candidate.h"
#include "exchange/view/smallest_change_find.h"

/* Returns the least budget at which the part's limit reaches that price. */
static int64_t budget_for(const struct search *search, int64_t cap_micro, int64_t price_micro)
{
    const struct part *part = search->part;
    int64_t low_micro = part->job->hold.amount_micro;
    int64_t high_micro = INT64_MAX;
    while (low_micro < high_micro) {
        const int64_t middle_micro = low_micro + (high_micro - low_micro) / 2;
        if (part_limit(search->exchange, part, cap_micro, middle_micro) >= price_micro) {
            high_micro = middle_micro;
        } else {
            low_micro = middle_micro + 1;
        }
    }
    return low_micro;
}

/* Returns the longest shorter term for which cap and budget pay everything; 0: none is long enough
 * for a subtask. */
static int64_t payable_term_ns(const struct search *search, const struct whole *whole)
{
    const struct part *part = search->part;
    const int64_t budget_micro = part->job->hold.amount_micro;
    struct candidate changed = {
        .slots = part->width,
        .cap_micro = limit_is_set(part->cap_micro) ? part->cap_micro : search->need->cap_micro,
        .budget_micro = budget_micro};
    int64_t low_ms =
        (part_least_term_ns(search->need->limit_ns, part->term_ns) + NS_PER_MS - 1) / NS_PER_MS;
    int64_t high_ms = part->term_ns / NS_PER_MS - 1;
    if (part->job->type == EXCHANGE_FOK && whole->escrow_micro > budget_micro) {
        high_ms = (int64_t)((int128)part->term_ns * budget_micro / whole->escrow_micro / NS_PER_MS);
    }
    if (low_ms > high_ms) {
        return 0;
    }
    while (low_ms < high_ms) {
        const int64_t middle_ms = high_ms - (high_ms - low_ms) / 2;
        changed.term_ns = middle_ms * NS_PER_MS;
        if (smallest_change_limit(search, &changed) >= whole->dearest_micro) {
            low_ms = middle_ms;
        } else {
            high_ms = middle_ms - 1;
        }
    }
    return low_ms * NS_PER_MS;
}

/* Returns true when the bid fills with such a term at its present cap and budget; gives the dearest
 * price. */
static bool fills_for(const struct search *search, int64_t term_ns, int64_t *ret_price_micro)
{
    struct job job = *search->part->job;
    struct part changed = *search->part;
    struct exchange_need need = *search->need;
    struct search asked = *search;
    struct whole whole;
    job.parts = &changed;
    changed.job = &job;
    changed.term_ns = need.term_ns = term_ns;
    changed.bid_micro =
        part_limit(search->exchange, &changed, changed.cap_micro, job.hold.amount_micro);
    need.cap_micro = changed.bid_micro;
    asked.part = &changed;
    asked.need = &need;
    const struct candidate candidate = {.slots = changed.width,
                                        .term_ns = term_ns,
                                        .cap_micro = need.cap_micro,
                                        .budget_micro = job.hold.amount_micro};
    const struct altered altered = search_unaltered(&asked);
    if (search_meet(&asked, &altered).is_own ||
        !smallest_change_within_notional(&asked, &candidate) || !search_whole(&asked, &whole)) {
        return false;
    }
    *ret_price_micro = whole.price_micro;
    return whole.fills;
}

/* The market may refuse an order with the budget that a full term needs. */
static void shorten_whole(const struct search *search, const struct whole *whole,
                          struct exchange_smallest_change *ret_smallest)
{
    const struct part *part = search->part;
    if (search->need->rate != RATE_NONE || part->job->part_count > 1) {
        return;
    }
    const int64_t term_ns = payable_term_ns(search, whole);
    if (term_ns > 0 && fills_for(search, term_ns, &ret_smallest->price_micro)) {
        ret_smallest->term_ns = term_ns;
        ret_smallest->cap_micro = part->cap_micro;
        ret_smallest->budget_micro = part->job->hold.amount_micro;
        smallest_change_add_figure(ret_smallest, BID_CHANGE_TERM, part->term_ns, term_ns);
    }
}

/* All slots exist at some price, but the limit is lower or the budget does not cover them. */
void smallest_change_find_whole(const struct search *search, const struct whole *whole,
                                struct exchange_smallest_change *ret_smallest)
{
    const struct part *part = search->part;
    const struct exchange_need *need = search->need;
    const int64_t budget_micro = part->job->hold.amount_micro;
    struct altered altered = search_unaltered(search);
    ret_smallest->count = 0;
    ret_smallest->takes = false;
    ret_smallest->fills_slots = ret_smallest->wanted_slots = whole->wanted;
    ret_smallest->price_micro = whole->dearest_micro;
    smallest_change_copy(need->needs, &ret_smallest->needs);
    smallest_change_copy(need->needs, &ret_smallest->was);
    ret_smallest->slots = part->width;
    ret_smallest->term_ns = part->term_ns;
    ret_smallest->rate = need->rate;
    ret_smallest->type = part->job->type;
    ret_smallest->cap_micro = limit_is_set(part->cap_micro) && part->cap_micro < whole->limit_micro
                                  ? whole->limit_micro
                                  : part->cap_micro;
    ret_smallest->budget_micro = budget_for(search, ret_smallest->cap_micro, whole->limit_micro);
    if (part->job->type == EXCHANGE_FOK && ret_smallest->budget_micro < whole->escrow_micro) {
        ret_smallest->budget_micro = whole->escrow_micro;
    }
    altered.cap_micro = whole->limit_micro;
    const struct candidate changed = {
        .slots = part->width,
        .term_ns = part->term_ns,
        .cap_micro = whole->limit_micro,
        .budget_micro = ret_smallest->budget_micro,
    };
    if (search_meet(search, &altered).is_own) {
        return;
    }
    if (!smallest_change_within_notional(search, &changed)) {
        shorten_whole(search, whole, ret_smallest);
        return;
    }
    smallest_change_add_figure(ret_smallest, BID_CHANGE_CAP, part->cap_micro,
                               ret_smallest->cap_micro);
    smallest_change_add_figure(ret_smallest, BID_CHANGE_BUDGET, budget_micro,
                               ret_smallest->budget_micro);
}
