/* The suggestions of explain are true. In random books a waiting job is submitted anew with the
 * change and fills at the price that was said, as many slots as were said. No smaller number of
 * changes would have done, and as many bids come before it as were counted. The suggestion stays
 * within bands that come and go. Asks are in prop_explain_asks.c, forecasts of bids in
 * prop_explain_forecast.c. */
#include "base/random.h"
#include "exchange/lifecycle.h"
#include "formats/requirement.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/known_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Over all books: the test must have tested. */
static uint32_t granted, suggested, alone, bounded, partial, replaced;

/* Submits that in place of the job, and says whether it fills. */
static bool would_fill(struct id128 instead, const struct wish *wish,
                       const struct requirement *needs)
{
    cancel_job(CONSUMER, instead);
    (void)submit_wish(CONSUMER, wish, needs);
    bool fills = count_of(EFFECT_LEASE_GRANT) > 0;
    bring_back();
    return fills;
}

/* Returns true when some change of one thing would have done, found by trying all of them. */
static bool one_change_fills(struct id128 job, const struct wish *wish)
{
    struct requirement needs;
    bool fills = false;
    read_needs(wish, UINT32_MAX, &needs);
    for (uint32_t i = 0; i < known.device_count && !fills && wish->cap_micro >= 0; i++) {
        struct wish other = *wish;
        const struct known_device *device = &known.devices[i];
        int64_t operations = rate_of(wish->rate, device->attributes, device->count);
        other.cap_micro = device->price_micro;
        if (wish->rate != RATE_NONE &&
            (device->price_micro < 0 || operations == 0 ||
             !rate_value_for(device->price_micro, operations, &other.cap_micro))) {
            continue;
        }
        fills = other.cap_micro > wish->cap_micro && would_fill(job, &other, &needs);
    }
    for (size_t i = 0; i < TERMS && !fills; i++) {
        struct wish other = *wish;
        other.term_ns = terms_ns[i];
        fills = other.term_ns < wish->term_ns && other.term_ns >= wish->limit_ns &&
                would_fill(job, &other, &needs);
    }
    for (uint32_t slots = 1; slots < wish->slots && !fills; slots++) {
        struct wish other = *wish;
        other.slots = slots;
        fills = wish->at_most % slots == 0 && would_fill(job, &other, &needs);
    }
    struct wish richer = *wish;
    richer.budget_micro = INT64_C(100000) * MICRO_PER_CREDIT;
    fills = fills || (wish->cap_micro >= 0 && would_fill(job, &richer, &needs));
    for (uint32_t i = 0; i < wish->clause_count && !fills; i++) {
        bool is_plain = strchr(wish->clauses[i], '(') == NULL; /* else it is several conditions */
        read_needs(wish, i, &needs);
        fills = is_plain && would_fill(job, wish, &needs);
    }
    return fills;
}

/* Returns what the limit comes to on a device, in parts of RATE_UNIT of a micro-credit. */
static int128 worth_on(const struct known_device *device, const struct known_job *job)
{
    return job->rate == RATE_NONE
               ? rate_price(job->limit_micro)
               : rate_worth(job->limit_micro,
                            rate_of(job->rate, device->attributes, device->count));
}

/* Returns true when the job wants more lanes than it has. */
static bool wants_more(const struct known_job *job)
{
    struct exchange_job_row row = job_row(job->id);
    struct exchange_lease_row leases[64];
    size_t count = exchange_leases(market.exchange, &job->id, leases, 64);
    uint32_t slots = 0;
    for (size_t i = 0; i < count; i++) {
        slots += leases[i].state == LEASE_ACTIVE ? leases[i].slots : 0;
    }
    return row.state == JOB_OPEN && row.waiting > 0 &&
           (job->at_most == 0 || slots + job->slots <= job->at_most);
}

static int64_t donation_rank_of(uint32_t account)
{
    struct exchange_donated donated;
    ck_assert(exchange_donated(market.exchange, account, &donated));
    return donated.used_ns + donated.promised_ns;
}

/* Bids before it, for some device that it could have. All came earlier. What is all given away goes
 * by another rank than limits. */
static uint32_t slow_ahead(const struct wish *wish, const struct known_job *own, bool by_rank,
                           bool at_any_price)
{
    uint32_t ahead = 0;
    for (uint32_t k = 0; k < known.job_count; k++) {
        const struct known_job *rival = &known.jobs[k];
        bool meets = false;
        bool is_before = donation_rank_of(job_row(rival->id).owner) <= donation_rank_of(CONSUMER);
        for (uint32_t i = 0; i < known.device_count; i++) {
            const struct known_device *device = &known.devices[i];
            meets = meets ||
                    (device->price_micro >= 0 &&
                     (at_any_price || rate_price(device->price_micro) <= worth_on(device, own)) &&
                     (by_rank ? is_before : worth_on(device, rival) >= worth_on(device, own)) &&
                     device->asked >= wish->slots && device->owner != CONSUMER &&
                     (device->max_term_ns == 0 || device->max_term_ns >= wish->term_ns) &&
                     device_fits(device, own) && device_fits(device, rival));
        }
        ahead += meets && wants_more(rival);
    }
    return ahead;
}

