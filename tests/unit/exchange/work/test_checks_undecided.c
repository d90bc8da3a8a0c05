/* Some checks come to no verdict, or nobody waits for them any more. */
#include "exchange/policy.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/held_market.h"
#include "tests/support/suite.h"

#include <check.h>

START_TEST(who_is_unsure_makes_room_for_another_and_twice_accuses_nobody)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_UNSURE);
    ck_assert_uint_eq(result_of(1)->status, ATTEMPT_FAILED_PAID);
    ck_assert_uint_eq(job_row(held.job).checking, 1);
    struct exchange_work check = sent_to(is_sent_to(SECOND) ? SECOND : REFEREE);
    const uint32_t by = is_sent_to(SECOND) ? SECOND : REFEREE;
    ck_assert_uint_eq(check.attempt, 2);
    ck_assert(!hash32_equal(&check.seed, &held.check.seed));
    reload();
    (void)answer(by, held.job, check, OUTCOME_OK, VERDICT_UNSURE);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_FAILED_PAID);
    ck_assert_uint_eq(result_of(0)->level, CHECK_CHEAP);
    ck_assert_int_eq(result_of(0)->charge_micro, MICRO_PER_CREDIT);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
    ck_assert_uint_eq(job_row(held.job).checking, 0);
    ck_assert(!is_sent_to(MAKER) && !is_sent_to(REFEREE)); /* one who did not judge it makes it */
    ck_assert(is_sent_to(SECOND) == (by == REFEREE));
}
END_TEST

START_TEST(where_nobody_else_is_it_comes_back_to_who_left_it_unsure)
{
    struct held_case held = hold_one();
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_UNSURE);
    (void)answer(REFEREE, held.job, sent_to(REFEREE), OUTCOME_OK, VERDICT_UNSURE);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_FAILED_PAID);
    ck_assert(!is_sent_to(REFEREE) && !is_sent_to(MAKER));
    reload();
    market.now_ns += AVOID_NS;
    tick();
    ck_assert_uint_eq(sent_to(MAKER).index, 0);
}
END_TEST

START_TEST(what_nobody_can_judge_fails_the_job_by_nobodys_fault)
{
    offer(MAKER, 1, price);
    struct exchange_command made = checked_of(1, 500);
    made.submit.crash_limit = 0;
    apply(&made);
    struct exchange_work work = sent_to(MAKER);
    offer(REFEREE, 1, price);
    done(MAKER, made.id, work);
    (void)answer(REFEREE, made.id, sent_to(REFEREE), OUTCOME_OK, VERDICT_UNSURE);
    (void)answer(REFEREE, made.id, sent_to(REFEREE), OUTCOME_OK, VERDICT_UNSURE);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_FAILED_PAID);
    ck_assert_uint_eq(job_row(made.id).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_NO_VERDICT);
    reload();
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_NO_VERDICT);
}
END_TEST

START_TEST(another_referee_goes_before_one_who_was_unsure)
{
    struct exchange_work sent[MOST];
    uint32_t count = 0;
    offer(MAKER, 1, price);
    struct id128 job = submit_checked(4);
    make_all(job, 4);
    offer(REFEREE, 1, price);
    for (size_t i = 0; i < market.effects.count; i++) {
        if (market.effects.items[i].type == EFFECT_DISPATCH) {
            sent[count++] = market.effects.items[i].work;
        }
    }
    offer(SECOND, 1, price);
    const uint32_t unsure_about = sent_to(SECOND).index;
    (void)answer(SECOND, job, sent_to(SECOND), OUTCOME_OK, VERDICT_UNSURE);
    uint32_t seen = 0;
    for (uint32_t i = 0; seen == 0; i++) {
        for (size_t k = 0; k < market.effects.count; k++) {
            const struct exchange_effect *effect = &market.effects.items[k];
            if (effect->type != EFFECT_DISPATCH) {
                continue;
            }
            ck_assert(effect->account != SECOND || effect->work.index != unsure_about);
            seen += effect->work.index == unsure_about;
            if (effect->account == REFEREE) {
                sent[count++] = effect->work;
            }
        }
        if (seen == 0) {
            ck_assert_uint_lt(i, count);
            (void)answer(REFEREE, job, sent[i], OUTCOME_OK, VERDICT_ACCEPT);
        }
    }
    ck_assert_uint_eq(sent[count - 1].attempt, 2);
}
END_TEST

START_TEST(a_verdict_of_another_seed_or_none_is_the_referees_fault)
{
    struct held_case held = hold_one();
    struct exchange_work other = held.check;
    other.seed.bytes[0] ^= 1;
    (void)answer(REFEREE, held.job, other, OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(result_of(1)->status, ATTEMPT_FAILED_UNPAID);
    ck_assert_int_eq(balance(REFEREE).available_micro, 0);
    ck_assert_uint_eq(job_row(held.job).checking, 1);
    struct exchange_work again = sent_to(REFEREE);
    ck_assert_uint_eq(again.attempt, 2);
    (void)answer(REFEREE, held.job, again, OUTCOME_OK, VERDICT_NONE);
    ck_assert_uint_eq(result_of(1)->status, ATTEMPT_FAILED_UNPAID);
    ck_assert_uint_eq(job_row(held.job).checking, 1);
    ck_assert_int_eq(balance(MAKER).available_micro, 0);
}
END_TEST

START_TEST(what_two_do_not_find_is_paid_and_made_again_without_a_word_against_anybody)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    (void)answer(REFEREE, held.job, held.check, OUTCOME_INPUT_MISSING, VERDICT_NONE);
    ck_assert_uint_eq(result_of(1)->status, ATTEMPT_FAILED_UNPAID);
    ck_assert_uint_eq(job_row(held.job).checking, 1);
    ck_assert_uint_eq(job_row(held.job).accused, 0);
    const uint32_t by = is_sent_to(SECOND) ? SECOND : REFEREE;
    struct exchange_work again = sent_to(by);
    reload();
    (void)answer(by, held.job, again, OUTCOME_INPUT_MISSING, VERDICT_NONE);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_FAILED_PAID);
    ck_assert_uint_eq(result_of(0)->level, CHECK_CHEAP);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
    ck_assert_int_eq(balance(by).available_micro, 0);
    ck_assert_uint_eq(job_row(held.job).checking, 0);
    ck_assert_uint_eq(sent_to(MAKER).index, 0); /* at once: its maker did nothing wrong */
    reload();
}
END_TEST

