/* A provider that judged a result never makes it. */
#include "exchange/policy.h"
#include "exchange/work/juries.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/held_market.h"
#include "tests/support/suite.h"

#include <check.h>

enum { MADE_FIRST = 4, REFUTED = MADE_FIRST }; /* products that are accepted, and the next */

/* Whoever was sent a check says so. Returns who that is. */
static uint32_t judge_now(struct id128 job, uint8_t verdict)
{
    const uint32_t by = is_sent_to(SECOND) ? SECOND : REFEREE;
    const struct exchange_work check = sent_to(by);
    ck_assert_uint_gt(check.index, REFUTED);
    (void)answer(by, job, check, OUTCOME_OK, verdict);
    return by;
}

/* MAKER makes five products at once, and THIRD, NO_REFEREE and REFEREE one each, which take long.
 * Four of MAKER are accepted, as 4 s of work each, so that it is known what takes too long. The
 * fifth is refuted by REFEREE and SECOND. SECOND asks too much for a product. */
struct refuted_case {
    struct id128 job;
    struct exchange_work of_referee, of_third, of_other;
};
static struct refuted_case refute_one_of_many(bool has_third, bool has_other)
{
    const uint32_t results = REFUTED + 2U + has_third + has_other;
    struct refuted_case made = {0};
    struct exchange_work works[MOST];
    step_ns = NS_PER_S / 4;
    busy_ns = 4 * NS_PER_S;
    offer(MAKER, REFUTED + 1, price / 8);
    struct exchange_command submit = checked_of(results, 900);
    submit.submit.term_ns = 60 * NS_PER_S;
    shape.checks.cap_micro = 2 * price;
    apply(&submit);
    made.job = submit.id;
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), REFUTED + 1);
    for (uint32_t i = 0; i <= REFUTED; i++) {
        works[i] = nth(EFFECT_DISPATCH, i)->work;
    }
    if (has_third) {
        offer(THIRD, 1, price);
        made.of_third = sent_to(THIRD);
    }
    if (has_other) {
        offer(NO_REFEREE, 1, price);
        made.of_other = sent_to(NO_REFEREE);
    }
    offer(REFEREE, 2, price);
    made.of_referee = sent_to(REFEREE);
    offer(SECOND, 1, 3 * price / 2);
    ck_assert_uint_eq(job_row(made.job).waiting, results); /* checks, of what is not made yet */
    for (uint32_t i = 0; i < MADE_FIRST; i++) {
        done(MAKER, made.job, works[i]);
        (void)judge_now(made.job, VERDICT_ACCEPT);
    }
    done(MAKER, made.job, works[REFUTED]);
    const uint32_t first = judge_now(made.job, VERDICT_REJECT);
    ck_assert_uint_ne(judge_now(made.job, VERDICT_REJECT), first);
    ck_assert_uint_eq(result_of(REFUTED)->status, ATTEMPT_REFUTED);
    return made;
}

/* Ends what REFEREE makes: SECOND accepts it. */
static void end_of_referee(const struct refuted_case *made)
{
    done(REFEREE, made->job, made->of_referee);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 0);
    ck_assert_uint_eq(judge_now(made->job, VERDICT_ACCEPT), SECOND);
}

START_TEST(an_idle_judge_starts_no_second_copy_of_what_it_judged)
{
    const struct refuted_case made = refute_one_of_many(false, false);
    offer(NO_REFEREE, 1, price);
    const struct exchange_work again = sent_to(NO_REFEREE);
    ck_assert_uint_eq(again.index, REFUTED);
    end_of_referee(&made);
    for (int i = 0; i < 18; i++) { /* its lane is idle, and the other takes long */
        market.now_ns += NS_PER_S / 2;
        tick();
        ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 0);
        check_choice(made.job);
    }
    done(NO_REFEREE, made.job, again);
    (void)judge_now(made.job, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(made.job).state, JOB_DONE);
}
END_TEST

