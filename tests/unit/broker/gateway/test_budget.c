/* The tests ask what a session and an account may cost: the price of a dear answer must be earned
 * before the next. */
#include "broker/gateway/budget.h"

#include "base/checked.h"
#include "exchange/exchange.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { STEPS = 1000000 };
static const int64_t saved = (int64_t)STEPS * BUDGET_SAVED_MS / 1000;
static const struct budget_asker reader = {.account = 7, .session = 70, .kind = BUDGET_READS};
static const struct budget_asker trader = {.account = 7, .session = 70, .kind = BUDGET_COMMANDS};

static struct budget *budget;
static struct budget_refusal refusal;

static void set_up(void)
{
    budget = budget_create(STEPS);
    ck_assert_ptr_nonnull(budget);
}

static void tear_down(void)
{
    budget_destroy(&budget);
    ck_assert_ptr_null(budget);
}

START_TEST(a_dear_answer_is_given_and_the_next_one_waits)
{
    ck_assert_int_eq(budget_allows(budget, &reader, 0, &refusal), BUDGET_NOW);
    budget_charge(budget, &reader, saved + STEPS, 0); /* a second behind */
    ck_assert_int_eq(budget_allows(budget, &reader, 0, &refusal), BUDGET_LATER);
    ck_assert(!budget_resumes(budget, &reader, NS_PER_S));
    ck_assert(budget_resumes(budget, &reader, NS_PER_S + NS_PER_MS));
}
END_TEST

START_TEST(no_more_is_saved_than_a_moments_worth)
{
    budget_charge(budget, &reader, saved, 0);
    ck_assert_int_eq(budget_allows(budget, &reader, 1000 * NS_PER_S, &refusal), BUDGET_NOW);
    budget_charge(budget, &reader, saved, 1000 * NS_PER_S);
    ck_assert_int_eq(budget_allows(budget, &reader, 1000 * NS_PER_S, &refusal), BUDGET_LATER);
}
END_TEST

START_TEST(small_waits_add_up)
{
    budget_charge(budget, &reader, saved + 10, 0);
    ck_assert_int_eq(budget_allows(budget, &reader, 0, &refusal), BUDGET_LATER);
    bool resumes = false;
    for (int64_t now_ns = 0; now_ns <= 12000 && !resumes; now_ns += 100) {
        resumes = budget_resumes(budget, &reader, now_ns);
        ck_assert(!resumes || now_ns > 10000);
    }
    ck_assert(resumes);
}
END_TEST

START_TEST(a_few_of_a_session_wait_and_the_rest_is_refused)
{
    budget_charge(budget, &reader, 2 * saved, 0);
    for (int i = 0; i < BUDGET_WAITING; i++) {
        ck_assert(budget_admits(budget, &reader, 0));
        ck_assert_int_eq(budget_allows(budget, &reader, 0, &refusal), BUDGET_LATER);
    }
    ck_assert(!budget_admits(budget, &reader, 1));
    refusal = budget_refuse(budget, &reader, 1);
    ck_assert(refusal.is_told);
    ck_assert_str_eq(refusal.field, "steps_per_second");
    ck_assert_int_eq(refusal.limit, STEPS);
    ck_assert_int_eq(refusal.value, STEPS + saved + 1);
    ck_assert_int_eq(budget_allows(budget, &reader, 2, &refusal), BUDGET_REFUSED);
    ck_assert(!refusal.is_told); /* once a second */
    budget_forgets(budget, &reader);
    ck_assert(budget_admits(budget, &reader, 3));
}
END_TEST

START_TEST(the_sessions_of_an_account_share_what_it_has)
{
    for (uint64_t session = 1; session <= BUDGET_READS_SESSIONS; session++) {
        const struct budget_asker one = {.account = 7, .session = session, .kind = BUDGET_READS};
        budget_charge(budget, &one, saved, 0);
    }
    ck_assert_int_eq(budget_allows(budget, &reader, 0, &refusal), BUDGET_LATER);
    const struct budget_asker other = {.account = 8, .session = 80, .kind = BUDGET_READS};
    ck_assert_int_eq(budget_allows(budget, &other, 0, &refusal), BUDGET_NOW);
    for (uint32_t i = 1; i < BUDGET_WAITING_ACCOUNT; i++) {
        const struct budget_asker one = {.account = 7, .session = 100 + i, .kind = BUDGET_READS};
        ck_assert_int_eq(budget_allows(budget, &one, 0, &refusal), BUDGET_LATER);
    }
    const struct budget_asker last = {.account = 7, .session = 99, .kind = BUDGET_READS};
    ck_assert_int_eq(budget_allows(budget, &last, 0, &refusal), BUDGET_REFUSED);
    ck_assert_str_eq(refusal.field, "account_steps_per_second");
    ck_assert_int_eq(refusal.limit, (int64_t)STEPS * BUDGET_READS_SESSIONS);
}
END_TEST

