/* Lanes and budgets of a job over its life: what comes back, what can no longer be paid, what
 * ends. */
#include "tests/support/hand_market.h"

#include "base/checked.h"
#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>

START_TEST(work_that_comes_back_goes_to_a_lane_that_is_free_already)
{
    offer(PROVIDER, 1, price / 2);
    offer(OTHER_PROVIDER, 2, price / 2);
    struct exchange_command made = submit_of(3, 500);
    made.submit.limit_ns = made.submit.term_ns = 60 * NS_PER_S;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 3);
    struct exchange_work other = {0};
    for (size_t i = 0; i < 3; i++) {
        const struct exchange_effect *effect = nth(EFFECT_DISPATCH, i);
        other = effect->account == OTHER_PROVIDER ? effect->work : other;
    }
    market.now_ns += NS_PER_S;
    result(OTHER_PROVIDER, made.id, other, OUTCOME_OK, NS_PER_S); /* one lane of two is free now */
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
    market.now_ns += NS_PER_S;
    presence(EXCHANGE_SUSPECT, PROVIDER);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1); /* P18: not when the other lane ends */
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->account, OTHER_PROVIDER);
}
END_TEST

START_TEST(a_goodbye_that_loses_the_last_attempt_ends_the_job)
{
    struct id128 job = submit(1, 100);
    for (int i = 0; i < 16 && job_row(job).state == JOB_OPEN; i++) {
        market.now_ns += 10 * NS_PER_S; /* it is avoided that long */
        offer(PROVIDER, 1, price);
        presence(EXCHANGE_GOODBYE, PROVIDER);
    }
    ck_assert_uint_eq(job_row(job).state, JOB_FAILED);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

START_TEST(a_cut_off_provider_is_waited_for_when_the_budget_buys_no_other)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(2, 25); /* a term is 20 credits */
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, first, OUTCOME_OK, NS_PER_S);
    struct exchange_work second = nth(EFFECT_DISPATCH, 0)->work;
    offer(OTHER_PROVIDER, 1, price);
    presence(EXCHANGE_SUSPECT, PROVIDER);
    ck_assert_uint_eq(job_row(job).state, JOB_OPEN);
    presence(EXCHANGE_RETURNED, PROVIDER);
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, second, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

START_TEST(a_budget_that_no_longer_buys_a_term_ends_the_job_when_an_ask_says_so)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(3, 25);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 8 * NS_PER_S;
    result(PROVIDER, job, first, OUTCOME_OK, 8 * NS_PER_S);
    presence(EXCHANGE_GOODBYE, PROVIDER);
    ck_assert_uint_eq(job_row(job).state, JOB_OPEN); /* something cheaper may come */
    offer(OTHER_PROVIDER, 1, price);
    ck_assert_uint_eq(job_row(job).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_BUDGET);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

START_TEST(an_ask_the_budget_cannot_pay_hides_none_that_it_can)
{
    offer(OTHER_PROVIDER, 1, price / 2); /* older than the bid: fills at its own price */
    struct exchange_command big = submit_of(1, 500);
    apply(&big);                      /* takes the only slot for now */
    struct id128 job = submit(1, 12); /* 20 credits a term at its limit, 10 at half of that */
    offer(PROVIDER, 1,
          price / 4); /* the best ask, but newer than the bid: fills at the bid's limit */
    ck_assert_uint_eq(job_row(job).running, 0);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = big.id;
    apply(&cancel);
    struct exchange_command halt = command(EXCHANGE_HALT, OPERATOR);
    halt.halt.halted = true;
    apply(&halt);
    market.now_ns += 30 * NS_PER_S; /* the cancelled job's lease is over, but nobody trades yet */
    tick();
    struct exchange_command resume = command(EXCHANGE_HALT, OPERATOR);
    apply(&resume);
    ck_assert_uint_eq(job_row(job).running, 1);
}
END_TEST

START_TEST(lanes_that_can_no_longer_be_renewed_are_bought_elsewhere)
{
    offer(PROVIDER, 2, price / 4);
    struct exchange_command made = submit_of(8, 900);
    made.submit.at_most = 2;
    made.submit.limit_ns = made.submit.term_ns = 60 * NS_PER_S;
    apply(&made);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    uint32_t sent = (uint32_t)count_of(EFFECT_DISPATCH);
    ck_assert_uint_ge(sent, 2);
    ck_assert_uint_lt(sent, 8);
    offer(PROVIDER, 1, price); /* withdraws the ask that the lease came from ... */
    struct exchange_command gone = command(EXCHANGE_ADVERTISE, PROVIDER);
    apply(&gone); /* ... and every other */
    offer(OTHER_PROVIDER, 2, price / 4);
    market.now_ns += NS_PER_S;
    result(PROVIDER, made.id, first, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(made.id).waiting, 8 - sent - 2); /* two lanes took one each */
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2);
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->account, OTHER_PROVIDER);
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 1)->account, OTHER_PROVIDER);
}
END_TEST

