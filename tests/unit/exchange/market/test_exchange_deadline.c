/* A job with a deadline ends at that moment, whatever still runs, and keeps accepted results. */
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/replace_orders.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { CLOSING_S = 20 }; /* how long a closing job waits for withdrawn attempts */

static struct exchange_command submit_by(uint32_t subtasks, int64_t for_ns)
{
    struct exchange_command made = submit_of(subtasks, 100);
    made.submit.deadline_ns = market.now_ns + for_ns;
    return made;
}

static void pass(int64_t for_ns)
{
    market.now_ns += for_ns;
    tick();
}

START_TEST(a_job_that_nobody_began_ends_at_its_deadline)
{
    struct exchange_command made = submit_by(4, 60 * NS_PER_S);
    apply(&made);
    ck_assert_int_eq(job_row(made.id).deadline_ns, made.submit.deadline_ns);
    ck_assert_int_eq(exchange_next_deadline_ns(market.exchange), made.submit.deadline_ns);
    reload();
    ck_assert_int_eq(exchange_next_deadline_ns(market.exchange), made.submit.deadline_ns);
    pass(60 * NS_PER_S - 1);
    ck_assert_uint_eq(job_row(made.id).state, JOB_OPEN);
    pass(1);
    ck_assert_uint_eq(job_row(made.id).state, JOB_CANCELLED);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_DEADLINE);
    ck_assert_uint_eq(job_row(made.id).cancelled, 4);
    ck_assert_int_eq(record_of(LEDGER_RELEASE)->amount_micro, 100 * MICRO_PER_CREDIT);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
    offer(PROVIDER, 4, price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    reload(); /* an ended job keeps its deadline for those who list it */
    ck_assert_int_eq(job_row(made.id).deadline_ns, made.submit.deadline_ns);
}
END_TEST

START_TEST(what_runs_at_the_deadline_is_withdrawn_and_what_was_accepted_is_paid)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(5, 5 * NS_PER_S);
    apply(&made);
    const struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    result(PROVIDER, made.id, first, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_ACCEPTED);
    pass(4 * NS_PER_S);
    const uint32_t told = (uint32_t)count_of(EFFECT_WITHDRAW);
    ck_assert_uint_gt(told, 0);
    ck_assert_uint_eq(job_row(made.id).running, told);
    ck_assert_uint_eq(job_row(made.id).waiting, 0);
    ck_assert_uint_eq(job_row(made.id).state, JOB_OPEN);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_DEADLINE);
    reload();
    check_hash();
    pass(CLOSING_S * NS_PER_S);
    const struct exchange_job_row row = job_row(made.id);
    ck_assert_uint_eq(row.state, JOB_CANCELLED);
    ck_assert_uint_eq(row.reason, JOB_REASON_DEADLINE);
    ck_assert_uint_eq(row.accepted, 1);
    ck_assert_uint_eq(row.cancelled, 4);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    ck_assert_int_eq(row.charged_micro, MICRO_PER_CREDIT); /* one second at a credit a second */
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

START_TEST(a_result_on_its_way_at_the_deadline_counts_and_a_later_one_does_not)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(5, 5 * NS_PER_S);
    apply(&made);
    const struct exchange_work works[2] = {nth(EFFECT_DISPATCH, 0)->work,
                                           nth(EFFECT_DISPATCH, 1)->work};
    pass(5 * NS_PER_S);
    market.now_ns += NS_PER_S;
    result(PROVIDER, made.id, works[0], OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_ACCEPTED);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
    pass(CLOSING_S * NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).state, JOB_CANCELLED);
    ck_assert_uint_eq(job_row(made.id).accepted, 1);
    result(PROVIDER, made.id, works[1], OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).accepted, 1);
}
END_TEST

START_TEST(a_job_that_is_done_in_time_is_done)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(1, 5 * NS_PER_S);
    apply(&made);
    const struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 4 * NS_PER_S;
    result(PROVIDER, made.id, work, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).state, JOB_DONE);
    pass(60 * NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).state, JOB_DONE);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_NONE);
}
END_TEST

