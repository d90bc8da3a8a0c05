/* The bands bound the orders that the market takes, by price and by the value of one order.
 *
 * Both bounds change while the market runs (roles risk and operator). The market checks them when
 * an order arrives or gets a new place in its queue. A resting order outside a new band stays,
 * keeps its place and is filled as before.
 *
 * Orders without a price of their own follow the band. A bid at market price does so when it
 * arrives or gets a new place. A bid by value does so at once, and so do the prices of exposed
 * leases. */
#include "exchange/market/bands.h"

#include "base/checked.h"
#include "exchange/market/escrow.h"
#include "exchange/state/effects.h"
#include "exchange/state/parts.h"

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

int64_t band_price_bound(const struct exchange *exchange, int64_t price_micro)
{
    const int64_t least_micro = exchange->price_least_micro;
    if (price_micro > 0 && price_micro < least_micro) {
        return least_micro;
    }
    return price_micro < 0                            ? 0
           : price_micro > exchange->price_band_micro ? exchange->price_band_micro
                                                      : price_micro;
}

bool band_reaches_ask(const struct exchange *exchange, const struct part *part,
                      const struct ask *ask)
{
    return part->rate == RATE_NONE || ask->price_micro <= exchange->price_band_micro;
}

bool band_allows_price(struct exchange *exchange, const char *field, int64_t price_micro)
{
    const int64_t bound_micro = band_price_bound(exchange, price_micro);
    if (bound_micro != price_micro) {
        effect_reject(exchange, XREJECT_PRICE, field, price_micro, bound_micro);
    }
    return bound_micro == price_micro;
}

int64_t band_ask_notional(int64_t price_micro, uint32_t slots, int64_t max_term_ns)
{
    return escrow_micro(price_micro, slots, max_term_ns > 0 ? max_term_ns : NS_PER_HOUR);
}

int64_t band_part_notional(const struct exchange *exchange, const struct part *part,
                           int64_t budget_micro)
{
    const int64_t price_micro =
        part->rate == RATE_NONE ? part->bid_micro : exchange->price_band_micro;
    const uint32_t lanes = part_lanes_most(part->end - part->first, part->at_most, part->width);
    const int128 slot_ns = (int128)part->term_ns * part->width * lanes;
    const int128 most = (int128)budget_micro * NS_PER_HOUR;
    const bool is_less = price_micro == 0 || slot_ns < most / price_micro;
    return is_less ? (int64_t)((slot_ns * price_micro + NS_PER_HOUR - 1) / NS_PER_HOUR)
                   : budget_micro;
}

bool band_allows_notional(struct exchange *exchange, const char *field, int64_t notional_micro)
{
    const int64_t most_micro = exchange->notional_most_micro;
    const bool is_within = most_micro == 0 || notional_micro <= most_micro;
    if (!is_within) {
        effect_reject(exchange, XREJECT_NOTIONAL, field, notional_micro, most_micro);
    }
    return is_within;
}