START_TEST(an_idle_lane_of_who_has_not_judged_starts_the_copy)
{
    const struct refuted_case made = refute_one_of_many(true, true);
    const struct exchange_work again = sent_to(THIRD);
    ck_assert_uint_eq(again.index, REFUTED);
    done(THIRD, made.job, made.of_third);
    (void)judge_now(made.job, VERDICT_ACCEPT);
    end_of_referee(&made); /* the judge is idle first */
    done(NO_REFEREE, made.job, made.of_other);
    (void)judge_now(made.job, VERDICT_ACCEPT);
    bool is_copied = false;
    for (int i = 0; i < 18 && !is_copied; i++) {
        market.now_ns += NS_PER_S / 2;
        tick();
        ck_assert(!is_sent_to(REFEREE) && !is_sent_to(SECOND));
        is_copied = is_sent_to(NO_REFEREE);
    }
    ck_assert(is_copied);
    ck_assert_uint_eq(sent_to(NO_REFEREE).index, REFUTED);
    done(NO_REFEREE, made.job, sent_to(NO_REFEREE));
    ck_assert_uint_eq(job_row(made.job).checking, 1);
}
END_TEST

START_TEST(an_idle_judge_takes_nothing_over_that_it_judged)
{
    const struct refuted_case made = refute_one_of_many(false, true);
    ck_assert_uint_eq(sent_to(NO_REFEREE).index, REFUTED);
    ck_assert_uint_eq(job_row(made.job).queued, 1); /* behind what NO_REFEREE runs */
    end_of_referee(&made);
    for (int i = 0; i < 10; i++) { /* a copy of what is late it may have */
        market.now_ns += NS_PER_S / 2;
        tick();
        ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 0);
        ck_assert(!is_sent_to(REFEREE) || sent_to(REFEREE).index == made.of_other.index);
    }
}
END_TEST

START_TEST(what_failed_after_a_look_is_looked_at_again)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    refute(&held, SECOND);
    presence(EXCHANGE_GOODBYE, MAKER);
    market.now_ns += NOBODY_LEFT_NS - NS_PER_S;
    offer(NO_REFEREE, 1, price);
    ck_assert_uint_eq(sent_to(NO_REFEREE).index, 0);
    market.now_ns += 2 * NS_PER_S;
    tick(); /* the look would have come by now */
    reload();
    presence(EXCHANGE_GOODBYE, NO_REFEREE);
    ck_assert_uint_eq(job_row(held.job).running, 0);
    reload();
    market.now_ns += NOBODY_LEFT_NS - 1;
    tick();
    ck_assert_uint_eq(job_row(held.job).state, JOB_OPEN);
    market.now_ns++;
    tick();
    ck_assert_uint_eq(job_row(held.job).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(held.job).reason, JOB_REASON_NO_MAKER);
}
END_TEST

START_TEST(what_earlier_rules_left_without_a_look_is_looked_at)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    refute(&held, SECOND);
    presence(EXCHANGE_GOODBYE, MAKER);
    const struct job *job = table_find(&market.exchange->jobs, &held.job);
    struct jury *jury = job->checks->juries[0];
    jury_forget_look(market.exchange, jury); /* as rules 18 did */
    struct exchange_command limits = command(EXCHANGE_LIMITS, EXCHANGE_NO_ACCOUNT);
    limits.set_limits = (struct exchange_set_limits){
        .rules = EXCHANGE_RULES, .limits = exchange_limits_now(market.exchange)};
    apply(&limits);
    reload();
    market.now_ns += NOBODY_LEFT_NS;
    tick();
    ck_assert_uint_eq(job_row(held.job).reason, JOB_REASON_NO_MAKER);
}
END_TEST

