/* The market gets over those who vanish, restart or are cut off: what goes elsewhere, and how soon.
 * How both sides settle what they hold is in test_reconciliation.c. */
#include "exchange/state/records.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/held_statements.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

/* Returns how far a subtask is, as its owner is told. */
static int told_state(struct id128 job, uint32_t index)
{
    uint8_t states[16] = {0};
    uint32_t tries[16];
    ck_assert_uint_gt(exchange_subtasks(market.exchange, &job, states, tries, 16), index);
    return states[index];
}

/* ---------------------------------------------------------------- P18: a lost subtask goes first
 */

START_TEST(a_lost_subtask_goes_before_what_is_queued)
{
    offer(PROVIDER, 1, price / 2);
    struct id128 job = submit(9, 500);
    struct exchange_work lost = nth(EFFECT_DISPATCH, 0)->work;
    offer(OTHER_PROVIDER, 1, price / 2);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2); /* one runs, one is queued behind it */
    const struct exchange_work runs = nth(EFFECT_DISPATCH, 0)->work;
    const struct exchange_work next = nth(EFFECT_DISPATCH, 1)->work;
    uint64_t other = runs.lease;
    market.now_ns += 3 * NS_PER_S;
    suspect(PROVIDER);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1); /* at once, though no lane is free */
    struct exchange_work again = nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(again.lease, other);
    ck_assert_uint_eq(again.index, lost.index);
    ck_assert(again.is_urgent);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 0); /* nobody's work is taken back for it */
    ck_assert_int_eq(told_state(job, runs.index), SUBTASK_NOW_RUNNING);
    ck_assert_int_eq(told_state(job, next.index), SUBTASK_NOW_QUEUED);
    ck_assert_int_eq(told_state(job, lost.index), SUBTASK_NOW_QUEUED);
    market.now_ns += NS_PER_S;
    result(OTHER_PROVIDER, job, runs, OUTCOME_OK, NS_PER_S);
    ck_assert_int_eq(told_state(job, lost.index), SUBTASK_NOW_RUNNING);
    ck_assert_int_eq(told_state(job, next.index), SUBTASK_NOW_QUEUED);
    reload();
}
END_TEST

/* While a suspect lease holds its term's escrow, the budget that is held unless its owner says
 * another buys one more. */
START_TEST(a_default_budget_starts_lost_work_elsewhere_at_once)
{
    offer(PROVIDER, 1, price);
    offer(OTHER_PROVIDER, 2, price);
    struct exchange_command made = submit_of(2, 1);
    made.submit.at_most = 2;
    made.submit.expect_ns = NS_PER_S;
    const struct exchange_need need = {
        .needs = made.submit.needs,
        .account = CONSUMER,
        .subtasks = made.submit.subtasks,
        .slots = made.submit.slots,
        .at_most = made.submit.at_most,
        .cap_micro = made.submit.cap_micro,
        .limit_ns = made.submit.limit_ns,
        .term_ns = made.submit.term_ns,
        .expect_ns = made.submit.expect_ns,
    };
    struct exchange_quote quote;
    ck_assert(exchange_quote(market.exchange, &need, &quote));
    made.submit.budget_micro = quote.suggested_micro;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 2);
    ck_assert_uint_eq(nth(EFFECT_LEASE_GRANT, 0)->account, PROVIDER);
    market.now_ns += 3 * NS_PER_S;
    suspect(PROVIDER);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    ck_assert_uint_eq(nth(EFFECT_LEASE_GRANT, 0)->account, OTHER_PROVIDER);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1); /* not behind what the other one runs */
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->work.lease, nth(EFFECT_LEASE_GRANT, 0)->grant.lease);
}
END_TEST

