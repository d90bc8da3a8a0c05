#include "consumer/job/quote/quote_limits.h"

#include <string.h>

/* Returns the dearest price among the offers for the part's slots; -1: no offer. */
static int64_t dearest_of(const struct order_part *part, const struct bourse_quote *quote)
{
    int64_t wanted = part->at_most != 0 ? part->at_most : INT64_MAX;
    if (part->subtasks < wanted / part->slots) {
        wanted = (int64_t)part->subtasks * part->slots;
    }
    int64_t dearest_micro = -1;
    for (uint32_t i = 0; i < quote->level_count && wanted > 0; i++) {
        dearest_micro = quote->levels[i].price_micro;
        wanted -= quote->levels[i].slots;
    }
    return dearest_micro;
}

/* Returns the price to pay when all present slots are donated and then go away. Other asks give the
 * price, leased slots included, else the job's cap, else the price paid lately. 0: the job pays
 * anyway, or no price is known. */
static int64_t price_elsewhere(const struct job_file *file, const struct order_part *part,
                               const struct bourse_quote *quote)
{
    if (dearest_of(part, quote) != 0) {
        return 0;
    }
    const int64_t other_micro =
        limit_is_set(file->cap_micro) ? file->cap_micro : quote->suggested_cap_micro;
    return quote->elsewhere_micro > 0 ? quote->elsewhere_micro : quote_larger(other_micro, 0);
}

bool quote_is_whole(const struct job_file *file)
{
    return file->order == JOB_ORDER_FOK || file->order == JOB_ORDER_ALL_OR_NONE;
}

int64_t quote_lanes(const struct order_part *part)
{
    const int64_t most = part->at_most > 0 ? part->at_most / part->slots : part->subtasks;
    return most < part->subtasks ? most : part->subtasks;
}

/* The budget follows the market's rule without donations: 1.5 times the cost, a term of the slots
 * in use, and one term more. */
static int64_t budget_elsewhere(const struct job_file *file, const struct order_part *part,
                                const struct bourse_quote *quote)
{
    const int64_t price_micro = price_elsewhere(file, part, quote);
    if (price_micro == 0) {
        return 0;
    }
    const int64_t expect_ms = part->expect_ns / NS_PER_MS + (part->expect_ns % NS_PER_MS > 0);
    const int64_t lanes = quote_larger(quote->elsewhere_slots / part->slots, 1);
    const int64_t cost_micro =
        order_price_micro(price_micro, (int64_t)part->subtasks * part->slots, expect_ms);
    const int64_t lease_micro = order_price_micro(price_micro, part->slots, part->term_ms);
    int64_t leases_micro;
    return checked_mul(lease_micro, lanes + 1, &leases_micro)
               ? quote_sum(quote_with_half(cost_micro), leases_micro)
               : INT64_MAX;
}

/* An order for all slots at once starts with at least a term of all of them, and its bid is bounded
 * by the budget. The suggestion therefore covers the limit. */
int64_t quote_budget(const struct job_file *file, const struct order_part *part,
                     const struct bourse_quote *quote)
{
    if (quote->suggested_micro <= 0) {
        return 0; /* no price is known */
    }
    const int64_t least_micro =
        quote_larger(quote->suggested_micro, budget_elsewhere(file, part, quote));
    if (!quote_is_whole(file)) {
        return least_micro;
    }
    const int64_t limit_micro = file->cap_micro;
    const int64_t lanes = quote_lanes(part);
    const int64_t whole_micro =
        order_price_micro(limit_micro > 0 ? limit_micro : quote->price_high_micro,
                          lanes * part->slots, part->term_ms);
    /* Each lease is rounded up by itself. */
    return quote_larger(least_micro, quote_sum(whole_micro, lanes));
}
