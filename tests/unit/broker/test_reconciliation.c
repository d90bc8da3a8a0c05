/* The broker and an agent settle what both hold (docs/protocol.md section 7, Reconciliation), also
 * where a statement lies. */
#include "exchange/state/records.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/held_statements.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

START_TEST(what_both_sides_hold_is_left_alone)
{
    offer(PROVIDER, 1, price);
    (void)submit(5, 100);
    struct exchange_held held[] = {held_of(nth(EFFECT_DISPATCH, 0)->work),
                                   held_of(nth(EFFECT_DISPATCH, 1)->work)};
    market.now_ns += NS_PER_S;
    state(PROVIDER, held, 2, market.now_ns);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH) + count_of(EFFECT_WITHDRAW) +
                          count_of(EFFECT_LEASE_GRANT) + count_of(EFFECT_LEASE_END),
                      0);
}
END_TEST

START_TEST(an_attempt_that_the_agent_has_lost_goes_back_to_the_queue_at_once)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(3, 100);
    struct exchange_work kept = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work lost = nth(EFFECT_DISPATCH, 1)->work;
    struct exchange_held held = held_of(kept);
    market.now_ns += NS_PER_S;
    state(PROVIDER, &held, 1, market.now_ns);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1);
    struct exchange_work again = nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(again.index, lost.index);
    ck_assert_uint_eq(again.attempt,
                      lost.attempt + 1); /* counted: a subtask may be what kills agents */

    result(PROVIDER, job, lost, OUTCOME_OK, NS_PER_S); /* it spoke untruly: worth nothing */
    ck_assert_uint_eq(count_of(EFFECT_LEDGER), 0);
    result(PROVIDER, job, kept, OUTCOME_OK, NS_PER_S);
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, again, OUTCOME_OK, NS_PER_S);
    struct exchange_work last = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, last, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    reload();
}
END_TEST

START_TEST(an_attempt_sent_since_the_welcome_is_said_again)
{
    offer(PROVIDER, 1, price);
    (void)submit(3, 100);
    struct exchange_work sent = nth(EFFECT_DISPATCH, 0)->work;
    state(PROVIDER, NULL, 0, market.now_ns); /* greeted before; what it holds is on its way */
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2);
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->work.attempt, sent.attempt);
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->work.index, sent.index);
}
END_TEST

START_TEST(an_agent_that_restarted_gets_its_lease_and_new_attempts)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(3, 100);
    market.now_ns += NS_PER_S;
    offer(PROVIDER, 1, price);
    state(PROVIDER, NULL, 0, market.now_ns);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 1);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 2);
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->work.attempt, 2);
    ck_assert_uint_eq(job_row(job).running, 2);
    reload();
}
END_TEST

START_TEST(a_lost_attempt_whose_subtask_runs_elsewhere_is_not_started_again)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    offer(OTHER_PROVIDER, 1, price);
    market.now_ns += 3 * NS_PER_S;
    suspect(PROVIDER);
    struct exchange_work second = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    offer(PROVIDER, 1, price);
    state(PROVIDER, NULL, 0, market.now_ns); /* it had crashed */
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
    market.now_ns += NS_PER_S;
    result(OTHER_PROVIDER, job, second, OUTCOME_OK, NS_PER_S);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

START_TEST(an_attempt_that_was_decided_is_withdrawn_from_who_still_holds_it)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(9, 100);
    struct exchange_work done = nth(EFFECT_DISPATCH, 0)->work;
    struct exchange_work queued = nth(EFFECT_DISPATCH, 1)->work;
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, done, OUTCOME_OK, NS_PER_S);
    struct exchange_work next = nth(EFFECT_DISPATCH, 0)->work;
    /* Restarted from an old copy of itself: it would run `done` again, unpaid. */
    struct exchange_held held[] = {held_of(done), held_of(queued), held_of(next)};
    market.now_ns += NS_PER_S;
    state(PROVIDER, held, 3, market.now_ns);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 1);
    ck_assert_uint_eq(nth(EFFECT_WITHDRAW, 0)->work.index, done.index);
    ck_assert_uint_eq(nth(EFFECT_WITHDRAW, 0)->work.attempt, done.attempt);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
}
END_TEST

START_TEST(a_withdrawal_that_was_lost_is_said_again)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(3, 100);
    struct exchange_held held[] = {held_of(nth(EFFECT_DISPATCH, 0)->work),
                                   held_of(nth(EFFECT_DISPATCH, 1)->work)};
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = job;
    apply(&cancel);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 2);
    state(PROVIDER, held, 2, market.now_ns);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 2);
}
END_TEST

START_TEST(a_withdrawn_attempt_that_the_agent_has_lost_holds_up_nothing)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(2, 100);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = job;
    apply(&cancel);
    ck_assert_uint_eq(job_row(job).state, JOB_OPEN); /* it waits for both */
    market.now_ns += NS_PER_S;
    state(PROVIDER, NULL, 0, market.now_ns);
    ck_assert_uint_eq(job_row(job).state, JOB_CANCELLED);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

START_TEST(a_lease_that_ended_or_never_was_is_ended_once)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    market.now_ns += NS_PER_S;
    result(PROVIDER, job, work, OUTCOME_OK, NS_PER_S); /* the job is done, its lease has ended */
    struct exchange_held held[] = {{work.lease, 0, 0}, {work.lease, 7, 1}, {999, 0, 0}};
    state(PROVIDER, held, 3, market.now_ns);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 2);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 0);
    ck_assert_uint_eq(nth(EFFECT_LEASE_END, 0)->lease.reason, LEASE_END_UNKNOWN);
}
END_TEST