START_TEST(a_job_whose_last_result_was_on_its_way_at_the_deadline_is_done)
{
    offer(PROVIDER, 2, price);
    struct exchange_command made = submit_by(2, 5 * NS_PER_S);
    apply(&made);
    const struct exchange_work works[2] = {nth(EFFECT_DISPATCH, 0)->work,
                                           nth(EFFECT_DISPATCH, 1)->work};
    pass(5 * NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_DEADLINE);
    for (size_t i = 0; i < 2; i++) {
        market.now_ns += NS_PER_S;
        ck_assert_uint_eq(job_row(made.id).state, JOB_OPEN);
        result(PROVIDER, made.id, works[i], OUTCOME_OK, NS_PER_S);
        ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_ACCEPTED);
    }
    const struct exchange_job_row row = job_row(made.id);
    ck_assert_uint_eq(row.state, JOB_DONE);
    ck_assert_uint_eq(row.reason, JOB_REASON_NONE);
    ck_assert_uint_eq(row.accepted, 2);
    ck_assert_uint_eq(record_of(LEDGER_SETTLED)->status, JOB_DONE);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
    reload();
    check_hash();
}
END_TEST

START_TEST(a_job_that_failed_before_its_deadline_and_lost_nothing_to_it_has_failed)
{
    offer(PROVIDER, 2, price);
    struct exchange_command made = submit_by(2, 5 * NS_PER_S);
    made.submit.retries = 0;
    apply(&made);
    const struct exchange_work works[2] = {nth(EFFECT_DISPATCH, 0)->work,
                                           nth(EFFECT_DISPATCH, 1)->work};
    market.now_ns += NS_PER_S;
    result(PROVIDER, made.id, works[0], OUTCOME_PROGRAM_FAILED, NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).failed, 1);
    pass(4 * NS_PER_S);
    market.now_ns += NS_PER_S;
    result(PROVIDER, made.id, works[1], OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_SUBTASKS_FAILED);
}
END_TEST

START_TEST(a_deadline_ends_what_good_till_left_running)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(5, 9 * NS_PER_S);
    made.submit.good_till_ns = market.now_ns + 5 * NS_PER_S;
    apply(&made);
    pass(5 * NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_EXPIRED);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 0);
    reload();
    pass(4 * NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 2);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_DEADLINE);
    pass(CLOSING_S * NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).state, JOB_CANCELLED);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_DEADLINE);
}
END_TEST

START_TEST(a_cancelled_job_stays_cancelled_by_its_client)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(5, 5 * NS_PER_S);
    apply(&made);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = made.id;
    apply(&cancel);
    pass(5 * NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_CANCELLED);
    pass(CLOSING_S * NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_CANCELLED);
}
END_TEST

START_TEST(a_job_without_a_deadline_has_the_snapshot_of_before)
{
    size_t bare = 0;
    size_t timed = 0;
    struct exchange_command made = submit_by(1, 5 * NS_PER_S);
    made.submit.deadline_ns = 0;
    apply(&made);
    free(exchange_save(market.exchange, &bare));
    tear_down();
    set_up_now();
    made = submit_by(1, 5 * NS_PER_S);
    apply(&made);
    free(exchange_save(market.exchange, &timed));
    ck_assert_uint_eq(timed, bare + sizeof(int64_t));
}
END_TEST

START_TEST(a_deadline_that_has_passed_is_refused)
{
    struct exchange_command made = submit_by(1, 0);
    check_refused(&made, REJECT_QUANTITY, "deadline_ms", start_ns / NS_PER_MS,
                  start_ns / NS_PER_MS);
    made = submit_by(1, 0);
    made.submit.deadline_ns = -NS_PER_MS;
    check_refused(&made, REJECT_QUANTITY, "deadline_ms", -1, start_ns / NS_PER_MS);
    made = submit_by(1, 0);
    made.submit.deadline_ns = INT64_MAX;
    const int64_t latest_ns = start_ns + 367 * 24 * NS_PER_HOUR;
    check_refused(&made, REJECT_QUANTITY, "deadline_ms", INT64_MAX / NS_PER_MS,
                  latest_ns / NS_PER_MS);
}
END_TEST

static struct exchange_command deadline_of(struct id128 job, int64_t deadline_ns)
{
    struct exchange_command made = replace_of(CONSUMER, job);
    made.replace.has_deadline = true;
    made.replace.deadline_ns = deadline_ns;
    return made;
}

