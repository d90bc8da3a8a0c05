/* The tests cover what an outage of the broker changes: log time stood still, but agents worked and
 * terms went on. */
#include "tests/support/hand_market.h"

#include "base/checked.h"
#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>

static void outage(int64_t outage_ns)
{
    struct exchange_command made = command(EXCHANGE_OUTAGE, EXCHANGE_NO_ACCOUNT);
    made.outage_ns = outage_ns;
    apply(&made);
    check_hash();
    reload();
}

/* One credit buys a second, so the credits of the provider are the seconds that it was paid. */
static int64_t paid_ms(void)
{
    return balance(PROVIDER).available_micro / (MICRO_PER_CREDIT / 1000);
}

START_TEST(work_done_while_the_broker_was_down_is_paid)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 860 * NS_PER_MS;
    outage(5 * NS_PER_S);
    result(PROVIDER, job, work, OUTCOME_OK, 4 * NS_PER_S);
    ck_assert_int_eq(paid_ms(), 4000);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

START_TEST(without_an_outage_no_more_is_paid_than_was_seen)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 860 * NS_PER_MS;
    result(PROVIDER, job, work, OUTCOME_OK, 4 * NS_PER_S);
    ck_assert_int_eq(paid_ms(), 860);
}
END_TEST

START_TEST(a_claim_beyond_the_outage_is_not_paid)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    outage(2 * NS_PER_S);
    result(PROVIDER, job, work, OUTCOME_OK, 9 * NS_PER_S);
    ck_assert_int_eq(paid_ms(), 3000);
}
END_TEST

START_TEST(no_more_of_an_outage_is_paid_than_the_limit_of_the_subtask)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100); /* its limit is 10 s, its term 20 s */
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    outage(18 * NS_PER_S);
    result(PROVIDER, job, work, OUTCOME_OK, 15 * NS_PER_S);
    ck_assert_int_eq(paid_ms(), 11000);
}
END_TEST

START_TEST(no_more_is_paid_than_the_term)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_of(1, 100);
    made.submit.limit_ns = made.submit.term_ns = 20 * NS_PER_S;
    apply(&made);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 5 * NS_PER_S;
    outage(3600 * NS_PER_S); /* the agent's term was over 15 s into the outage */
    market.now_ns += 10 * NS_PER_S;
    result(PROVIDER, made.id, work, OUTCOME_TERM_OVER, 3600 * NS_PER_S);
    ck_assert_int_eq(paid_ms(), 20000);
}
END_TEST

START_TEST(whoever_ends_with_its_own_term_has_not_given_up)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 5 * NS_PER_S;
    outage(60 * NS_PER_S);
    market.now_ns += NS_PER_S; /* by log time, 14 s of the term were left before the outage */
    result(PROVIDER, job, work, OUTCOME_TERM_OVER, 9 * NS_PER_S);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_FAILED_PAID);
    ck_assert_int_eq(paid_ms(), 9000);
}
END_TEST

START_TEST(results_count_as_long_after_an_outage_as_they_would_have_without_it)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    outage(60 * NS_PER_S);
    market.now_ns += 19 * NS_PER_S; /* the agent needs time to come back */
    result(PROVIDER, job, work, OUTCOME_OK, 6 * NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_int_eq(paid_ms(), 6000);
}
END_TEST

START_TEST(work_dispatched_after_an_outage_is_paid_none_of_it)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_of(2, 100);
    made.submit.limit_ns = made.submit.term_ns = 60 * NS_PER_S;
    apply(&made);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1); /* the budget covers one lane's term */
    market.now_ns += NS_PER_S;
    outage(10 * NS_PER_S);
    market.now_ns++; /* each later command has a later log time */
    result(PROVIDER, made.id, first, OUTCOME_OK, 2 * NS_PER_S);
    ck_assert_int_eq(paid_ms(), 2000);
    struct exchange_work second = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    result(PROVIDER, made.id, second, OUTCOME_OK, 9 * NS_PER_S);
    ck_assert_int_eq(paid_ms(), 3000);
}
END_TEST

START_TEST(an_idle_lane_is_paid_nothing_for_an_outage)
{
    offer(PROVIDER, 2, price);
    struct id128 job = submit(2, 100);
    struct exchange_work works[2] = {nth(EFFECT_DISPATCH, 0)->work, nth(EFFECT_DISPATCH, 1)->work};
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, works[0], OUTCOME_OK, NS_PER_S);
    outage(5 * NS_PER_S);
    result(PROVIDER, job, works[1], OUTCOME_OK, 20 * NS_PER_S);
    ck_assert_int_eq(paid_ms(), 1000 + 6000);
}
END_TEST

START_TEST(a_second_outage_adds_to_the_first)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    outage(2 * NS_PER_S);
    market.now_ns += NS_PER_S;
    outage(3 * NS_PER_S);
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, work, OUTCOME_OK, 20 * NS_PER_S);
    ck_assert_int_eq(paid_ms(), 8000);
}
END_TEST

START_TEST(an_outage_of_no_time_changes_nothing)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    outage(0);
    outage(-NS_PER_S);
    outage(INT64_MIN);
    result(PROVIDER, job, work, OUTCOME_OK, 4 * NS_PER_S);
    ck_assert_int_eq(paid_ms(), 1000);
}
END_TEST

static size_t take_dispatches(struct exchange_work *works, size_t count)
{
    for (size_t i = 0; i < count_of(EFFECT_DISPATCH); i++) {
        works[count++] = nth(EFFECT_DISPATCH, i)->work;
    }
    return count;
}

START_TEST(a_renewed_lease_is_a_term_longer_and_its_money_is_held)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(4, 100); /* 10 s each at most, 20 s a term */
    struct exchange_work works[8];
    size_t sent = take_dispatches(works, 0);
    market.now_ns += 2 * NS_PER_S;
    outage(9 * NS_PER_S);
    for (size_t i = 0; i < sent; i++) {
        market.now_ns += 5 * NS_PER_S;
        result(PROVIDER, job, works[i], OUTCOME_OK, 60 * NS_PER_S);
        check_hash();
        sent = take_dispatches(works, sent);
    }
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
    ck_assert_int_eq(paid_ms(), 22000 + 9000);
}
END_TEST

SUITE("outages of the broker", set_up, tear_down, TEST(work_done_while_the_broker_was_down_is_paid),
      TEST(without_an_outage_no_more_is_paid_than_was_seen),
      TEST(a_claim_beyond_the_outage_is_not_paid),
      TEST(no_more_of_an_outage_is_paid_than_the_limit_of_the_subtask),
      TEST(no_more_is_paid_than_the_term), TEST(whoever_ends_with_its_own_term_has_not_given_up),
      TEST(results_count_as_long_after_an_outage_as_they_would_have_without_it),
      TEST(work_dispatched_after_an_outage_is_paid_none_of_it),
      TEST(an_idle_lane_is_paid_nothing_for_an_outage), TEST(a_second_outage_adds_to_the_first),
      TEST(an_outage_of_no_time_changes_nothing),
      TEST(a_renewed_lease_is_a_term_longer_and_its_money_is_held))
