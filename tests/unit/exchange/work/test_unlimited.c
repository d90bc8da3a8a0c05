/* The tests cover work without a limit: its lease is renewed while it runs, as long as the budget
 * lasts. */
#include "tests/support/hand_market.h"

#include "base/checked.h"
#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>

static const int64_t week_ns = 7 * 24 * NS_PER_HOUR;

/* One credit buys a second. The term is 20 s. */
static struct id128 submit_unlimited(int64_t budget_credits)
{
    struct exchange_command made = submit_of(1, budget_credits);
    made.submit.limit_ns = week_ns;
    made.submit.term_ns = 20 * NS_PER_S;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1);
    return made.id;
}

/* Passes time in steps of a second. Returns how often a lease was renewed. */
static size_t pass(int seconds)
{
    size_t renewals = 0;
    for (int i = 0; i < seconds; i++) {
        market.now_ns += NS_PER_S;
        tick();
        renewals += count_of(EFFECT_LEASE_RENEW);
        check_hash();
    }
    return renewals;
}

static int64_t paid_s(void)
{
    return balance(PROVIDER).available_micro / MICRO_PER_CREDIT;
}

START_TEST(a_lease_is_renewed_while_its_work_goes_on)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit_unlimited(100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(pass(9), 0);
    ck_assert_uint_eq(pass(1), 1); /* half of the term is left */
    ck_assert_uint_eq(pass(55), 5);
    result(PROVIDER, job, work, OUTCOME_OK, 65 * NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_int_eq(paid_s(), 65);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

START_TEST(a_market_from_a_snapshot_renews_at_the_same_times)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit_unlimited(100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    (void)pass(3);
    reload();
    ck_assert_uint_eq(pass(6), 0);
    ck_assert_uint_eq(pass(1), 1);
    reload();
    ck_assert_uint_eq(pass(30), 3);
    result(PROVIDER, job, work, OUTCOME_OK, 40 * NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

START_TEST(the_budget_ends_work_without_a_limit)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit_unlimited(45);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    size_t renewals = pass(40);
    ck_assert_uint_ge(renewals, 2);
    result(PROVIDER, job, work, OUTCOME_TERM_OVER, 40 * NS_PER_S);
    ck_assert_int_eq(paid_s(), 40);
    ck_assert_uint_eq(job_row(job).state, JOB_FAILED);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

START_TEST(a_halted_market_renews_nothing_and_opens_in_time)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit_unlimited(100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_command halt = command(EXCHANGE_HALT, OPERATOR);
    halt.halt.halted = true;
    apply(&halt);
    ck_assert_uint_eq(pass(12), 0); /* the first of three times has gone by */
    halt = command(EXCHANGE_HALT, OPERATOR);
    apply(&halt);
    ck_assert_uint_eq(pass(3), 1); /* the second: a quarter of the term is left */
    ck_assert_uint_ge(pass(20), 1);
    result(PROVIDER, job, work, OUTCOME_OK, 30 * NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

START_TEST(work_with_a_limit_is_not_renewed_while_it_runs)
{
    offer(PROVIDER, 1, price);
    (void)submit(1, 100); /* a limit of 10 s, a term of 20 s */
    ck_assert_uint_eq(pass(19), 0);
}
END_TEST

SUITE("work without a limit", set_up, tear_down, TEST(a_lease_is_renewed_while_its_work_goes_on),
      TEST(a_market_from_a_snapshot_renews_at_the_same_times),
      TEST(the_budget_ends_work_without_a_limit),
      TEST(a_halted_market_renews_nothing_and_opens_in_time),
      TEST(work_with_a_limit_is_not_renewed_while_it_runs))
