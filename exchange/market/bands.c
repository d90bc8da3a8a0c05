/* The bands bound the orders that the market takes, by price and by the value of one order.
 *
 * Both bounds change while the market runs (roles risk and operator). The market checks them when
 * an order arrives or gets a new place in its queue. A resting order outside a new band stays,
 * keeps its place and is filled as before.
 *
 * Orders without a price of their own follow the band. A bid at market price does so when it
 * arrives or gets a new place. A bid by value does so at once, and so do the prices of exposed
 * leases. */
#include "exchange/state.h"

#include "base/checked.h"

/* ---------------------------------------------------------------- setting them */

static bool bands_in_range(struct exchange *exchange, const struct exchange_bands *bands)
{
    if (bands->most_micro < 1) {
        reject(exchange, XREJECT_PRICE, "most_micro", bands->most_micro, 1);
    } else if (bands->least_micro < 0 || bands->least_micro > bands->most_micro) {
        reject(exchange, XREJECT_PRICE, "least_micro", bands->least_micro,
               bands->least_micro < 0 ? 0 : bands->most_micro);
    } else if (bands->notional_micro < 0) {
        reject(exchange, XREJECT_NOTIONAL, "notional_micro", bands->notional_micro, 0);
    }
    return !exchange->is_rejected;
}

/* A higher band may let bids by value pay for asks that were out of reach, so they look again. */
static void follow_band(struct exchange *exchange)
{
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, all);
        if (job->phase == JOB_PHASE_OPEN) {
            job_expose_leases(exchange, job);
            job_wants(exchange, job);
        }
    }
}

void apply_bands(struct exchange *exchange, const struct exchange_bands *given)
{
    if ((sender(exchange)->roles & (XROLE_OPERATOR | XROLE_RISK)) == 0) {
        reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    struct exchange_bands bands = exchange_bands_now(exchange);
    bands.least_micro = given->has_least ? given->least_micro : bands.least_micro;
    bands.most_micro = given->has_most ? given->most_micro : bands.most_micro;
    bands.notional_micro = given->has_notional ? given->notional_micro : bands.notional_micro;
    if (!bands_in_range(exchange, &bands)) {
        return;
    }
    const bool is_other_most = bands.most_micro != exchange->price_band_micro;
    if (is_other_most || bands.least_micro != exchange->price_least_micro ||
        bands.notional_micro != exchange->notional_most_micro) {
        feed_bands(exchange);
    }
    exchange->price_least_micro = bands.least_micro;
    exchange->price_band_micro = bands.most_micro;
    exchange->notional_most_micro = bands.notional_micro;
    book_set_price_most(exchange->book, bands.most_micro);
    flag(exchange, exchange->command->account, &sender(exchange)->key, "bands");
    if (is_other_most) {
        follow_band(exchange);
    }
}

struct exchange_bands exchange_bands_now(const struct exchange *exchange)
{
    return (struct exchange_bands){
        .has_least = true,
        .has_most = true,
        .has_notional = true,
        .least_micro = exchange->price_least_micro,
        .most_micro = exchange->price_band_micro,
        .notional_micro = exchange->notional_most_micro,
    };
}

/* ---------------------------------------------------------------- orders */

int64_t price_bound(const struct exchange *exchange, int64_t price_micro)
{
    const int64_t least_micro = exchange->price_least_micro;
    if (price_micro > 0 && price_micro < least_micro) {
        return least_micro;
    }
    return price_micro < 0                            ? 0
           : price_micro > exchange->price_band_micro ? exchange->price_band_micro
                                                      : price_micro;
}

bool ask_in_reach(const struct exchange *exchange, const struct part *part, const struct ask *ask)
{
    return part->rate == RATE_NONE || ask->price_micro <= exchange->price_band_micro;
}

bool price_in_band(struct exchange *exchange, const char *field, int64_t price_micro)
{
    const int64_t bound_micro = price_bound(exchange, price_micro);
    if (bound_micro != price_micro) {
        reject(exchange, XREJECT_PRICE, field, price_micro, bound_micro);
    }
    return bound_micro == price_micro;
}

int64_t ask_notional(int64_t price_micro, uint32_t slots, int64_t max_term_ns)
{
    return escrow_micro(price_micro, slots, max_term_ns > 0 ? max_term_ns : NS_PER_HOUR);
}

int64_t part_notional(const struct exchange *exchange, const struct part *part,
                      int64_t budget_micro)
{
    const int64_t price_micro =
        part->rate == RATE_NONE ? part->bid_micro : exchange->price_band_micro;
    const uint32_t lanes = lanes_most(part->end - part->first, part->at_most, part->width);
    const int128 slot_ns = (int128)part->term_ns * part->width * lanes;
    const int128 most = (int128)budget_micro * NS_PER_HOUR;
    const bool is_less = price_micro == 0 || slot_ns < most / price_micro;
    return is_less ? (int64_t)((slot_ns * price_micro + NS_PER_HOUR - 1) / NS_PER_HOUR)
                   : budget_micro;
}

bool notional_in_bounds(struct exchange *exchange, const char *field, int64_t notional_micro)
{
    const int64_t most_micro = exchange->notional_most_micro;
    const bool is_within = most_micro == 0 || notional_micro <= most_micro;
    if (!is_within) {
        reject(exchange, XREJECT_NOTIONAL, field, notional_micro, most_micro);
    }
    return is_within;
}