/* Twice as many subtasks as slots do not wait behind one another: the job goes on asking, and takes
 * what comes. */
START_TEST(what_could_run_beside_is_not_queued_behind)
{
    for (uint32_t slots = 1; slots <= 8; slots *= 2) {
        tear_down();
        set_up();
        offer(PROVIDER, slots, price / 10);
        struct id128 job = submit(2 * slots, 900);
        ck_assert_uint_eq(count_of(EFFECT_DISPATCH), slots);
        ck_assert_uint_eq(job_row(job).running, slots);
        ck_assert_uint_eq(job_row(job).queued, 0);
        ck_assert_uint_eq(job_row(job).waiting, slots);
        market.now_ns += 5 * NS_PER_S;
        offer(OTHER_PROVIDER, slots, price / 10);
        ck_assert_uint_eq(granted_to(job), slots);
        ck_assert_uint_eq(count_of(EFFECT_DISPATCH), slots);
        for (size_t i = 0; i < slots; i++) {
            ck_assert_uint_eq(nth(EFFECT_DISPATCH, i)->account, OTHER_PROVIDER);
        }
        ck_assert_uint_eq(job_row(job).running, 2 * slots);
        ck_assert_uint_eq(job_row(job).queued, 0);
    }
}
END_TEST

START_TEST(what_is_next_in_a_lane_does_not_run_yet)
{
    offer(PROVIDER, 2, price);
    struct id128 job = submit(6, 100);
    ck_assert_uint_gt(job_row(job).running, 2);
    ck_assert_uint_eq(job_row(job).running - job_row(job).queued, 2);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    presence(EXCHANGE_SUSPECT, PROVIDER); /* then nobody knows, and all of it waits again */
    ck_assert_uint_eq(job_row(job).queued, 0);
    presence(EXCHANGE_RETURNED, PROVIDER);
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, first, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(job).running - job_row(job).queued, 2);
    struct id128 lone = submit(1, 100);
    ck_assert_uint_eq(job_row(lone).queued, 0);
}
END_TEST

/* Returns the states of the first `count` subtasks, a letter each. */
static const char *states_of(struct id128 job, uint32_t count)
{
    static const char letters[] = "-r+*xcq";
    static char text[64];
    uint8_t states[64] = {0};
    uint32_t tries[64];
    ck_assert_uint_eq(exchange_subtasks(market.exchange, &job, states, tries, 64), count);
    for (uint32_t i = 0; i < count; i++) {
        text[i] = letters[states[i]];
    }
    text[count] = '\0';
    return text;
}

START_TEST(a_job_says_what_was_foreseen_what_it_took_and_what_is_left)
{
    struct exchange_command made = submit_of(10, 500);
    made.submit.limit_ns = made.submit.term_ns = 100 * NS_PER_S;
    made.submit.expect_ns = 2 * NS_PER_S;
    apply(&made);
    ck_assert_int_eq(left_of(made.id), -1); /* on no lane it takes for ever */
    offer(PROVIDER, 2, price / 4);
    ck_assert_uint_eq(job_row(made.id).timed, 0);
    /* Ten of 2 s each on two lanes, which run two of them: what these have run is done. */
    ck_assert_int_eq(left_of(made.id), 10 * NS_PER_S);
    market.now_ns += NS_PER_S;
    ck_assert_int_eq(left_of(made.id), 9 * NS_PER_S);
    market.now_ns -= NS_PER_S;
    struct exchange_work works[4];
    for (size_t i = 0; i < 4; i++) {
        works[i] = nth(EFFECT_DISPATCH, i)->work;
    }
    for (size_t i = 0; i < 4; i++) {
        market.now_ns += 3 * NS_PER_S;
        result(PROVIDER, made.id, works[i], OUTCOME_OK, 3 * NS_PER_S);
    }
    const struct exchange_job_row row = job_row(made.id);
    ck_assert_uint_eq(row.timed, 4);
    ck_assert_int_eq(row.foreseen_ns, 8 * NS_PER_S);
    ck_assert_int_eq(row.took_ns, 12 * NS_PER_S);
    /* Six of 3 s, as measured: the lane that had its last result before the other has run its next
     * for 3 s. */
    const int64_t left_ns = left_of(made.id);
    ck_assert_int_gt(left_ns, 0);
    ck_assert_int_le(left_ns, 9 * NS_PER_S);
    market.now_ns += NS_PER_S / 2;
    ck_assert_int_eq(left_of(made.id), left_ns);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = made.id;
    apply(&cancel);
    ck_assert_int_eq(left_of(made.id), -1);
}
END_TEST

