#include "exchange/market/fill_prices.h"

#include "exchange/market/bids.h"
#include "exchange/market/devices.h"
#include "exchange/market/escrow.h"
#include "exchange/market/part_eligibility.h"
#include "exchange/market/part_limits.h"
#include "exchange/state/job_records.h"
#include "matching/book_walk.h"

/* The search serves the bids in their order and notes the first two owners whose named limits stay
 * unfilled. The second is for fills of the first one's own bids. */
struct clearing_search {
    const struct exchange *exchange;
    const struct part *part; /* its bid is served first */
    const struct ask *ask;
    uint32_t free; /* slots of the ask before any bid is served */
    uint32_t left; /* slots that the bids served so far leave */
    uint32_t bids; /* bids that may still be looked at */
    struct clearing found;
};

/* Returns the slots, of `left`, that the part would take at the price with that much money. */
static uint32_t slots_taken(const struct part *part, const struct fill_means *means, uint32_t left,
                            int64_t price_micro)
{
    const int64_t one_micro = escrow_micro(price_micro, part->width, part->term_ns);
    const int64_t lanes = one_micro == 0 ? UINT32_MAX : means->free_micro / one_micro;
    uint32_t most = means->wanted < left ? means->wanted : left;
    most -= most % part->width;
    return lanes < most / part->width ? (uint32_t)lanes * part->width : most;
}

static void note_owner(struct clearing *found, uint32_t owner, int64_t limit_micro)
{
    if (found->count == 1 && found->owners[0] == owner) {
        return;
    }
    found->owners[found->count] = owner;
    found->limits_micro[found->count] = limit_micro;
    found->count++;
}

static bool serve(void *context, uint32_t handle)
{
    struct clearing_search *search = context;
    const struct exchange *exchange = search->exchange;
    const struct ask *ask = search->ask;
    const struct part *part = exchange->orders_by_handle[handle];
    const bool is_eligible = part != search->part &&
                             part->job->owner != ask->device->key.provider &&
                             part->width <= search->free &&
                             (ask->max_term_ns == 0 || part->term_ns <= ask->max_term_ns) &&
                             !job_waits_for_all(part->job) && part_may_take(exchange, part, ask);
    if (is_eligible) {
        struct clearing *found = &search->found;
        found->widest = part->width > found->widest ? part->width : found->widest;
        const struct fill_means means = {book_slots(exchange->book, handle),
                                         escrow_free_micro(part->job)};
        const int64_t limit_micro = part_limit_in(exchange, part, ask->device->cell);
        if (slots_taken(part, &means, UINT32_MAX, limit_micro) > search->left &&
            !part_limit_is_of_budget(part)) {
            note_owner(&search->found, part->job->owner, limit_micro);
        }
        search->left -= slots_taken(part, &means, search->left, ask->price_micro);
    }
    return --search->bids > 0 && search->found.count < CLEARING_OWNERS;
}

static struct clearing find_clearing(const struct exchange *exchange, const struct part *part,
                                     const struct fill_means *means, const struct ask *ask)
{
    const uint32_t free = device_free_slots(exchange, ask) - ask->planned;
    struct clearing_search search = {
        .exchange = exchange, .part = part, .ask = ask, .free = free, .bids = CLEARING_BIDS_MOST};
    search.left = free - slots_taken(part, means, free, ask->price_micro);
    book_walk_bids(exchange->book, ask->device->cell, ask->price_micro, serve, &search);
    return search.found;
}

/* Returns true when a bid of the part pays the clearing price. The checks of a job with a limit
 * order do when they have no cap, because nobody named their price. */
static bool pays_clearing_price(const struct part *part)
{
    const uint8_t type = part->job->type;
    return (type != EXCHANGE_LIMIT && type != EXCHANGE_POST_ONLY) || part_limit_is_of_budget(part);
}

/* Returns true when the result of the last search still holds. Since the search, only fills of the
 * ask that it foresaw may have happened. It must also have foreseen a fill of this part: the search
 * passes over jobs that wait to be filled all at once. */
static bool is_known(const struct exchange *exchange, const struct part *part,
                     const struct ask *ask)
{
    return exchange->command != NULL && ask->cleared_at == exchange->market_changes &&
           !job_waits_for_all(part->job);
}

static struct fill_means means_of(const struct part *part)
{
    return (struct fill_means){bid_order(part).slots, escrow_free_micro(part->job)};
}

int64_t fill_price(const struct exchange *exchange, const struct part *part, const struct ask *ask)
{
    const struct fill_means means = means_of(part);
    return fill_price_with(exchange, part, &means, ask);
}

int64_t fill_price_with(const struct exchange *exchange, const struct part *part,
                        const struct fill_means *means, const struct ask *ask)
{
    if (ask->price_micro == 0) {
        return 0;
    }
    const int64_t limit_micro = part_limit_in(exchange, part, ask->device->cell);
    if (!pays_clearing_price(part)) {
        return ask->sequence < part->sequence ? ask->price_micro : limit_micro;
    }
    const struct clearing clearing =
        is_known(exchange, part, ask) ? ask->clearing : find_clearing(exchange, part, means, ask);
    int64_t price_micro = ask->price_micro;
    for (uint32_t i = clearing.count; i-- > 0;) {
        if (clearing.owners[i] != part->job->owner && clearing.limits_micro[i] > price_micro) {
            price_micro = clearing.limits_micro[i];
        }
    }
    return price_micro < limit_micro ? price_micro : limit_micro;
}

bool fill_price_begin(const struct exchange *exchange, const struct part *part, struct ask *ask,
                      uint32_t slots)
{
    if (ask->price_micro == 0 || !pays_clearing_price(part)) {
        return false;
    }
    const struct fill_means means = means_of(part);
    if (!is_known(exchange, part, ask)) {
        ask->clearing = find_clearing(exchange, part, &means, ask);
        ask->cleared_at = exchange->market_changes;
    }
    const uint32_t free = device_free_slots(exchange, ask);
    return part->job->part_count == 1 && ask->daily_ns == 0 &&
           ask->clearing.widest <= free - slots &&
           slots == slots_taken(part, &means, free, ask->price_micro);
}

void fill_price_end(const struct exchange *exchange, struct ask *ask, bool was_foreseen)
{
    ask->cleared_at = was_foreseen ? exchange->market_changes : 0;
}
