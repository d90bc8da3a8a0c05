#include "consumer/job/quote/quote_total.h"

#include "consumer/job/quote/quote_limits.h"

static bool has_level(const struct bourse_quote *quote, const struct bourse_level *level)
{
    for (uint32_t i = 0; i < quote->level_count; i++) {
        const struct bourse_level *known = &quote->levels[i];
        if (known->price_micro == level->price_micro && known->slots == level->slots &&
            known->providers == level->providers) {
            return true;
        }
    }
    return false;
}

/* Adds one part's offers to those of the others: cheapest first, each once, while there is room. */
static void add_levels(struct bourse_quote *all, const struct bourse_quote *part)
{
    for (uint32_t i = 0; i < part->level_count; i++) {
        if (has_level(all, &part->levels[i])) {
            continue; /* apparently the same devices */
        }
        uint32_t at = all->level_count < BOURSE_LEVELS_MAX ? all->level_count++ : UINT32_MAX;
        for (; at != UINT32_MAX && at > 0 &&
               all->levels[at - 1].price_micro > part->levels[i].price_micro;
             at--) {
            all->levels[at] = all->levels[at - 1];
        }
        if (at != UINT32_MAX) {
            all->levels[at] = part->levels[i];
        }
    }
}

static bool starts(const struct bourse_quote *quote)
{
    return quote->explanation.starts_at_micro >= 0;
}

void quote_total_add(struct bourse_quote *all, const struct bourse_quote *part)
{
    const bool explains = starts(all) && !starts(part); /* the first part that does not start */
    all->slots_now = part->slots_now < all->slots_now ? part->slots_now : all->slots_now;
    all->slots_taken = (uint32_t)quote_larger(all->slots_taken, part->slots_taken);
    all->taken_low_micro = part->slots_taken > 0 && (all->taken_low_micro == 0 ||
                                                     part->taken_low_micro < all->taken_low_micro)
                               ? part->taken_low_micro
                               : all->taken_low_micro;
    all->taken_high_micro = quote_larger(all->taken_high_micro, part->taken_high_micro);
    all->price_low_micro =
        part->price_low_micro < all->price_low_micro ? part->price_low_micro : all->price_low_micro;
    all->price_high_micro = quote_larger(all->price_high_micro, part->price_high_micro);
    all->expected_micro = quote_sum(all->expected_micro, part->expected_micro);
    all->minimum_micro = quote_larger(all->minimum_micro, part->minimum_micro);
    all->suggested_micro = quote_sum(all->suggested_micro, part->suggested_micro);
    all->limit_micro = quote_larger(all->limit_micro, part->limit_micro);
    if (part->suggested_cap_micro > all->suggested_cap_micro) {
        all->suggested_cap_micro = part->suggested_cap_micro;
        all->suggested_cap_trades = part->suggested_cap_trades;
        all->suggested_cap_since_ms = part->suggested_cap_since_ms;
    }
    all->makespan_ns = quote_larger(all->makespan_ns, part->makespan_ns);
    all->without_gift = all->without_gift > 0 ? all->without_gift : part->without_gift;
    all->index = part->index;
    if (explains && part->has_explanation) {
        all->has_explanation = true;
        all->explanation = part->explanation;
    }
    add_levels(all, part);
}
