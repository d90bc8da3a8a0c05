/* A client says its own word about a result that referees have not settled. */
#include "exchange/policy.h"
#include "exchange/view/disputes.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/held_market.h"
#include "tests/support/suite.h"

#include <check.h>

static struct exchange_command word_of(uint32_t account, struct id128 job, uint8_t verdict)
{
    struct exchange_dispute dispute = {.index = 0};
    (void)exchange_disputes(market.exchange, &job, 0, &dispute, 1, NULL);
    struct exchange_command judge = command(EXCHANGE_JUDGE, account);
    judge.body = (struct hash32){{77, verdict}};
    judge.judge = (struct exchange_judge){.job = job,
                                          .index = dispute.index,
                                          .attempt = dispute.attempt,
                                          .result = dispute.result,
                                          .seed = dispute.seed,
                                          .verdict = verdict};
    return judge;
}

START_TEST(with_one_referee_the_client_confirms_or_overrules)
{
    struct held_case held = hold_one();
    offer(NO_REFEREE, 1, price);
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_REJECT);
    struct exchange_command word = word_of(CONSUMER, held.job, VERDICT_REJECT);
    apply(&word);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_REFUTED);
    ck_assert_uint_eq(result_of(0)->level, CHECK_CLIENT);
    ck_assert(hash32_equal(&result_of(0)->check, &word.body));
    const struct exchange_work again = sent_to(NO_REFEREE);
    ck_assert_uint_eq(again.index, 0);
    check_hash();
    reload();
    done(NO_REFEREE, held.job, again);
    (void)answer(REFEREE, held.job, sent_to(REFEREE), OUTCOME_OK, VERDICT_REJECT);
    word = word_of(CONSUMER, held.job, VERDICT_ACCEPT);
    apply(&word);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_ACCEPTED);
    ck_assert_uint_eq(result_of(0)->level, CHECK_CLIENT);
    ck_assert_uint_eq(job_row(held.job).state, JOB_DONE);
    ck_assert_uint_eq(exchange_standing(market.exchange, REFEREE).overruled, 1);
    ck_assert_int_eq(balance(NO_REFEREE).available_micro, MICRO_PER_CREDIT);
    ck_assert_int_eq(balance(MAKER).available_micro, 0);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
    check_hash();
    reload();
}
END_TEST

START_TEST(a_client_alone_refutes_nothing)
{
    offer(MAKER, 1, price);
    struct id128 job = submit_checked(2);
    make_all(job, 2);
    offer(REFEREE, 1, price);
    const struct exchange_work check = sent_to(REFEREE);
    (void)answer(REFEREE, job, check, OUTCOME_OK, VERDICT_REJECT);
    const struct exchange_work other = sent_to(REFEREE);
    struct exchange_command word = word_of(CONSUMER, job, VERDICT_ACCEPT);
    apply(&word);
    (void)answer(REFEREE, job, other, OUTCOME_CANCELLED, VERDICT_NONE);
    ck_assert(!is_sent_to(REFEREE)); /* it was overruled */
    word = word_of(CONSUMER, job, VERDICT_REJECT);
    apply(&word); /* nobody has accused this one: it is paid, and made again */
    ck_assert_uint_eq(result_of(word.judge.index)->status, ATTEMPT_FAILED_PAID);
    ck_assert_uint_eq(exchange_standing(market.exchange, MAKER).refuted, 0);
    ck_assert_int_eq(balance(MAKER).available_micro, 2 * MICRO_PER_CREDIT);
}
END_TEST

START_TEST(a_referee_of_the_clients_owner_needs_another_one)
{
    struct held_case held = hold_one();
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_REJECT);
    group("lab", 2, (const uint8_t[]){1, 3}); /* CONSUMER and REFEREE */
    struct exchange_command word = word_of(CONSUMER, held.job, VERDICT_REJECT);
    apply(&word);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_FAILED_PAID);
}
END_TEST

START_TEST(a_client_accepts_while_a_referee_is_at_it)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_REJECT);
    const struct exchange_work second = sent_to(SECOND);
    struct exchange_command word = word_of(CONSUMER, held.job, VERDICT_ACCEPT);
    apply(&word);
    ck_assert_uint_eq(count_of(EFFECT_WITHDRAW), 1);
    (void)answer(SECOND, held.job, second, OUTCOME_OK, VERDICT_REJECT);
    ck_assert_uint_eq(result_of(1)->status, ATTEMPT_LATE);
    ck_assert_uint_eq(job_row(held.job).state, JOB_DONE);
}
END_TEST

START_TEST(a_word_about_anything_else_is_refused)
{
    struct held_case held = hold_one();
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_REJECT);
    struct exchange_command word;
#define REFUSED(code, change)                                                                      \
    word = word_of(CONSUMER, held.job, VERDICT_REJECT);                                            \
    change;                                                                                        \
    apply(&word);                                                                                  \
    check_rejected(code)
    REFUSED(REJECT_NOT_FOUND, word.account = MAKER);
    REFUSED(REJECT_NOT_FOUND, word.judge.job.bytes[0] ^= 1);
    REFUSED(REJECT_STATE, word.judge.index = 1);
    REFUSED(REJECT_STATE, word.judge.index = 7);
    REFUSED(REJECT_STATE, word.judge.attempt++);
    REFUSED(REJECT_STATE, word.judge.result.bytes[0] ^= 1);
    REFUSED(REJECT_VERIFY, word.judge.seed.bytes[0] ^= 1);
    REFUSED(REJECT_VERIFY, word.judge.verdict = VERDICT_NONE);
#undef REFUSED
    ck_assert_uint_eq(job_row(held.job).checking, 1);
    ck_assert_uint_eq(job_row(held.job).accused, 1);
}
END_TEST

START_TEST(where_all_who_could_make_it_have_judged_it_the_job_ends_with_a_reason)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    refute(&held, SECOND);
    ck_assert_uint_eq(job_row(held.job).state, JOB_OPEN);
    presence(EXCHANGE_GOODBYE, MAKER);
    reload();
    market.now_ns += NOBODY_LEFT_NS;
    tick();
    ck_assert_uint_eq(job_row(held.job).state, JOB_FAILED);
    ck_assert_uint_eq(job_row(held.job).reason, JOB_REASON_NO_MAKER);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

START_TEST(who_was_refuted_may_make_it_again_where_nobody_else_is)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    refute(&held, SECOND);
    ck_assert(!is_sent_to(MAKER) && !is_sent_to(REFEREE) && !is_sent_to(SECOND));
    market.now_ns += REFUTED_NS;
    tick();
    ck_assert_uint_eq(sent_to(MAKER).index, 0);
}
END_TEST

SUITE("checks_word", set_up_referees, tear_down,
      TEST(with_one_referee_the_client_confirms_or_overrules), TEST(a_client_alone_refutes_nothing),
      TEST(a_referee_of_the_clients_owner_needs_another_one),
      TEST(a_client_accepts_while_a_referee_is_at_it), TEST(a_word_about_anything_else_is_refused),
      TEST(where_all_who_could_make_it_have_judged_it_the_job_ends_with_a_reason),
      TEST(who_was_refuted_may_make_it_again_where_nobody_else_is))