START_TEST(what_a_judges_owner_was_sent_is_not_sent_again)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    refute(&held, SECOND);
    presence(EXCHANGE_GOODBYE, MAKER);
    offer(NO_REFEREE, 1, price);
    ck_assert_uint_eq(sent_to(NO_REFEREE).index, 0);
    group("lab", 2, (const uint8_t[]){3, 6}); /* REFEREE and NO_REFEREE */
    struct exchange_command statement = command(EXCHANGE_STATEMENT, NO_REFEREE);
    statement.statement = (struct exchange_statement){NULL, 0, market.now_ns}; /* it never came */
    apply(&statement);
    check_hash();
    check_choice(held.job);
    ck_assert(!is_sent_to(NO_REFEREE));
    ck_assert_uint_eq(job_row(held.job).running, 0);
    reload();
    offer(THIRD, 1, price);
    ck_assert_uint_eq(sent_to(THIRD).index, 0);
}
END_TEST

/* The referee rejects so many results, as it is sent their checks from the last command on. */
static void reject_all(struct id128 job, uint32_t referee, uint32_t results)
{
    struct exchange_work sent[MOST];
    uint32_t count = 0;
    for (uint32_t i = 0; i < results; i++) {
        for (size_t k = 0; k < market.effects.count; k++) {
            const struct exchange_effect *effect = &market.effects.items[k];
            if (effect->type == EFFECT_DISPATCH && effect->account == referee) {
                ck_assert_uint_lt(count, MOST);
                sent[count++] = effect->work;
            }
        }
        ck_assert_uint_lt(i, count);
        (void)answer(referee, job, sent[i], OUTCOME_OK, VERDICT_REJECT);
    }
}

/* REFEREE and SECOND refute all results but the last, which REFEREE and THIRD refute. While they
 * judge, they ask too much for a product. */
START_TEST(a_judge_is_told_from_what_it_judged_however_much_of_that_waits)
{
    enum { RESULTS = 24, TIMES = 10 };
    step_ns = NS_PER_S / 4;
    offer(MAKER, 1, price / 4);
    struct exchange_command submit = checked_of(RESULTS, 900);
    submit.submit.retries = TIMES;
    shape.checks.cap_micro = 2 * price;
    apply(&submit);
    const struct id128 job = submit.id;
    make_all(job, RESULTS);
    presence(EXCHANGE_GOODBYE, MAKER);
    offer(REFEREE, 1, 3 * price / 2);
    reject_all(job, REFEREE, RESULTS);
    presence(EXCHANGE_GOODBYE, REFEREE);
    offer(SECOND, 1, 3 * price / 2);
    reject_all(job, SECOND, RESULTS - 1);
    presence(EXCHANGE_GOODBYE, SECOND);
    offer(THIRD, 1, 3 * price / 2);
    reject_all(job, THIRD, 1);
    presence(EXCHANGE_GOODBYE, THIRD);
    ck_assert_uint_eq(job_row(job).checking, 0);
    reload();
    check_choice(job);
    const uint64_t before = exchange_totals(market.exchange).retries;
    market.now_ns += AVOID_NS;
    offer(SECOND, 1, price);
    for (int i = 0; i < TIMES; i++) { /* SECOND may make the last alone, and its program fails */
        ck_assert_uint_eq(sent_to(SECOND).index, RESULTS - 1);
        (void)answer(SECOND, job, sent_to(SECOND), OUTCOME_PROGRAM_FAILED, VERDICT_NONE);
    }
    ck_assert_uint_le(exchange_totals(market.exchange).retries - before, RESULTS + 2 * TIMES);
}
END_TEST

SUITE("checks_judges", set_up_referees, tear_down,
      TEST(an_idle_judge_starts_no_second_copy_of_what_it_judged),
      TEST(an_idle_lane_of_who_has_not_judged_starts_the_copy),
      TEST(an_idle_judge_takes_nothing_over_that_it_judged),
      TEST(what_failed_after_a_look_is_looked_at_again),
      TEST(what_earlier_rules_left_without_a_look_is_looked_at),
      TEST(what_a_judges_owner_was_sent_is_not_sent_again),
      TEST(a_judge_is_told_from_what_it_judged_however_much_of_that_waits))
