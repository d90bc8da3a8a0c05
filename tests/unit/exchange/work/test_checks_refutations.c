/* Refuted results count against their account, and close its asks. */
#include "exchange/account/standing.h"
#include "exchange/policy.h"
#include "exchange/view/why.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/held_market.h"
#include "tests/support/suite.h"

#include <check.h>

/* Three referees and a liar: so many results of MAKER are refuted, each of a job of its own. */
static void refute_one(void)
{
    struct id128 job = submit_checked(1);
    done(MAKER, job, sent_to(MAKER));
    for (int i = 0; i < 2; i++) {
        const uint32_t by = is_sent_to(REFEREE) ? REFEREE : SECOND;
        (void)answer(by, job, sent_to(by), OUTCOME_OK, VERDICT_REJECT);
    }
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = job;
    apply(&cancel);
}

static void offer_a_liar_and_two_referees(void)
{
    offer(MAKER, 1, price / 2);
    offer(REFEREE, 1, price);
    offer(SECOND, 1, price);
}

START_TEST(refutations_close_the_asks_of_their_account_for_longer_each_time)
{
    offer_a_liar_and_two_referees();
    refute_one();
    ck_assert_int_eq(exchange_standing(market.exchange, MAKER).withdrawn_ns, 0);
    int64_t expected_ns = WITHDRAWN_LEAST_NS;
    for (uint32_t count = 2; count <= 14; count++) {
        refute_one();
        struct exchange_standing standing = exchange_standing(market.exchange, MAKER);
        ck_assert_uint_eq(standing.refuted, count);
        ck_assert_int_gt(standing.withdrawn_ns, expected_ns - 10 * NS_PER_S);
        ck_assert_int_le(standing.withdrawn_ns, expected_ns);
        struct id128 other = submit(1, 100);
        ck_assert(!is_sent_to(MAKER)); /* though it asks least */
        struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
        cancel.cancel_job.job = other;
        apply(&cancel);
        reload();
        market.now_ns += standing.withdrawn_ns;
        tick();
        market.now_ns += REFUTED_NS;
        tick();
        ck_assert_int_eq(exchange_standing(market.exchange, MAKER).withdrawn_ns, 0);
        expected_ns = 2 * expected_ns < WITHDRAWN_MOST_NS ? 2 * expected_ns : WITHDRAWN_MOST_NS;
    }
}
END_TEST

START_TEST(closed_asks_come_back_by_themselves)
{
    offer_a_liar_and_two_referees();
    refute_one();
    refute_one();
    presence(EXCHANGE_GOODBYE, REFEREE);
    presence(EXCHANGE_GOODBYE, SECOND);
    struct id128 job = submit(1, 100);
    ck_assert(!is_sent_to(MAKER));
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &job, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.withdrawn, 1);
    ck_assert_int_gt(why.opens_ns, 0);
    struct exchange_why seen;
    ck_assert_int_eq(exchange_explain_ask(market.exchange, MAKER, 0, &seen), WHY_OK);
    ck_assert_uint_eq(seen.refuted, 2);
    ck_assert_int_gt(seen.withdrawn_ns, 0);
    offer(MAKER, 1, price / 2); /* a new ask is closed like the old one */
    ck_assert(!is_sent_to(MAKER));
    reload();
    market.now_ns += WITHDRAWN_LEAST_NS;
    tick();
    ck_assert_uint_eq(sent_to(MAKER).index, 0);
}
END_TEST

START_TEST(work_that_checks_accept_makes_the_count_fade)
{
    offer_a_liar_and_two_referees();
    refute_one();
    ck_assert_uint_eq(exchange_standing(market.exchange, MAKER).refuted, 1);
    account_proved(market.exchange, MAKER, REFUTED_FADES_NS - 1);
    ck_assert_uint_eq(exchange_standing(market.exchange, MAKER).refuted, 1);
    market.now_ns += REFUTED_NS;
    tick();
    struct id128 job = submit_checked(1);
    done(MAKER, job, sent_to(MAKER));
    const uint32_t by = is_sent_to(REFEREE) ? REFEREE : SECOND;
    (void)answer(by, job, sent_to(by), OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(exchange_standing(market.exchange, MAKER).refuted, 0);
    ck_assert_uint_eq(exchange_standing(market.exchange, MAKER).refuted_ever, 1);
    check_hash();
    reload();
}
END_TEST

START_TEST(who_was_refuted_is_told_apart_from_who_merely_failed)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    refute(&held, SECOND);
    presence(EXCHANGE_GOODBYE, REFEREE); /* only the one who was refuted is there */
    presence(EXCHANGE_GOODBYE, SECOND);
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &held.job, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.avoided, 1);
    ck_assert_int_eq(why.avoided_ns, 60 * NS_PER_S);
}
END_TEST

START_TEST(too_many_refuted_results_fail_the_subtask)
{
    offer(MAKER, 1, price);
    struct exchange_command made = checked_of(1, 500);
    made.submit.crash_limit = 0;
    apply(&made);
    struct exchange_work work = sent_to(MAKER);
    offer(REFEREE, 1, price);
    offer(SECOND, 1, price);
    done(MAKER, made.id, work);
    for (int i = 0; i < 2; i++) {
        const uint32_t by = is_sent_to(REFEREE) ? REFEREE : SECOND;
        (void)answer(by, made.id, sent_to(by), OUTCOME_OK, VERDICT_REJECT);
    }
    ck_assert_uint_eq(job_row(made.id).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(made.id).failed, 1);
    ck_assert_uint_eq(job_row(made.id).cancelled, 1);
    ck_assert_uint_eq(job_row(made.id).reason, JOB_REASON_PROVIDERS_FAILED);
    ck_assert_int_eq(balance(CONSUMER).available_micro, 998 * MICRO_PER_CREDIT);
}
END_TEST

SUITE("checks_refutations", set_up_referees, tear_down,
      TEST(refutations_close_the_asks_of_their_account_for_longer_each_time),
      TEST(closed_asks_come_back_by_themselves), TEST(work_that_checks_accept_makes_the_count_fade),
      TEST(who_was_refuted_is_told_apart_from_who_merely_failed),
      TEST(too_many_refuted_results_fail_the_subtask))