START_TEST(another_providers_lease_is_unknown_and_left_alone)
{
    offer(PROVIDER, 1, price);
    (void)submit(2, 100);
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    offer(OTHER_PROVIDER, 1, 2 * price);
    struct hash32 before = exchange_state_hash(market.exchange);
    struct exchange_held held = held_of(work);
    state(OTHER_PROVIDER, &held, 1, market.now_ns);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    ck_assert_uint_eq(nth(EFFECT_LEASE_END, 0)->account, OTHER_PROVIDER);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH) + count_of(EFFECT_WITHDRAW), 0);
    struct hash32 after = exchange_state_hash(market.exchange);
    ck_assert(!hash32_equal(&before, &after)); /* the market's own record counts commands */
    reload();
}
END_TEST

START_TEST(a_subtask_that_kills_its_agents_is_given_up)
{
    offer(PROVIDER, 1, price);
    struct exchange_command made = submit_of(1, 500);
    made.submit.error_limit = 0;
    apply(&made);
    int restarts = 0;
    while (job_row(made.id).state == JOB_OPEN && restarts < 100) {
        market.now_ns += 11 * NS_PER_S; /* after two in a row it is avoided that long */
        offer(PROVIDER, 1, price);
        state(PROVIDER, NULL, 0, market.now_ns);
        restarts++;
    }
    ck_assert_int_lt(restarts, 40);
    ck_assert_uint_eq(job_row(made.id).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_PROVIDERS_FAILED);
}
END_TEST

/* ---------------------------------------------------------------- statements that lie */

START_TEST(nobody_has_seen_the_future)
{
    offer(PROVIDER, 1, price);
    (void)submit(1, 100);
    state(PROVIDER, NULL, 0, INT64_MAX);             /* in the instant of the dispatch */
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1); /* it is on its way: the same again */
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->work.attempt, 1);
}
END_TEST

START_TEST(who_loses_work_again_and_again_is_avoided_and_another_gets_it)
{
    offer(PROVIDER, 1, price - 1);
    offer(OTHER_PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    market.now_ns++;
    state(PROVIDER, NULL, 0, INT64_MAX);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 0); /* it may have restarted */
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->account, PROVIDER);
    market.now_ns++;
    state(PROVIDER, NULL, 0, INT64_MAX);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 1);
    ck_assert_uint_eq(nth(EFFECT_LEASE_END, 0)->lease.reason, 4); /* the provider failed */
    ck_assert_uint_eq(nth(EFFECT_DISPATCH, 0)->account, OTHER_PROVIDER);
    result(OTHER_PROVIDER, job, nth(EFFECT_DISPATCH, 0)->work, OUTCOME_OK, NS_PER_S);
    ck_assert_int_eq(job_row(job).state, JOB_DONE);
    reload();
}
END_TEST

START_TEST(who_leaves_in_the_middle_of_a_job_gets_no_more_of_it_for_a_while)
{
    offer(PROVIDER, 1, price);
    struct id128 job = submit(1, 100);
    for (int i = 0; i < 20; i++) { /* comes, takes the subtask, and goes, many times a second */
        market.now_ns += NS_PER_S / 10;
        presence(EXCHANGE_GOODBYE, PROVIDER);
        offer(PROVIDER, 1, price);
        ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
    }
    ck_assert_int_eq(job_row(job).state, JOB_OPEN);
    reload();
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_AVOIDED);
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &job, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.free, 0);
    ck_assert_uint_eq(why.avoided, 1);
    ck_assert_int_eq(why.avoided_ns, 81 * NS_PER_S / 10); /* ten seconds from when it first left */
    ck_assert_int_eq(why.fills_at_micro, -1);             /* no price would start it there */
    offer(OTHER_PROVIDER, 1, price); /* whom the job has not lost anything to */
    struct exchange_work work = nth(EFFECT_DISPATCH, 0)->work;
    ck_assert_uint_eq(work.attempt, 2);
    result(OTHER_PROVIDER, job, work, OUTCOME_OK, NS_PER_S);
    ck_assert_int_eq(job_row(job).state, JOB_DONE);
}
END_TEST

START_TEST(a_restart_that_loses_much_is_one_failure)
{
    offer(PROVIDER, 8, price);
    (void)submit(8, 500);
    market.now_ns++;
    state(PROVIDER, NULL, 0, market.now_ns);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_END), 0);
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 8);
}
END_TEST

SUITE("reconciliation", set_up, tear_down, TEST(what_both_sides_hold_is_left_alone),
      TEST(an_attempt_that_the_agent_has_lost_goes_back_to_the_queue_at_once),
      TEST(an_attempt_sent_since_the_welcome_is_said_again),
      TEST(an_agent_that_restarted_gets_its_lease_and_new_attempts),
      TEST(a_lost_attempt_whose_subtask_runs_elsewhere_is_not_started_again),
      TEST(an_attempt_that_was_decided_is_withdrawn_from_who_still_holds_it),
      TEST(a_withdrawal_that_was_lost_is_said_again),
      TEST(a_withdrawn_attempt_that_the_agent_has_lost_holds_up_nothing),
      TEST(a_lease_that_ended_or_never_was_is_ended_once),
      TEST(another_providers_lease_is_unknown_and_left_alone),
      TEST(a_subtask_that_kills_its_agents_is_given_up), TEST(nobody_has_seen_the_future),
      TEST(who_loses_work_again_and_again_is_avoided_and_another_gets_it),
      TEST(who_leaves_in_the_middle_of_a_job_gets_no_more_of_it_for_a_while),
      TEST(a_restart_that_loses_much_is_one_failure))
