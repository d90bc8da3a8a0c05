#include "tests/support/slow_prices.h"

/* Returns what the part gives for a slot of that device, in parts of RATE_UNIT. */
static int128 worth(const struct slow_part *part, const struct slow_ask *ask)
{
    return (int128)part->limit * (part->is_valued ? ask->operations : RATE_UNIT);
}

/* Returns what the part pays at most for a slot-hour of that device. */
static int64_t limit_on(const struct slow_part *part, const struct slow_ask *ask)
{
    const int64_t whole = (int64_t)(worth(part, ask) / RATE_UNIT);
    return part->is_valued && whole > part->most ? part->most : whole;
}

static uint32_t in_widths(uint32_t slots, const struct slow_part *part)
{
    return slots - slots % part->width;
}

uint32_t slow_tradable(const struct slow_part *part, const struct slow_ask *ask, uint32_t slots)
{
    const bool meets = ask->stands && worth(part, ask) >= (int128)ask->price * RATE_UNIT &&
                       (!part->is_valued || (ask->operations > 0 && ask->price <= part->most)) &&
                       (ask->max_term == 0 || ask->max_term >= part->term) &&
                       (part->kind == SLOW_KINDS || part->kind == ask->kind);
    const uint32_t most = slots < part->wanted ? slots : part->wanted;
    return meets ? in_widths(most, part) : 0;
}

bool slow_is_for(const struct slow_ask *ask, const struct slow_job *job)
{
    return (ask->to == 0 || (ask->to >> job->owner & 1) != 0) &&
           !(ask->is_interruptible && job->is_firm_only);
}

bool slow_may_trade(const struct slow_job *job, const struct slow_ask *ask)
{
    return ask->owner != job->owner && slow_is_for(ask, job);
}

int64_t slow_cost(const struct slow_part *part, int64_t price, uint32_t slots)
{
    return (price * slots * part->term + 1) / 2;
}

/* Returns the slots, of those given, that the job's budget pays for at the price. */
static uint32_t paid_at(const struct slow_job *job, const struct slow_part *part, int64_t price,
                        uint32_t slots)
{
    const int64_t one = slow_cost(part, price, part->width);
    const int64_t lanes = slots / part->width;
    const int64_t most = one == 0 ? lanes : job->free_micro / one;
    return (uint32_t)(most < lanes ? most : lanes) * part->width;
}

bool slow_is_before_on(const struct slow_ask *ask, const struct slow_part *a,
                       const struct slow_part *b)
{
    const int128 of_a = worth(a, ask);
    const int128 of_b = worth(b, ask);
    return of_a > of_b || (of_a == of_b && a->sequence < b->sequence);
}

struct served {
    const struct slow_job *job;
    const struct slow_part *part;
};

/* Returns the bid that the ask serves after `last` (NULL: the first of all), among those that it
 * could serve and whose limit is above its price. The bid of the fill is left out. */
static struct served served_after(const struct slow_market *slow, const struct slow_ask *ask,
                                  const struct slow_part *last, const struct slow_part *fill)
{
    struct served best = {NULL, NULL};
    for (uint32_t i = 0; i < slow->job_count; i++) {
        const struct slow_job *job = &slow->jobs[i];
        for (uint32_t k = 0; job->is_open && k < job->part_count; k++) {
            const struct slow_part *part = &job->parts[k];
            const bool is_served = part->stands && part != fill && slow_may_trade(job, ask) &&
                                   job->type != EXCHANGE_ALL_OR_NONE &&
                                   worth(part, ask) > (int128)ask->price * RATE_UNIT &&
                                   slow_tradable(part, ask, slow_free(ask)) > 0;
            if (is_served && (last == NULL || slow_is_before_on(ask, last, part)) &&
                (best.part == NULL || slow_is_before_on(ask, part, best.part))) {
                best = (struct served){job, part};
            }
        }
    }
    return best;
}

/* Returns the best named limit of another owner that the ask leaves unfilled, if the limit is above
 * the ask's price; otherwise that price. */
static int64_t clearing_price(const struct slow_market *slow, const struct slow_job *job,
                              const struct slow_part *part, const struct slow_ask *ask)
{
    uint32_t left = slow_free(ask);
    left -= paid_at(job, part, ask->price, slow_tradable(part, ask, left));
    struct served at = served_after(slow, ask, NULL, part);
    for (; at.part != NULL; at = served_after(slow, ask, at.part, part)) {
        const int64_t limit = limit_on(at.part, ask);
        const bool is_named = at.part->cap >= 0 && at.part->limit >= at.part->cap;
        if (is_named && at.job->owner != job->owner &&
            paid_at(at.job, at.part, limit, at.part->wanted) > left) {
            return limit;
        }
        left -= paid_at(at.job, at.part, ask->price, slow_tradable(at.part, ask, left));
    }
    return ask->price;
}

int64_t slow_price_between(const struct slow_market *slow, const struct slow_job *job,
                           const struct slow_part *part, const struct slow_ask *ask)
{
    const int64_t limit = limit_on(part, ask);
    if (ask->price == 0) {
        return 0;
    }
    if (job->type == EXCHANGE_LIMIT || job->type == EXCHANGE_POST_ONLY) {
        return ask->sequence < part->sequence ? ask->price : limit;
    }
    const int64_t price = clearing_price(slow, job, part, ask);
    return price < limit ? price : limit;
}

uint32_t slow_payable(const struct slow_market *slow, const struct slow_job *job,
                      const struct slow_part *part, const struct slow_ask *ask, uint32_t slots)
{
    return paid_at(job, part, slow_price_between(slow, job, part, ask), slots);
}
