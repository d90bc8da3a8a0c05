/* The prices that explain says of an ask are true. In random books the ask is replaced to ask what
 * was said, and is filled at that price. No higher price would fill it. */
#include "base/random.h"
#include "exchange/view/listings.h"
#include "exchange/view/why.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/known_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t suggested, alone; /* over all books: the test must have tested */

static struct exchange_why whys[DEVICES_MOST]; /* of the known devices */

struct finding {
    struct id128 device, order;
};

static bool find_order(void *context, const struct exchange_order_row *row)
{
    struct finding *finding = context;
    if (!row->is_bid && id128_equal(&row->device, &finding->device)) {
        finding->order = row->order;
    }
    return true;
}

static struct id128 order_of(uint32_t at)
{
    struct finding finding = {.device = whys[at].device};
    uint64_t next;
    ck_assert_int_eq(exchange_list_orders(market.exchange, known.devices[at].owner, 0, find_order,
                                          &finding, &next),
                     LISTING_END);
    return finding.order;
}

static void ask_all_why(void)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < known.device_count; i++) {
        number = i > 0 && known.devices[i].owner == known.devices[i - 1].owner ? number + 1 : 0;
        ck_assert_int_eq(
            exchange_explain_ask(market.exchange, known.devices[i].owner, number, &whys[i]),
            WHY_OK);
        ck_assert_int_eq(whys[i].price_micro, known.devices[i].price_micro);
    }
}

static bool is_same_kind(const struct known_device *a, const struct known_device *b)
{
    return a->count == b->count &&
           memcmp(a->attributes, b->attributes, a->count * sizeof a->attributes[0]) == 0;
}

/* Returns true when `a` comes first. The earlier of equals does: known devices stand in the order
 * of their asks. */
static bool is_first(const struct known_device *a, const struct known_device *b, enum rate rate)
{
    int128 here =
        rate_worth(a->price_micro, rate == RATE_NONE ? 1 : rate_of(rate, b->attributes, b->count));
    int128 there =
        rate_worth(b->price_micro, rate == RATE_NONE ? 1 : rate_of(rate, a->attributes, a->count));
    return here != there ? here < there : a < b;
}

static bool a_bid_takes_it_first(const struct known_device *a, const struct known_device *b)
{
    for (uint32_t k = 0; k < known.job_count; k++) {
        const struct known_job *job = &known.jobs[k];
        if (job_row(job->id).state == JOB_OPEN && device_fits(a, job) && device_fits(b, job) &&
            is_first(a, b, job->rate)) {
            return true;
        }
    }
    return false;
}

static uint32_t slow_asks_ahead(uint32_t at)
{
    const struct known_device *own = &known.devices[at];
    uint32_t ahead = 0;
    for (uint32_t i = 0; i < known.device_count; i++) {
        const struct known_device *other = &known.devices[i];
        bool is_before = (is_same_kind(own, other) && is_first(other, own, RATE_NONE)) ||
                         a_bid_takes_it_first(other, own);
        ahead += other->price_micro >= 0 && whys[i].free > 0 && is_before;
    }
    return ahead;
}

/* Returns the price at which the ask is filled when it is replaced to ask that, or -1. */
static int64_t fill_at(uint32_t at, struct id128 order, int64_t price_micro)
{
    int64_t filled_at = -1;
    struct exchange_command made = command(EXCHANGE_REPLACE, known.devices[at].owner);
    made.replace = (struct exchange_replace){
        .order = order, .part = EXCHANGE_ANY_PART, .has_price = true, .price_micro = price_micro};
    apply(&made);
    for (size_t i = 0; nth(EFFECT_LEASE_GRANT, i) != NULL && filled_at < 0; i++) {
        const struct exchange_grant *grant = &nth(EFFECT_LEASE_GRANT, i)->grant;
        filled_at = id128_equal(&grant->ask, &order) ? grant->price_micro : -1;
    }
    bring_back();
    return filled_at;
}

static void check_ask(uint32_t at)
{
    const struct exchange_why *ask = &whys[at];
    if (ask->price_micro <= 0 || ask->free == 0) {
        return;
    }
    ck_assert(ask->has_ahead);
    ck_assert_uint_eq(ask->ahead, slow_asks_ahead(at));
    const struct id128 order = order_of(at);
    if (ask->fills_at_micro >= 0) {
        ck_assert_int_lt(ask->fills_at_micro, ask->price_micro);
        ck_assert_int_eq(fill_at(at, order, ask->fills_at_micro), ask->fills_at_micro);
        suggested++;
    } else {
        alone++; /* with a price that nobody pays */
    }
    for (uint32_t k = 0; k < known.job_count; k++) {
        int64_t other = known.jobs[k].limit_micro;
        if (other > ask->fills_at_micro && other > 0 && other < ask->price_micro) {
            ck_assert_int_eq(fill_at(at, order, other), -1);
        }
    }
}

START_TEST(an_ask_is_filled_at_the_price_that_is_said_and_no_higher)
{
    printf("seed %d\n", _i);
    struct random random = random_seeded((uint64_t)_i);
    suggested = alone = 0;
    for (int i = 0; i < BOOKS; i++) {
        open_market();
        any_offers(&random, PROVIDER, 1 + (uint32_t)random_below(&random, 12));
        any_offers(&random, OTHER_PROVIDER, (uint32_t)random_below(&random, 12));
        any_offers(&random, CONSUMER, (uint32_t)random_below(&random, 5));
        any_jobs(&random, RIVAL, (uint32_t)random_below(&random, JOBS));
        any_jobs(&random, CONSUMER, (uint32_t)random_below(&random, JOBS));
        ask_all_why();
        keep();
        for (uint32_t k = 0; k < known.device_count; k++) {
            check_ask(k);
        }
        free(saved);
        exchange_destroy(&market.exchange);
        exchange_effects_fini(&market.effects);
    }
    ck_assert_uint_gt(suggested, 0);
    ck_assert_uint_gt(alone, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {an_ask_is_filled_at_the_price_that_is_said_and_no_higher};
    return known_market_run("explain: asks", tests, sizeof tests / sizeof tests[0]);
}
