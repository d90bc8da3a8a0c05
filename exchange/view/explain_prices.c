#include "exchange/view/explain_prices.h"

#include "base/limit.h"
#include "exchange/market/bands.h"
#include "exchange/market/escrow.h"
#include "exchange/market/part_limits.h"
#include "exchange/state/names.h"
#include "exchange/view/search.h"
#include "exchange/view/smallest_change_find.h"

#include <stdlib.h>

/* Returns true when the market would refuse the order for its price or cost. */
static bool foretell_bands(const struct search *search, struct exchange_explanation *why)
{
    const struct exchange *exchange = search->exchange;
    const struct part *part = search->part;
    const int64_t budget_micro = search_budget(search->need, search->need->budget_micro);
    const int64_t notional_most_micro = exchange->notional_most_micro;
    if (part->rate == RATE_NONE && limit_is_set(part->cap_micro) &&
        band_price_bound(exchange, part->cap_micro) != part->cap_micro) {
        why->refusal = XREJECT_PRICE;
        why->refused_at_micro = band_price_bound(exchange, part->cap_micro);
    } else if (notional_most_micro > 0 && part->term_ns > 0 &&
               band_part_notional(exchange, part, budget_micro) > notional_most_micro) {
        why->refusal = XREJECT_NOTIONAL;
        why->refused_at_micro = notional_most_micro;
    }
    return why->refusal != 0;
}

/* Fills in the forecast for an order that arrives now. */
static void foretell(const struct search *search, const struct whole *whole,
                     struct exchange_explanation *why)
{
    const struct altered as_it_is = search_unaltered(search);
    const struct meeting meeting = search_meet(search, &as_it_is);
    why->is_asked = true;
    if (foretell_bands(search, why)) {
        return;
    }
    if (meeting.is_own || (meeting.meets && as_it_is.type == EXCHANGE_POST_ONLY)) {
        const int64_t escrow =
            escrow_micro(meeting.first_micro, search->part->width, search->part->term_ns);
        const bool is_short = !meeting.is_own && escrow > escrow_free_micro(search->part->job);
        why->refusal = meeting.is_own ? XREJECT_SELF_MATCH
                       : is_short     ? XREJECT_BUDGET
                                      : XREJECT_WOULD_TRADE;
        name_copy(why->refused_at, meeting.first->device->label);
        why->refused_at_micro = is_short ? escrow : meeting.first_micro;
    } else if (whole != NULL) {
        why->starts_at_micro = whole->fills ? whole->price_micro : -1;
    } else if (meeting.from != NULL) {
        why->starts_at_micro = meeting.price_micro;
        why->starts_with_lease = meeting.from->lease != NULL;
    }
}

/* Returns true when a waiting bid with that limit would meet its own account's asks first and be
 * refused. */
static bool meets_own_first(const struct search *search, int64_t limit_micro,
                            struct exchange_explanation *why)
{
    struct altered altered = search_unaltered(search);
    altered.cap_micro = limit_micro;
    const struct meeting meeting = search_meet(search, &altered);
    if (meeting.is_own) {
        why->past_own_micro = limit_micro;
        name_copy(why->own_device, meeting.first->device->label);
        why->own_device_micro = meeting.first_micro;
    }
    return meeting.is_own;
}

void explain_whole(const struct search *search, struct exchange_explanation *why)
{
    struct whole whole;
    why->fills_at_micro = -1;
    if (!search_whole(search, &whole)) {
        return;
    }
    const struct part *part = search->part;
    why->whole.slots = whole.wanted;
    why->whole.free = whole.free;
    why->whole.limit_micro = part->bid_micro;
    why->whole.is_of_budget = part_limit_is_of_budget(part);
    if (!search->is_filed && !search->exchange->is_halted) {
        foretell(search, &whole, why);
    }
    if (whole.is_there && !whole.fills && part->job->part_count == 1 &&
        !search->exchange->is_halted && why->refusal == 0 &&
        !meets_own_first(search, whole.limit_micro, why)) {
        smallest_change_find_whole(search, &whole, &why->smallest_change);
    }
}

void explain_lanes(const struct search *search, struct exchange_explanation *why)
{
    const struct part *part = search->part;
    const bool is_halted = search->exchange->is_halted;
    if (part->job->type == EXCHANGE_POST_ONLY) {
        why->fills_at_micro = -1; /* a post-only bid fills at no limit */
    }
    if (part->waiting > 0 && !is_halted && why->free == 0) {
        int64_t takes_at_micro;
        search_takes(search, &takes_at_micro, &why->takes_budget_micro);
        why->takes_at_micro =
            takes_at_micro > part->bid_micro &&
                    (why->fills_at_micro < 0 || takes_at_micro < why->fills_at_micro)
                ? takes_at_micro
                : -1;
    }
    if (!search->is_filed && !is_halted) {
        foretell(search, NULL, why);
    }
    if (why->refusal != 0) {
        why->fills_at_micro = why->takes_at_micro = -1; /* the limit is not the cause */
    }
    if (why->fills_at_micro > part->bid_micro &&
        meets_own_first(search, why->fills_at_micro, why)) {
        why->fills_at_micro = -1;
    }
    if (why->takes_at_micro >= 0 && meets_own_first(search, why->takes_at_micro, why)) {
        why->takes_at_micro = -1;
    }
    if (why->free == 0 && why->affordable > 0) {
        why->is_own_leases = search->is_filed && search_are_own_leases(search);
    }
    if (why->free == 0 && why->asking > 0) {
        queue_find(search, why);
    }
    if (!is_halted && part->waiting > 0 && why->starts_at_micro < 0 &&
        why->refusal != XREJECT_SELF_MATCH) {
        smallest_change_find(search, &why->smallest_change);
    }
}