START_TEST(reads_do_not_keep_a_member_from_trading)
{
    budget_charge(budget, &reader, 100 * saved, 0);
    ck_assert(budget_admits(budget, &trader, 0));
    budget_charge(budget, &trader, (int64_t)BUDGET_COMMANDS_RATE * STEPS * BUDGET_SAVED_MS / 1000,
                  0);
    ck_assert(!budget_admits(budget, &trader, 0)); /* a command never waits */
}
END_TEST

START_TEST(what_was_taken_too_much_is_given_back)
{
    budget_charge(budget, &reader, BUDGET_LEDGER_STEPS, 0);
    budget_charge(budget, &reader, 100 - (int64_t)BUDGET_LEDGER_STEPS, 0);
    budget_charge(budget, &reader, saved - 101, 0);
    ck_assert_int_eq(budget_allows(budget, &reader, 0, &refusal), BUDGET_NOW);
    budget_charge(budget, &reader, 1, 0);
    ck_assert_int_eq(budget_allows(budget, &reader, 0, &refusal), BUDGET_LATER);
}
END_TEST

START_TEST(strangers_are_one_account)
{
    for (uint64_t session = 1; session <= BUDGET_READS_SESSIONS; session++) {
        const struct budget_asker one = {
            .account = EXCHANGE_NO_ACCOUNT, .session = session, .kind = BUDGET_READS};
        budget_charge(budget, &one, saved, 0);
    }
    const struct budget_asker stranger = {
        .account = EXCHANGE_NO_ACCOUNT, .session = 9, .kind = BUDGET_READS};
    ck_assert_int_eq(budget_allows(budget, &stranger, 0, &refusal), BUDGET_LATER);
    ck_assert_int_eq(budget_allows(budget, &reader, 0, &refusal), BUDGET_NOW);
}
END_TEST

START_TEST(another_rate_counts_from_now_on)
{
    budget_charge(budget, &reader, saved + STEPS, 0); /* a second behind */
    budget_set_steps(budget, 10 * STEPS);
    ck_assert_int_eq(budget_allows(budget, &reader, 0, &refusal), BUDGET_LATER); /* owed still */
    ck_assert(!budget_resumes(budget, &reader, NS_PER_S / 20));
    ck_assert(budget_resumes(budget, &reader, NS_PER_S / 10 + NS_PER_MS));
}
END_TEST

START_TEST(no_charge_runs_over)
{
    for (int i = 0; i < 100; i++) {
        budget_charge(budget, &reader, INT64_MAX, 0);
    }
    ck_assert_int_eq(budget_allows(budget, &reader, INT64_MAX / 2, &refusal), BUDGET_LATER);
}
END_TEST

START_TEST(bytes_of_answers_and_commands_are_charged)
{
    ck_assert_int_eq(budget_of_answer(0, 0), BUDGET_ANSWER_STEPS);
    ck_assert_int_eq(budget_of_answer(500, 1000),
                     BUDGET_ANSWER_STEPS + 500 + 1000 / BUDGET_BYTES_PER_STEP);
    ck_assert_int_eq(budget_of_command(1 << 20),
                     BUDGET_COMMAND_STEPS + (1 << 20) / BUDGET_STORED_PER_STEP);
    ck_assert_int_eq(budget_of_results(1 << 20),
                     BUDGET_RESULTS_STEPS + (1 << 20) / BUDGET_RESULTS_PER_STEP);
    ck_assert_int_lt(budget_of_results(0), budget_of_command(0)); /* refused ones pay the rest */
}
END_TEST

SUITE("budget", set_up, tear_down, TEST(a_dear_answer_is_given_and_the_next_one_waits),
      TEST(no_more_is_saved_than_a_moments_worth), TEST(small_waits_add_up),
      TEST(a_few_of_a_session_wait_and_the_rest_is_refused),
      TEST(the_sessions_of_an_account_share_what_it_has),
      TEST(reads_do_not_keep_a_member_from_trading), TEST(what_was_taken_too_much_is_given_back),
      TEST(strangers_are_one_account), TEST(another_rate_counts_from_now_on),
      TEST(no_charge_runs_over), TEST(bytes_of_answers_and_commands_are_charged))
