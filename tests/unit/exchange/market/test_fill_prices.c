/* The tests fill bids of several owners from asks that come after them, and look at the prices:
 * nobody pays more than it takes (docs/market.md). */
#include "tests/support/hand_market.h"

#include "base/limit.h"
#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

enum { SECOND = 6, THIRD = 7, ACCOUNTS = 5 };

static void set_up_three(void)
{
    static const uint32_t roles[ACCOUNTS] = {
        ROLE_CONSUMER, ROLE_PROVIDER, ROLE_CONSUMER | ROLE_PROVIDER, ROLE_CONSUMER, ROLE_CONSUMER};
    struct exchange_genesis_account accounts[ACCOUNTS];
    struct exchange_limits limits = exchange_limits_default();
    memset(accounts, 0, sizeof accounts);
    limits.asks = limits.cells = limits.classes = limits.jobs = 64;
    limits.leases = 64;
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        accounts[i].key.bytes[0] = (uint8_t)(i + 1);
        accounts[i].roles = roles[i];
        accounts[i].credits_micro = 1000000 * MICRO_PER_CREDIT;
        accounts[i].name[0] = (char)('a' + i);
    }
    open_market_of(&limits, 1000 * price, accounts, ACCOUNTS);
}

/* Submits a job that wants so many slots; the cap may be LIMIT_NONE. */
static struct id128 wants(uint32_t account, enum exchange_order_type type, uint32_t slots,
                          int64_t cap_micro, int64_t budget_credits)
{
    struct exchange_command made = submit_of(slots, budget_credits);
    made.account = account;
    made.submit.cap_micro = cap_micro;
    made.submit.type = type;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_REJECT), 0);
    return made.id;
}

/* Returns the price at which the last command filled the job; -1: it filled nothing of the job. */
static int64_t price_of(struct id128 job)
{
    const struct exchange_effect *effect;
    for (size_t i = 0; (effect = nth(EFFECT_LEASE_GRANT, i)) != NULL; i++) {
        if (id128_equal(&effect->grant.job, &job)) {
            return effect->grant.price_micro;
        }
    }
    return -1;
}

START_TEST(a_budget_is_no_price)
{
    const struct id128 job = wants(CONSUMER, EXCHANGE_MARKET, 2, LIMIT_NONE, 100000);
    offer(PROVIDER, 2, price / 10);
    ck_assert_int_eq(price_of(job), price / 10);
    check_hash();
    reload();
}
END_TEST

START_TEST(who_comes_first_does_not_matter)
{
    offer(PROVIDER, 2, price / 10);
    const struct id128 job = wants(CONSUMER, EXCHANGE_MARKET, 2, LIMIT_NONE, 100000);
    ck_assert_int_eq(price_of(job), price / 10);
}
END_TEST

START_TEST(a_named_limit_that_stays_unfilled_is_the_price)
{
    const struct id128 first = wants(CONSUMER, EXCHANGE_MARKET, 2, LIMIT_NONE, 100000);
    const struct id128 second = wants(SECOND, EXCHANGE_MARKET, 1, 2 * price, 100000);
    offer(PROVIDER, 2, price / 10);
    ck_assert_int_eq(price_of(first), 2 * price);
    ck_assert_int_eq(price_of(second), -1);
}
END_TEST

START_TEST(whom_the_ask_leaves_unfilled_decides)
{
    const struct id128 first = wants(CONSUMER, EXCHANGE_MARKET, 1, LIMIT_NONE, 100000);
    const struct id128 second = wants(SECOND, EXCHANGE_MARKET, 1, 2 * price, 100000);
    offer(PROVIDER, 2, price / 10);
    ck_assert_int_eq(price_of(first), price / 10);
    ck_assert_int_eq(price_of(second), price / 10);
}
END_TEST

START_TEST(own_bids_and_unnamed_limits_set_no_price)
{
    const struct id128 first = wants(CONSUMER, EXCHANGE_MARKET, 2, LIMIT_NONE, 100000);
    (void)wants(CONSUMER, EXCHANGE_MARKET, 1, 3 * price, 100000);
    (void)wants(SECOND, EXCHANGE_MARKET, 1, LIMIT_NONE, 1000);
    (void)wants(THIRD, EXCHANGE_MARKET, 1, price / 5, 100000);
    offer(PROVIDER, 2, price / 10);
    ck_assert_int_eq(price_of(first), price / 5);
}
END_TEST

