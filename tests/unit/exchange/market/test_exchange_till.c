/* Jobs do not wait for ever: who is good till a time begins nothing after it. */
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/replace_orders.h"
#include "tests/support/suite.h"

#include <check.h>

static struct exchange_command submit_till(uint32_t subtasks, int64_t for_ns)
{
    struct exchange_command made = submit_of(subtasks, 100);
    made.submit.good_till_ns = market.now_ns + for_ns;
    return made;
}

static void pass(int64_t for_ns)
{
    market.now_ns += for_ns;
    tick();
}

START_TEST(a_job_that_found_nobody_in_time_ends)
{
    struct exchange_command made = submit_till(4, 60 * NS_PER_S);
    apply(&made);
    ck_assert_int_eq(exchange_next_deadline_ns(market.exchange), made.submit.good_till_ns);
    reload();
    ck_assert_int_eq(exchange_next_deadline_ns(market.exchange), made.submit.good_till_ns);
    pass(60 * NS_PER_S - 1);
    ck_assert_uint_eq(job_row(made.id).state, JOB_OPEN);
    pass(1);
    ck_assert_uint_eq(job_row(made.id).state, JOB_CANCELLED);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_EXPIRED);
    ck_assert_uint_eq(job_row(made.id).cancelled, 4);
    ck_assert_int_eq(record_of(LEDGER_RELEASE)->amount_micro, 100 * MICRO_PER_CREDIT);
    offer(PROVIDER, 4, price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
}
END_TEST

START_TEST(what_runs_when_time_is_up_runs_to_its_end)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_till(5, 5 * NS_PER_S);
    apply(&made);
    struct exchange_work work[2] = {nth(EFFECT_DISPATCH, 0)->work, nth(EFFECT_DISPATCH, 1)->work};
    pass(5 * NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 0);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 0);
    ck_assert_uint_eq(job_row(made.id).state, JOB_OPEN);
    ck_assert_uint_eq(job_row(made.id).cancelled, 3);
    reload();
    struct exchange_command replace = replace_of(CONSUMER, made.id);
    replace.replace.has_price = true;
    check_refused(&replace, REJECT_STATE, "order", JOB_OPEN, JOB_OPEN);
    for (int i = 0; i < 2; i++) {
        market.now_ns += NS_PER_S;
        result(PROVIDER, made.id, work[i], OUTCOME_OK, NS_PER_S);
        ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_ACCEPTED);
        ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
    }
    ck_assert_uint_eq(job_row(made.id).state, JOB_CANCELLED);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_EXPIRED);
    ck_assert_uint_eq(job_row(made.id).accepted, 2);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
}
END_TEST

START_TEST(a_lease_that_has_nothing_left_to_do_goes_back)
{
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 1, price);
    struct exchange_command made = submit_till(8, 5 * NS_PER_S);
    apply(&made);
    struct exchange_work work[8];
    uint32_t of_first = 0;
    const uint32_t begun = (uint32_t)count_of(EFFECT_DISPATCH);
    ck_assert_uint_le(begun, 8);
    for (uint32_t i = 0; i < begun; i++) {
        work[of_first] = nth(EFFECT_DISPATCH, i)->work;
        of_first += nth(EFFECT_DISPATCH, i)->account == PROVIDER;
    }
    ck_assert_uint_gt(of_first, 0);
    ck_assert_uint_lt(of_first, begun);
    pass(5 * NS_PER_S);
    for (uint32_t i = 0; i < of_first; i++) {
        result(PROVIDER, made.id, work[i], OUTCOME_OK, NS_PER_S);
    }
    ck_assert_uint_eq(job_row(made.id).running, begun - of_first); /* of the other */
    pass(10 * NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    ck_assert_uint_eq(nth(EFFECT_LEASE_END, 0)->account, PROVIDER);
    ck_assert_uint_eq(job_row(made.id).state, JOB_OPEN);
}
END_TEST

START_TEST(a_job_that_had_all_begun_in_time_is_done)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_till(1, 5 * NS_PER_S);
    apply(&made);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    pass(6 * NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).state, JOB_OPEN);
    result(PROVIDER, made.id, work, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).state, JOB_DONE);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_NONE);
}
END_TEST

START_TEST(what_is_lost_after_its_time_is_not_begun_again)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_till(1, 5 * NS_PER_S);
    apply(&made);
    offer(OTHER_PROVIDER, 1, price);
    pass(5 * NS_PER_S);
    presence(EXCHANGE_GOODBYE, PROVIDER);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    ck_assert_uint_eq(job_row(made.id).state, JOB_CANCELLED);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_EXPIRED);
}
END_TEST

START_TEST(one_whose_time_is_up_can_be_cancelled)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_till(5, 5 * NS_PER_S);
    apply(&made);
    pass(5 * NS_PER_S);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = made.id;
    apply(&cancel);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 2);
    pass(20 * NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_CANCELLED);
    ck_assert_uint_eq(job_row(made.id).state, JOB_CANCELLED);
}
END_TEST

START_TEST(a_time_that_has_passed_is_refused)
{
    struct exchange_command made = submit_till(1, 0);
    check_refused(&made, REJECT_QUANTITY, "good_till_ms", start_ns / NS_PER_MS,
                  start_ns / NS_PER_MS);
    made = submit_till(1, 0);
    made.submit.good_till_ns = -NS_PER_MS;
    check_refused(&made, REJECT_QUANTITY, "good_till_ms", -1, start_ns / NS_PER_MS);
    made = submit_till(1, 0);
    made.submit.good_till_ns = INT64_MAX;
    const int64_t latest_ns = start_ns + 367 * 24 * NS_PER_HOUR;
    check_refused(&made, REJECT_QUANTITY, "good_till_ms", INT64_MAX / NS_PER_MS,
                  latest_ns / NS_PER_MS);
    made = submit_till(1, NS_PER_S);
    made.submit.verify = EXCHANGE_VERIFY_CHEAP;
    check_refused(&made, REJECT_VERIFY, "good_till_ms", start_ns / NS_PER_MS + 1000, 0);
}
END_TEST

SUITE("exchange: good till", set_up, tear_down, TEST(a_job_that_found_nobody_in_time_ends),
      TEST(what_runs_when_time_is_up_runs_to_its_end),
      TEST(a_lease_that_has_nothing_left_to_do_goes_back),
      TEST(a_job_that_had_all_begun_in_time_is_done),
      TEST(what_is_lost_after_its_time_is_not_begun_again),
      TEST(one_whose_time_is_up_can_be_cancelled), TEST(a_time_that_has_passed_is_refused))