START_TEST(an_open_job_gets_another_deadline)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(5, 5 * NS_PER_S);
    apply(&made);
    pass(NS_PER_S);
    struct exchange_command later = deadline_of(made.id, start_ns + 60 * NS_PER_S);
    apply(&later);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    ck_assert_int_eq(job_row(made.id).deadline_ns, start_ns + 60 * NS_PER_S);
    reload();
    check_hash();
    pass(4 * NS_PER_S); /* the deadline of before */
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_RUNNING);
    struct exchange_command sooner = deadline_of(made.id, market.now_ns + 2 * NS_PER_S);
    apply(&sooner);
    pass(2 * NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_DEADLINE);
}
END_TEST

START_TEST(a_job_without_a_deadline_may_get_one)
{
    const struct id128 job = submit(1, 10);
    struct exchange_command made = deadline_of(job, market.now_ns + NS_PER_S);
    apply(&made);
    pass(NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_CANCELLED);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_DEADLINE);
}
END_TEST

START_TEST(a_job_that_lives_off_its_leases_may_get_another_deadline)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(3, 5 * NS_PER_S);
    made.submit.type = EXCHANGE_IOC;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    struct exchange_command priced = deadline_of(made.id, market.now_ns + 60 * NS_PER_S);
    priced.replace.has_price = true;
    priced.replace.price_micro = price;
    check_refused(&priced, REJECT_STATE, "order", 0, 0);
    struct exchange_command later = deadline_of(made.id, market.now_ns + 60 * NS_PER_S);
    apply(&later);
    ck_assert_int_eq(job_row(made.id).deadline_ns, later.replace.deadline_ns);
}
END_TEST

START_TEST(a_deadline_that_cannot_be_is_refused)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(5, 5 * NS_PER_S);
    apply(&made);
    struct exchange_command none = deadline_of(made.id, 0);
    check_refused(&none, REJECT_QUANTITY, "deadline_ms", 0, start_ns / NS_PER_MS);
    struct exchange_command past = deadline_of(made.id, market.now_ns);
    check_refused(&past, REJECT_QUANTITY, "deadline_ms", start_ns / NS_PER_MS,
                  start_ns / NS_PER_MS);
    pass(5 * NS_PER_S);
    struct exchange_command closing = deadline_of(made.id, market.now_ns + NS_PER_S);
    check_refused(&closing, REJECT_STATE, "order", JOB_OPEN, 0);
}
END_TEST

START_TEST(work_that_was_late_begins_under_a_later_deadline)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_by(3, 3 * NS_PER_S);
    made.submit.is_expectation_stated = true;
    made.submit.expect_ns = 4 * NS_PER_S;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_LATE);
    struct exchange_command later = deadline_of(made.id, market.now_ns + 60 * NS_PER_S);
    apply(&later);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    ck_assert_uint_ge(count_of(EFFECT_DISPATCH), 1);
}
END_TEST

SUITE("exchange: deadline", set_up_now, tear_down,
      TEST(a_job_that_nobody_began_ends_at_its_deadline),
      TEST(what_runs_at_the_deadline_is_withdrawn_and_what_was_accepted_is_paid),
      TEST(a_result_on_its_way_at_the_deadline_counts_and_a_later_one_does_not),
      TEST(a_job_that_is_done_in_time_is_done),
      TEST(a_job_whose_last_result_was_on_its_way_at_the_deadline_is_done),
      TEST(a_job_that_failed_before_its_deadline_and_lost_nothing_to_it_has_failed),
      TEST(a_deadline_ends_what_good_till_left_running),
      TEST(a_cancelled_job_stays_cancelled_by_its_client),
      TEST(a_job_without_a_deadline_has_the_snapshot_of_before),
      TEST(a_deadline_that_has_passed_is_refused), TEST(an_open_job_gets_another_deadline),
      TEST(a_job_without_a_deadline_may_get_one),
      TEST(a_job_that_lives_off_its_leases_may_get_another_deadline),
      TEST(a_deadline_that_cannot_be_is_refused),
      TEST(work_that_was_late_begins_under_a_later_deadline))