/* Returns the slots of all leases that the last command granted. */
static uint32_t granted_slots(void)
{
    uint32_t slots = 0;
    for (size_t i = 0; nth(EFFECT_LEASE_GRANT, i) != NULL; i++) {
        slots += nth(EFFECT_LEASE_GRANT, i)->grant.slots;
    }
    return slots;
}

/* A change of cap and budget alone needs no other job: the waiting one is replaced, as `explain`
 * proposes. */
static void check_replaced(struct id128 id, const struct wish *wish,
                           const struct exchange_smallest_change *smallest_change)
{
    struct exchange_command made = command(EXCHANGE_REPLACE, CONSUMER);
    made.replace = (struct exchange_replace){.order = id,
                                             .part = EXCHANGE_ANY_PART,
                                             .price_micro = smallest_change->cap_micro,
                                             .budget_micro = smallest_change->budget_micro};
    for (uint32_t i = 0; i < smallest_change->count; i++) {
        const enum exchange_bid_change_kind kind = smallest_change->changes[i].kind;
        if ((kind != BID_CHANGE_CAP && kind != BID_CHANGE_BUDGET) || wish->rate != RATE_NONE) {
            return;
        }
        made.replace.has_price = made.replace.has_price || kind == BID_CHANGE_CAP;
        made.replace.has_budget = made.replace.has_budget || kind == BID_CHANGE_BUDGET;
    }
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_uint_eq(granted_slots(), smallest_change->fills_slots);
    bring_back();
    replaced++;
}

static void check_waiting(struct id128 id, const struct wish *wish)
{
    static struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &id, EXCHANGE_ANY_PART, &why));
    ck_assert(!why.is_ahead_partial);
    if (why.has_ahead &&
        !known.bands.has_most) { /* else what bids by value are worth is bounded, too */
        struct known_job own = {.limit_micro = limit_of(wish), .rate = wish->rate};
        read_needs(wish, UINT32_MAX, &own.needs);
        ck_assert_uint_eq(why.ahead, slow_ahead(wish, &own,
                                                why.affordable > 0 && why.donated == why.affordable,
                                                why.affordable == 0));
    }
    const struct exchange_smallest_change *smallest_change = &why.smallest_change;
    keep();
    /* The limit of an order without a cap depends on more than is kept of the order, so the order
     * gets a cap. */
    bool one_fills = wish->cap_micro >= 0 && one_change_fills(id, wish);
    ck_assert_msg(!one_fills || smallest_change->count == 1 || known.has_own, "%u changes",
                  smallest_change->count);
    if (smallest_change->count > 0) {
        check_replaced(id, wish, smallest_change);
        struct wish changed = *wish;
        changed.slots = smallest_change->slots;
        bool has_cap = wish->cap_micro >= 0 || smallest_change->changes[0].kind == BID_CHANGE_CAP;
        changed.cap_micro = has_cap ? smallest_change->cap_micro : -1;
        changed.term_ns = smallest_change->term_ns;
        changed.budget_micro = smallest_change->budget_micro;
        cancel_job(CONSUMER, id);
        (void)submit_wish(CONSUMER, &changed, &smallest_change->needs);
        char text[1024];
        ck_assert(requirement_text(&smallest_change->needs, text, sizeof text));
        const struct exchange_effect *fill = nth(EFFECT_LEASE_GRANT, 0);
        ck_assert_msg(fill != NULL, "%u changes of kind %d..., needs %s, slots %u",
                      smallest_change->count, (int)smallest_change->changes[0].kind, text,
                      smallest_change->slots);
        ck_assert_int_eq(fill->grant.price_micro, smallest_change->price_micro);
        ck_assert_uint_eq(granted_slots(), smallest_change->fills_slots);
        ck_assert_uint_le(smallest_change->fills_slots, smallest_change->wanted_slots);
        partial += smallest_change->fills_slots < smallest_change->wanted_slots;
        bring_back();
        suggested++;
        alone += smallest_change->count == 1;
    }
    free(saved);
}