START_TEST(of_each_lane_the_first_runs_and_the_others_are_queued)
{
    offer(PROVIDER, 2, price);
    struct id128 job = submit(6, 100);
    struct exchange_part_row part;
    ck_assert_uint_eq(job_row(job).running, 4);
    ck_assert_str_eq(states_of(job, 6), "rrqq--");
    ck_assert_uint_eq(exchange_parts(market.exchange, &job, &part, 1), 1);
    ck_assert_uint_eq(part.queued, 2);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    presence(EXCHANGE_SUSPECT, PROVIDER);
    ck_assert_str_eq(states_of(job, 6), "------"); /* all of it waits again, for others */
    presence(EXCHANGE_RETURNED, PROVIDER);
    ck_assert_str_eq(states_of(job, 6), "rrqq--");
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, first, OUTCOME_OK, NS_PER_S);
    ck_assert_str_eq(states_of(job, 6), "*rrq--");
}
END_TEST

START_TEST(an_agent_that_gives_work_up_is_neither_paid_nor_sent_more)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(5, 100);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work second = nth(EFFECT_DISPATCH, 1)->work;
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, second, OUTCOME_CANCELLED, NS_PER_S); /* nobody asked for that */
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_FAILED_UNPAID);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 0); /* what runs may end */
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, first, OUTCOME_OK, 2 * NS_PER_S);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_ACCEPTED);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
    market.now_ns = exchange_next_deadline_ns(market.exchange); /* trusted again after a while */
    tick();
    ck_assert_uint_gt(count_of(EFFECT_DISPATCH), 0);
}
END_TEST

START_TEST(a_term_said_to_be_over_before_it_is_pays_nothing)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 5 * NS_PER_S;
    result(PROVIDER, job, work, OUTCOME_TERM_OVER, 5 * NS_PER_S);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_FAILED_UNPAID);
    ck_assert_int_eq(balance(PROVIDER).available_micro, 0);
    ck_assert_uint_eq(job_row(job).waiting, 1);
}
END_TEST

START_TEST(ended_leases_make_room_for_new_ones)
{
    tear_down();
    set_up_with(3, 8, 1); /* leases, attempts */
    struct id128 job = submit(1000, 900);
    for (int i = 0; i < 20; i++) {
        market.now_ns += 10 * NS_PER_S; /* until it is no longer avoided */
        offer(PROVIDER, 2, price / 100);
        ck_assert_msg(count_of(EFFECT_LEASE_GRANT) == 1, "no lease in round %d", i);
        ck_assert_msg(count_of(EFFECT_DISPATCH) > 0, "no work in round %d", i);
        presence(EXCHANGE_GOODBYE, PROVIDER);
    }
    ck_assert_uint_eq(job_row(job).state, JOB_OPEN);
}
END_TEST

SUITE("exchange lanes", set_up, tear_down,
      TEST(work_that_comes_back_goes_to_a_lane_that_is_free_already),
      TEST(a_goodbye_that_loses_the_last_attempt_ends_the_job),
      TEST(a_cut_off_provider_is_waited_for_when_the_budget_buys_no_other),
      TEST(a_budget_that_no_longer_buys_a_term_ends_the_job_when_an_ask_says_so),
      TEST(an_ask_the_budget_cannot_pay_hides_none_that_it_can),
      TEST(lanes_that_can_no_longer_be_renewed_are_bought_elsewhere),
      TEST(what_could_run_beside_is_not_queued_behind),
      TEST(what_is_next_in_a_lane_does_not_run_yet),
      TEST(a_job_says_what_was_foreseen_what_it_took_and_what_is_left),
      TEST(of_each_lane_the_first_runs_and_the_others_are_queued),
      TEST(an_agent_that_gives_work_up_is_neither_paid_nor_sent_more),
      TEST(a_term_said_to_be_over_before_it_is_pays_nothing),
      TEST(ended_leases_make_room_for_new_ones))
