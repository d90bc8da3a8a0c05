/* Referees of one result: what they say is missing counts only where the broker lacks it, and who
 * judged the result is told apart from who made it. */
#include "tests/support/hand_market.h"

#include "base/checked.h"
#include "exchange/policy.h"
#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

enum { MAKER = 4, REFEREE = 5, SECOND = 6 };

static struct id128 job;
static struct exchange_work work; /* the last that was sent to anybody */
static uint32_t worker;
static uint8_t next_hash;

static void begin(void)
{
    const struct exchange_limits limits = exchange_limits_default();
    const uint32_t referee = ROLE_PROVIDER | ROLE_REFEREE;
    const struct exchange_genesis_account accounts[] = {
        {.key = {{1}}, .roles = ROLE_CONSUMER, .credits_micro = 1000 * MICRO_PER_CREDIT},
        {.key = {{2}}, .roles = ROLE_PROVIDER},
        {.key = {{3}}, .roles = referee},
        {.key = {{4}}, .roles = referee},
    };
    open_market_of(&limits, 10 * price, accounts, sizeof accounts / sizeof *accounts);
}

/* Somebody is sent work by the last command. */
static void receive(void)
{
    ck_assert_uint_eq(count_of(EFFECT_DISPATCH), 1);
    worker = nth(EFFECT_DISPATCH, 0)->account;
    work = nth(EFFECT_DISPATCH, 0)->work;
}

static void answer(uint8_t outcome, uint8_t verdict)
{
    struct exchange_result one = {.job = job,
                                  .index = work.index,
                                  .attempt = work.attempt,
                                  .lease = work.lease,
                                  .device = {{(uint8_t)worker}},
                                  .manifest = {{9}},
                                  .outcome = outcome,
                                  .busy_ns = NS_PER_S,
                                  .hash = {{++next_hash, 1}},
                                  .given = (const uint8_t *)"left",
                                  .given_length = 4,
                                  .verdict = verdict,
                                  .seed = work.seed};
    struct exchange_command made = command(EXCHANGE_RESULTS, worker);
    made.results =
        (struct exchange_results){.results = &one, .count = 1, .dice = (struct hash32){{5, 7}}};
    market.now_ns += NS_PER_S;
    made.log_time_ns = market.now_ns;
    apply(&made);
    check_hash();
}

/* One result of MAKER is held, and its check was sent to a referee. */
static void hold_one(void)
{
    static uint32_t counts[] = {0, 1}, after[] = {0};
    const struct exchange_graph graph = {
        .after_count = counts, .after_count_count = 2, .after = after, .after_length = 1};
    offer(MAKER, 1, price);
    struct exchange_command made = submit_of(2, 500);
    const struct exchange_part checks = {.subtasks = 1,
                                         .needs = &anything,
                                         .slots = 1,
                                         .cap_micro = made.submit.cap_micro,
                                         .limit_ns = made.submit.limit_ns,
                                         .term_ns = made.submit.term_ns};
    made.submit.graph = &graph;
    made.submit.parts = &checks;
    made.submit.part_count = 1;
    made.submit.verify = EXCHANGE_VERIFY_CHEAP;
    apply(&made);
    job = made.id;
    receive();
    ck_assert_uint_eq(worker, MAKER);
    offer(REFEREE, 1, price);
    offer(SECOND, 1, price);
    answer(OUTCOME_OK, VERDICT_NONE);
    receive();
    ck_assert_uint_eq(work.index, 1);
}

START_TEST(a_referee_who_says_that_a_stored_product_is_missing_proves_nothing)
{
    hold_one();
    uint32_t said_by = 0;
    for (int i = 0; i < CHECKS_UNSURE; i++) { /* so often a lost product would be made again */
        ck_assert_uint_ne(worker, said_by);   /* another referee went first */
        said_by = worker;
        answer(OUTCOME_INPUT_MISSING, VERDICT_NONE);
        ck_assert_uint_eq(record_of(LEDGER_RESULT)->status, ATTEMPT_FAILED_UNPAID);
        ck_assert_uint_eq(record_of(LEDGER_RESULT)->index, 1);
        ck_assert_uint_eq(job_row(job).checking, 1);
        if (count_of(EFFECT_DISPATCH) == 0) { /* both failed the job a moment ago */
            market.now_ns += AVOID_NS;
            tick();
        }
        receive();
        reload();
    }
    answer(OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
}
END_TEST

START_TEST(who_judged_what_waits_is_told_apart_from_who_made_it)
{
    hold_one();
    answer(OUTCOME_OK, VERDICT_REJECT);
    receive();
    answer(OUTCOME_OK, VERDICT_REJECT);
    presence(EXCHANGE_GOODBYE, MAKER);
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &job, 0, &why));
    ck_assert_uint_eq(why.affordable, 2);
    ck_assert_uint_eq(why.judges, 2);
    ck_assert_uint_eq(why.own, 0);
    ck_assert_uint_eq(why.free, 0);
}
END_TEST

SUITE("missing_products", begin, tear_down,
      TEST(a_referee_who_says_that_a_stored_product_is_missing_proves_nothing),
      TEST(who_judged_what_waits_is_told_apart_from_who_made_it))
