#include "exchange/market/counterparts.h"

#include "exchange/market/all_or_none.h"
#include "exchange/market/asks.h"
#include "exchange/market/bands.h"
#include "exchange/market/bids.h"
#include "exchange/market/donations.h"
#include "exchange/market/escrow.h"
#include "exchange/market/fill_prices.h"
#include "exchange/market/part_eligibility.h"
#include "exchange/market/part_limits.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lookup.h"

/* Own orders are passed over: a new order that meets its own first was refused. */
static bool skip_ask(void *context, uint32_t handle)
{
    struct pair_context *pair = context;
    const struct exchange *exchange = pair->exchange;
    const struct ask *ask = exchange->orders_by_handle[handle];
    if (book_owner(exchange->book, handle) == pair->part->job->owner ||
        !part_may_take(exchange, pair->part, ask)) {
        return true;
    }
    bool is_short = escrow_affordable_lanes(pair->part, fill_price(exchange, pair->part, ask)) == 0;
    pair->is_short = pair->is_short || is_short;
    return is_short;
}

struct part *counterpart_of_ask(struct exchange *exchange, struct ask *ask, uint32_t *ret_slots)
{
    struct pair_context pair = {.exchange = exchange, .ask = ask};
    const struct book_order order = ask_order(exchange, ask);
    struct book_match match;
    if (order.slots == 0 || !ask_match(exchange, &order, all_or_none_skip_bid, &pair, &match)) {
        return NULL;
    }
    *ret_slots = match.slots;
    return exchange->orders_by_handle[match.handle];
}

/* skip_unfit does the same as all_or_none_skip_bid and leaves no trace. */
struct offer {
    const struct exchange *exchange;
    const struct ask *ask;
};

static bool skip_unfit(void *context, uint32_t handle)
{
    const struct offer *offer = context;
    const struct part *part = offer->exchange->orders_by_handle[handle];
    return offer->ask->device->key.provider == part->job->owner ||
           !part_may_take(offer->exchange, part, offer->ask) || job_waits_for_all(part->job) ||
           escrow_affordable_lanes(
               part, part_limit_in(offer->exchange, part, offer->ask->device->cell)) == 0;
}

int64_t counterpart_ask_fills_at(const struct exchange *exchange, const struct ask *ask)
{
    struct ask lower = *ask;
    lower.price_micro = 1; /* a donation is another order */
    lower.type = EXCHANGE_LIMIT;
    lower.sequence = exchange->sequence;
    struct offer offer = {.exchange = exchange, .ask = &lower};
    const struct book_order order = ask_order(exchange, &lower);
    struct book_match match;
    if (exchange->is_halted || order.slots == 0 ||
        lookup_member(exchange, order.owner)->is_frozen ||
        !book_match(exchange->book, &order, skip_unfit, &offer, &match)) {
        return -1;
    }
    /* An ask at the bid's limit is filled at this limit, whatever others bid. */
    lower.price_micro =
        part_limit_in(exchange, exchange->orders_by_handle[match.handle], lower.device->cell);
    const int64_t bound_micro = band_price_bound(exchange, lower.price_micro);
    if (bound_micro > lower.price_micro) {
        return -1;
    }
    lower.price_micro = bound_micro;
    int64_t bid_micro = 0;
    return ask_refusal(exchange, &lower, &bid_micro) != 0 ? -1 : lower.price_micro;
}

struct found_ask counterpart_of_part(struct exchange *exchange, struct part *part)
{
    struct pair_context pair = {.exchange = exchange, .part = part};
    const struct book_order order = bid_order(part);
    struct book_match match = {.handle = BOOK_NONE};
    bool is_found = order.slots > 0 && book_match(exchange->book, &order, skip_ask, &pair, &match);
    return (struct found_ask){
        .ask = is_found ? exchange->orders_by_handle[match.handle] : NULL,
        .slots = match.slots,
        .is_short = pair.is_short,
    };
}

static bool skip_holder(void *context, uint32_t handle)
{
    const struct pair_context *pair = context;
    const struct part *part = pair->exchange->orders_by_handle[handle];
    return part->job->owner == pair->part->job->owner || all_or_none_skip_bid(context, handle);
}

bool counterpart_donation_is_due(struct exchange *exchange, struct lease *lease)
{
    if (lease->price_micro > 0 || lease->device->ask == NULL ||
        lease->device->ask->price_micro > 0) {
        return false;
    }
    struct pair_context pair = {
        .exchange = exchange, .part = lease->part, .ask = lease->device->ask};
    struct book_order order = ask_order(exchange, pair.ask);
    struct book_match match;
    order.slots = lease->slots; /* counts the lease's slots as free */
    if (!ask_match(exchange, &order, skip_holder, &pair, &match)) {
        return false;
    }
    const struct part *next = exchange->orders_by_handle[match.handle];
    return donation_rank(exchange, next->job->owner) < donation_rank_without(exchange, lease);
}

bool counterpart_is_there(struct exchange *exchange, struct job *job)
{
    for (uint32_t i = 0; i < job->part_count; i++) {
        if (counterpart_of_part(exchange, &job->parts[i]).ask != NULL) {
            return true;
        }
    }
    return false;
}