START_TEST(each_lane_takes_one_lost_subtask_at_a_time_in_front)
{
    offer(PROVIDER, 4, price / 2);
    struct id128 job = submit(22, 500);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 8);
    offer(OTHER_PROVIDER, 2, price / 2);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 4);
    suspect(PROVIDER);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2); /* two lanes, one each */
    ck_assert_uint_ne(nth(EFFECT_DISPATCH, 0)->work.lane, nth(EFFECT_DISPATCH, 1)->work.lane);

    market.now_ns += NS_PER_S;
    result(OTHER_PROVIDER, job, first, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1); /* its lane has begun the first: the next */
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->work.lane, first.lane);
    ck_assert(nth(EFFECT_DISPATCH, 0)->work.is_urgent);
    reload();
}
END_TEST

/* Two lanes began at once, and one has begun its next two seconds later, when the third, of another
 * provider, is lost. */
static uint32_t lane_that_gets_the_lost(uint8_t outcome, uint32_t *ret_early, uint32_t *ret_late)
{
    offer(OTHER_PROVIDER, 2, price / 2);
    struct id128 job = submit(40, 500);
    struct exchange_work early = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work late = nth(EFFECT_DISPATCH, 1)->work;
    ck_assert_uint_ne(early.lane, late.lane);
    offer(PROVIDER, 1, price / 2);
    market.now_ns += 2 * NS_PER_S; /* this lane begins its next only now */
    result(OTHER_PROVIDER, job, early, outcome, 2 * NS_PER_S);
    market.now_ns += NS_PER_S;
    suspect(PROVIDER);
    *ret_early = early.lane;
    *ret_late = late.lane;
    return nth(EFFECT_DISPATCH, 0)->work.lane;
}

/* The late lane's work and its next take three seconds at least; the early lane has run its next
 * for one second. */
START_TEST(while_nothing_is_known_what_runs_has_taken_at_least_so_long)
{
    uint32_t early;
    uint32_t late;
    uint32_t lane = lane_that_gets_the_lost(OUTCOME_PROGRAM_FAILED, &early, &late);
    ck_assert_uint_eq(lane, early);
}
END_TEST

START_TEST(the_lane_that_would_be_done_first_takes_the_lost_subtask)
{
    uint32_t early;
    uint32_t late; /* with two seconds for each, one is left here, and the other is overdue */
    uint32_t lane = lane_that_gets_the_lost(OUTCOME_OK, &early, &late);
    ck_assert_uint_eq(lane, early);
}
END_TEST

START_TEST(fresh_subtasks_are_never_urgent)
{
    offer(PROVIDER, 2, price);
    (void)submit(9, 500);
    for (size_t i = 0; i < count_of(EFFECT_DISPATCH); i++) {
        ck_assert(!nth(EFFECT_DISPATCH, i)->work.is_urgent);
    }
}
END_TEST

START_TEST(one_that_was_only_cut_off_loses_no_work_and_nothing_is_paid_twice)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    offer(OTHER_PROVIDER, 1, price);
    market.now_ns += 3 * NS_PER_S;
    suspect(PROVIDER);
    struct exchange_work second = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    offer(PROVIDER, 1, price); /* it is back */
    struct exchange_held held = held_of(first);
    state(PROVIDER, &held, 1, market.now_ns);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 0);
    result(PROVIDER, job, first, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_int_eq(balance(PROVIDER).available_micro, MICRO_PER_CREDIT);
    result(OTHER_PROVIDER, job, second, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_LATE);
    ck_assert_int_eq(balance(OTHER_PROVIDER).available_micro, 0);
}
END_TEST

START_TEST(who_comes_back_is_not_sent_again_what_it_had)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(3, 100);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += 3 * NS_PER_S;
    suspect(PROVIDER);
    ck_assert_uint_eq(job_row(job).waiting, 3);
    market.now_ns += 4 * NS_PER_S;
    presence(EXCHANGE_RETURNED, PROVIDER);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0); /* nobody else has begun it: it still counts */
    ck_assert_uint_eq(job_row(job).waiting, 1);
    reload();

    /* Its statement says otherwise: then the subtask is begun again. */
    market.now_ns += NS_PER_S;
    struct exchange_held nothing_of_it = {.lease = first.lease};
    state(PROVIDER, &nothing_of_it, 1, market.now_ns);
    ck_assert_uint_ge(count_of(EFFECT_DISPATCH), 1);
    reload();
}
END_TEST