/* A check that lacks something else says nothing of the product: it is tried again. */
START_TEST(a_lost_factor_of_a_check_is_nobodys_fault_and_the_check_is_tried_again)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    lacks_factor = true;
    struct exchange_work check = held.check;
    uint32_t by = REFEREE;
    for (int i = 0; i < CHECKS_UNSURE; i++) { /* so often a lost product would be made again */
        (void)answer(by, held.job, check, OUTCOME_INPUT_MISSING, VERDICT_NONE);
        ck_assert_uint_eq(result_of(1)->status, ATTEMPT_FAILED_UNPAID);
        ck_assert_uint_eq(job_row(held.job).checking, 1);
        by = is_sent_to(SECOND) ? SECOND : REFEREE;
        check = sent_to(by);
        reload();
    }
    ck_assert_uint_eq(check.index, 1);
    lacks_factor = false; /* it is there again */
    (void)answer(by, held.job, check, OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_ACCEPTED);
    ck_assert_uint_eq(result_of(0)->level, CHECK_CHEAP);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
    ck_assert_uint_eq(job_row(held.job).state, JOB_DONE);
}
END_TEST

START_TEST(a_factor_that_is_lost_for_good_leaves_the_result_paid)
{
    struct held_case held = hold_one();
    struct exchange_work check = held.check;
    lacks_factor = true;
    while (job_row(held.job).state == JOB_OPEN) {
        (void)answer(REFEREE, held.job, check, OUTCOME_INPUT_MISSING, VERDICT_NONE);
        check = is_sent_to(REFEREE) ? sent_to(REFEREE) : check;
    }
    lacks_factor = false;
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_FAILED_PAID);
    ck_assert_uint_eq(result_of(0)->level, CHECK_NONE);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
    ck_assert_int_eq(balance(REFEREE).available_micro, 0);
    ck_assert_uint_eq(job_row(held.job).reason, JOB_REASON_NO_VERDICT);
    reload();
}
END_TEST

/* One who rejects a result and one who does not find it are no two who reject it. */
START_TEST(what_is_accused_and_then_lost_is_paid)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_REJECT);
    ck_assert_uint_eq(job_row(held.job).accused, 1);
    for (int i = 0; i < CHECKS_UNSURE; i++) {
        ck_assert_int_eq(balance(MAKER).available_micro, 0);
        (void)answer(SECOND, held.job, sent_to(SECOND), OUTCOME_INPUT_MISSING, VERDICT_NONE);
    }
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_FAILED_PAID);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
    ck_assert_uint_eq(job_row(held.job).accused, 0);
    reload();
}
END_TEST

START_TEST(a_check_that_fails_for_good_proves_nothing)
{
    struct held_case held = hold_one();
    (void)answer(REFEREE, held.job, held.check, OUTCOME_PROGRAM_FAILED, VERDICT_NONE);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_FAILED_PAID);
    ck_assert_uint_eq(result_of(0)->level, CHECK_NONE);
    ck_assert_uint_eq(job_row(held.job).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(held.job).failed, 2);
    ck_assert_uint_eq(job_row(held.job).reason, JOB_REASON_NO_VERDICT);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
}
END_TEST

START_TEST(who_cancels_pays_for_what_is_held)
{
    struct held_case held = hold_one();
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = held.job;
    apply(&cancel);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_ACCEPTED);
    ck_assert_uint_eq(result_of(0)->level, CHECK_NONE);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
    check_hash();
    reload();
    /* The verdict comes after all, about nothing. */
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_REJECT);
    ck_assert_uint_eq(result_of(1)->status, ATTEMPT_FAILED_PAID);
    ck_assert_uint_eq(job_row(held.job).state, JOB_CANCELLED);
    ck_assert_uint_eq(job_row(held.job).accepted, 1);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
    ck_assert_int_eq(balance(CONSUMER).available_micro, 998 * MICRO_PER_CREDIT);
}
END_TEST

SUITE("checks_undecided", set_up_referees, tear_down,
      TEST(who_is_unsure_makes_room_for_another_and_twice_accuses_nobody),
      TEST(where_nobody_else_is_it_comes_back_to_who_left_it_unsure),
      TEST(what_nobody_can_judge_fails_the_job_by_nobodys_fault),
      TEST(another_referee_goes_before_one_who_was_unsure),
      TEST(a_verdict_of_another_seed_or_none_is_the_referees_fault),
      TEST(what_two_do_not_find_is_paid_and_made_again_without_a_word_against_anybody),
      TEST(a_lost_factor_of_a_check_is_nobodys_fault_and_the_check_is_tried_again),
      TEST(a_factor_that_is_lost_for_good_leaves_the_result_paid),
      TEST(what_is_accused_and_then_lost_is_paid), TEST(a_check_that_fails_for_good_proves_nothing),
      TEST(who_cancels_pays_for_what_is_held))