START_TEST(what_is_suggested_fills)
{
    printf("seed %d\n", _i);
    struct random random = random_seeded((uint64_t)_i);
    granted = suggested = alone = partial = replaced = 0;
    /* Some seeds need more books until enough was seen. */
    for (int i = 0; i < BOOKS || ((alone <= 20 || granted <= 5) && i < 8 * BOOKS); i++) {
        open_market();
        any_offers(&random, PROVIDER, 1 + (uint32_t)random_below(&random, 12));
        any_offers(&random, OTHER_PROVIDER, (uint32_t)random_below(&random, 12));
        known.has_own = random_below(&random, 2) == 0;
        if (known.has_own) {
            any_offers(&random, CONSUMER, 1 + (uint32_t)random_below(&random, 4));
        }
        any_jobs(&random, RIVAL, (uint32_t)random_below(&random, JOBS));
        for (int k = 0; k < JOBS; k++) {
            struct wish wish;
            struct requirement needs;
            any_wish(&random, &wish);
            read_needs(&wish, UINT32_MAX, &needs);
            struct id128 id = submit_wish(CONSUMER, &wish, &needs);
            if (count_of(EFFECT_ACCEPT) == 0) {
                continue; /* it would trade with itself */
            }
            if (count_of(EFFECT_LEASE_GRANT) > 0) {
                remember(id, &wish, &needs);
                granted++;
                continue;
            }
            check_waiting(id, &wish);
            cancel_job(CONSUMER, id);
        }
        exchange_destroy(&market.exchange);
        exchange_effects_fini(&market.effects);
    }
    ck_assert_uint_gt(granted, 5);
    ck_assert_uint_gt(suggested, 30);
    ck_assert_uint_gt(alone, 20);
    ck_assert_uint_gt(suggested, alone);
    ck_assert_uint_gt(partial, 0);
    ck_assert_uint_gt(replaced, 0);
    ck_assert_uint_gt(suggested, partial);
}
END_TEST

/* ---------------------------------------------------------------- bands */

static void any_bands(struct random *random)
{
    struct exchange_command made = command(EXCHANGE_BANDS, OPERATOR);
    made.bands = (struct exchange_bands){
        .has_least = true,
        .has_most = true,
        .has_notional = true,
        .least_micro = (int64_t)random_below(random, 2) * price / 4,
        .most_micro = (int64_t)(2 + random_below(random, 9)) * price / 4,
        .notional_micro = random_below(random, 2) == 0
                              ? 0
                              : (int64_t)(1 + random_below(random, 400)) * MICRO_PER_CREDIT};
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    known.bands = made.bands;
}

static bool has_leases(struct id128 job)
{
    struct exchange_lease_row row;
    return exchange_leases(market.exchange, &job, &row, 1) > 0;
}

/* Returns true when the bands in force would take the job as it is. Otherwise its change would be
 * refused for what did not change. */
static bool would_be_taken(struct id128 instead, const struct wish *wish,
                           const struct requirement *needs)
{
    keep();
    cancel_job(CONSUMER, instead);
    (void)submit_wish(CONSUMER, wish, needs);
    const bool is_taken = count_of(EFFECT_ACCEPT) == 1;
    bring_back();
    free(saved);
    return is_taken;
}

START_TEST(what_is_suggested_fills_within_bands_that_come_and_go)
{
    printf("seed %d\n", _i);
    struct random random = random_seeded((uint64_t)_i);
    suggested = alone = bounded = 0;
    for (int i = 0; i < BOOKS || ((alone == 0 || suggested <= 10) && i < 8 * BOOKS); i++) {
        open_market();
        any_offers(&random, PROVIDER, 1 + (uint32_t)random_below(&random, 12));
        any_offers(&random, OTHER_PROVIDER, (uint32_t)random_below(&random, 12));
        any_jobs(&random, RIVAL, (uint32_t)random_below(&random, JOBS));
        any_bands(&random);
        for (int k = 0; k < JOBS; k++) {
            struct wish wish;
            struct requirement needs;
            any_wish(&random, &wish);
            read_needs(&wish, UINT32_MAX, &needs);
            struct id128 id = submit_wish(CONSUMER, &wish, &needs);
            if (count_of(EFFECT_ACCEPT) == 0) {
                bounded++;
            } else if (count_of(EFFECT_LEASE_GRANT) > 0) {
                remember(id, &wish, &needs);
            } else {
                any_bands(&random);
                if (has_leases(id)) { /* by value, and the band is higher */
                    remember(id, &wish, &needs);
                    continue;
                }
                if (would_be_taken(id, &wish, &needs)) {
                    check_waiting(id, &wish);
                }
                cancel_job(CONSUMER, id);
            }
        }
        exchange_destroy(&market.exchange);
        exchange_effects_fini(&market.effects);
    }
    ck_assert_uint_gt(bounded, 10);
    ck_assert_uint_gt(suggested, 10);
    ck_assert_uint_gt(alone, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {what_is_suggested_fills,
                                  what_is_suggested_fills_within_bands_that_come_and_go};
    return known_market_run("explain", tests, sizeof tests / sizeof tests[0]);
}