/* ---------------------------------------------------------------- the operator's switches (P16) */

static void freeze(uint8_t key, bool is_frozen)
{
    struct exchange_command made = command(EXCHANGE_FREEZE, OPERATOR);
    made.freeze = (struct exchange_freeze){.account = {{key}}, .frozen = is_frozen};
    apply(&made);
}

START_TEST(a_frozen_providers_leases_and_asks_end_with_the_command)
{
    offer(PROVIDER, 2, price);
    struct id128 job = submit(2, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    offer(OTHER_PROVIDER, 2, price);
    freeze(2, true);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    ck_assert_uint_eq(nth(EFFECT_LEASE_END, 0)->lease.reason, LEASE_END_REVOKED);
    ck_assert_uint_eq(record_of(LEDGER_CANCEL)->status, 4);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2); /* elsewhere, in the same command */
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->account, OTHER_PROVIDER);
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, work, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_LATE);
    reload();
}
END_TEST

START_TEST(a_frozen_consumers_work_is_withdrawn_with_the_command)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(5, 100);
    freeze(1, true);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 2);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
    ck_assert_uint_eq(job_row(job).cancelled, 3);
}
END_TEST

START_TEST(goodbye_and_suspicion_cancel_the_asks_with_the_command)
{
    static const enum exchange_command_type ways[] = {EXCHANGE_GOODBYE, EXCHANGE_SUSPECT};
    for (size_t i = 0; i < 2; i++) {
        offer(PROVIDER, 1, price);
        presence(ways[i], PROVIDER);
        ck_assert_uint_eq(record_of(LEDGER_CANCEL)->status, 1);
        (void)submit(1, 30);
        ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
        tear_down();
        set_up();
    }
}
END_TEST

/* ---------------------------------------------------------------- bounds */

START_TEST(a_subtask_that_is_given_back_for_ever_has_a_last_attempt)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 500);
    uint32_t last = 0;
    for (int i = 0; i < 1100 && job_row(job).state == JOB_OPEN; i++) {
        struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
        last = work.attempt;
        result(PROVIDER, job, work, OUTCOME_CANCELLED, 0); /* nobody asked it to */
        market.now_ns += 11 * NS_PER_S;                    /* then it may serve the job again */
        if (job_row(job).state == JOB_OPEN) {
            tick();
        }
    }
    ck_assert_uint_eq(last, 1000);
    ck_assert_uint_eq(job_row(job).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_PROVIDERS_FAILED);
}
END_TEST

START_TEST(an_explanation_of_an_ended_job_says_that_it_has_ended)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    result(PROVIDER, job, nth(EFFECT_DISPATCH, 0)->work, OUTCOME_OK, 0);
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &job, EXCHANGE_ANY_PART, &why));
    ck_assert(why.has_ended);
    ck_assert_int_eq(why.fills_at_micro, -1);
    ck_assert_uint_eq(why.free, 0);
}
END_TEST

START_TEST(a_job_that_only_its_providers_failed_says_so)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 500);
    for (int i = 0; i < 3; i++) {
        struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
        market.now_ns += 11 * NS_PER_S; /* past the time that it is avoided */
        result(PROVIDER, job, work, OUTCOME_JAIL_FAILED, 0);
        if (job_row(job).state == JOB_OPEN && count_of(EFFECT_DISPATCH) == 0) {
            market.now_ns += 11 * NS_PER_S;
            tick();
        }
    }
    ck_assert_uint_eq(job_row(job).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_PROVIDERS_FAILED);
}
END_TEST