START_TEST(an_own_bid_is_passed_over_for_the_next_owner)
{
    const struct id128 first = wants(CONSUMER, EXCHANGE_MARKET, 1, 9 * price, 100000);
    const struct id128 second = wants(SECOND, EXCHANGE_MARKET, 1, 8 * price, 100000);
    (void)wants(SECOND, EXCHANGE_MARKET, 1, 7 * price, 100000);
    (void)wants(CONSUMER, EXCHANGE_MARKET, 1, 6 * price, 100000);
    offer(PROVIDER, 2, price);
    ck_assert_int_eq(price_of(first), 7 * price);
    ck_assert_int_eq(price_of(second), 6 * price);
}
END_TEST

START_TEST(whoever_cannot_pay_the_named_limit_sets_no_price)
{
    const struct id128 first = wants(CONSUMER, EXCHANGE_MARKET, 1, LIMIT_NONE, 100000);
    (void)wants(SECOND, EXCHANGE_MARKET, 1, 5 * price, 99); /* a term of 20 s costs 100 there */
    (void)wants(THIRD, EXCHANGE_MARKET, 1, 4 * price, 80);
    offer(PROVIDER, 1, price);
    ck_assert_int_eq(price_of(first), 4 * price);
}
END_TEST

START_TEST(who_waits_to_be_filled_all_at_once_sets_no_price)
{
    const struct id128 first = wants(CONSUMER, EXCHANGE_MARKET, 1, LIMIT_NONE, 100000);
    (void)wants(SECOND, EXCHANGE_ALL_OR_NONE, 2, 5 * price, 100000);
    offer(PROVIDER, 1, price);
    ck_assert_int_eq(price_of(first), price);
}
END_TEST

START_TEST(all_at_once_pays_no_more_than_it_takes)
{
    const struct id128 whole = wants(CONSUMER, EXCHANGE_ALL_OR_NONE, 2, 5 * price, 100000);
    (void)wants(SECOND, EXCHANGE_MARKET, 1, 3 * price, 100000);
    offer(PROVIDER, 2, price);
    ck_assert_int_eq(price_of(whole), 3 * price);
    ck_assert_uint_eq(granted_to(whole), 2);
    reload();
}
END_TEST

START_TEST(a_limit_order_pays_its_cap_to_who_comes_later)
{
    const struct id128 job = wants(CONSUMER, EXCHANGE_LIMIT, 1, 5 * price, 100000);
    offer(PROVIDER, 1, price);
    ck_assert_int_eq(price_of(job), 5 * price);
    offer(OTHER_PROVIDER, 1, price);
    ck_assert_int_eq(price_of(wants(SECOND, EXCHANGE_LIMIT, 1, 5 * price, 100000)), price);
}
END_TEST

START_TEST(a_makers_order_without_a_cap_is_refused)
{
    static const enum exchange_order_type types[] = {EXCHANGE_LIMIT, EXCHANGE_POST_ONLY};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct exchange_command made = submit_of(1, 100);
        made.submit.cap_micro = LIMIT_NONE;
        made.submit.type = types[i];
        apply(&made);
        check_rejected(REJECT_PRICE);
        ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "cap_micro");
    }
}
END_TEST

START_TEST(a_gift_stays_a_gift)
{
    const struct id128 job = wants(CONSUMER, EXCHANGE_MARKET, 1, LIMIT_NONE, 100000);
    (void)wants(SECOND, EXCHANGE_MARKET, 1, 3 * price, 100000);
    offer(PROVIDER, 1, 0);
    ck_assert_int_eq(price_of(job), 0);
}
END_TEST

/* The escrow above the price is free at once: with it the job buys a second lease. */
START_TEST(what_the_price_leaves_buys_more)
{
    const struct id128 job = wants(CONSUMER, EXCHANGE_MARKET, 2, 5 * price, 100); /* one at 5 */
    offer(PROVIDER, 1, price);
    ck_assert_int_eq(price_of(job), price);
    offer(OTHER_PROVIDER, 1, 2 * price);
    ck_assert_int_eq(price_of(job), 2 * price);
}
END_TEST

SUITE("fill prices", set_up_three, tear_down, TEST(a_budget_is_no_price),
      TEST(who_comes_first_does_not_matter), TEST(a_named_limit_that_stays_unfilled_is_the_price),
      TEST(whom_the_ask_leaves_unfilled_decides), TEST(own_bids_and_unnamed_limits_set_no_price),
      TEST(an_own_bid_is_passed_over_for_the_next_owner),
      TEST(whoever_cannot_pay_the_named_limit_sets_no_price),
      TEST(who_waits_to_be_filled_all_at_once_sets_no_price),
      TEST(all_at_once_pays_no_more_than_it_takes),
      TEST(a_limit_order_pays_its_cap_to_who_comes_later),
      TEST(a_makers_order_without_a_cap_is_refused), TEST(a_gift_stays_a_gift),
      TEST(what_the_price_leaves_buys_more))