START_TEST(a_job_whose_program_failed_says_that)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 500);
    result(PROVIDER, job, nth(EFFECT_DISPATCH, 0)->work, OUTCOME_PROGRAM_FAILED, 0);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_SUBTASKS_FAILED);
}
END_TEST

START_TEST(no_claim_of_time_makes_a_state_that_does_not_load)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(9, 500);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work second = nth(EFFECT_DISPATCH, 1)->work;
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, first, OUTCOME_OK, INT64_MAX);
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, second, OUTCOME_OK, 1);
    reload();
}
END_TEST

START_TEST(timers_of_what_is_gone_do_not_pile_up)
{
    offer(PROVIDER, 1, price);
    /* Each ask replaces the one before and leaves a deadline in the far future behind. */
    for (int i = 0; i < 20000; i++) {
        struct exchange_command ask = command(EXCHANGE_ASK, PROVIDER);
        ask.ask = (struct exchange_ask){.device = {{PROVIDER}},
                                        .slots = 1,
                                        .price_micro = price,
                                        .good_till_ns = market.now_ns + 3600 * NS_PER_S + i};
        apply(&ask);
    }
    ck_assert_uint_lt(market.exchange->timer_count, 3000);
    struct exchange_command last = command(EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    last.log_time_ns = market.now_ns += 3601 * NS_PER_S;
    apply(&last);
    ck_assert_uint_eq(record_of(LEDGER_CANCEL)->status, 2); /* the one that stood has expired */
}
END_TEST

/* 4096 slots for two weeks: what was paid is more slot-time than half of what 64 bits hold. */
START_TEST(a_long_wide_lease_makes_a_state_that_loads)
{
    const int64_t week_ns = 7 * 24 * NS_PER_HOUR;
    offer(PROVIDER, 4096, 1);
    struct exchange_command made = submit_of(9, 900);
    made.submit.slots = 4096;
    made.submit.cap_micro = 10;
    made.submit.limit_ns = made.submit.term_ns = week_ns;
    apply(&made);
    struct exchange_work first = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work second = nth(EFFECT_DISPATCH, 1)->work;
    market.now_ns += week_ns - NS_PER_S;
    result(PROVIDER, made.id, first, OUTCOME_OK, INT64_MAX);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_RENEW), 1);
    market.now_ns += week_ns - NS_PER_S;
    result(PROVIDER, made.id, second, OUTCOME_OK, INT64_MAX);
    ck_assert_int_gt(record_of(LEDGER_RESULT)->paid_ns, 4096 * (week_ns - 2 * NS_PER_S));
    reload();
}
END_TEST

SUITE("recovery", set_up, tear_down, TEST(a_lost_subtask_goes_before_what_is_queued),
      TEST(a_default_budget_starts_lost_work_elsewhere_at_once),
      TEST(each_lane_takes_one_lost_subtask_at_a_time_in_front),
      TEST(while_nothing_is_known_what_runs_has_taken_at_least_so_long),
      TEST(the_lane_that_would_be_done_first_takes_the_lost_subtask),
      TEST(fresh_subtasks_are_never_urgent),
      TEST(one_that_was_only_cut_off_loses_no_work_and_nothing_is_paid_twice),
      TEST(who_comes_back_is_not_sent_again_what_it_had),
      TEST(a_frozen_providers_leases_and_asks_end_with_the_command),
      TEST(a_frozen_consumers_work_is_withdrawn_with_the_command),
      TEST(goodbye_and_suspicion_cancel_the_asks_with_the_command),
      TEST(a_subtask_that_is_given_back_for_ever_has_a_last_attempt),
      TEST(an_explanation_of_an_ended_job_says_that_it_has_ended),
      TEST(a_job_that_only_its_providers_failed_says_so),
      TEST(a_job_whose_program_failed_says_that),
      TEST(no_claim_of_time_makes_a_state_that_does_not_load),
      TEST(a_long_wide_lease_makes_a_state_that_loads), TEST(timers_of_what_is_gone_do_not_pile_up))
