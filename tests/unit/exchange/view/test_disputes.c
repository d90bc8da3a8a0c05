/* Disputes: which held results a client may have to judge, and what it costs to say so. */
#include "exchange/view/disputes.h"

#include "base/checked.h"
#include "protocol/message.h"
#include "tests/support/disputes_model.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAKER = PROVIDER,
    REFEREE = OTHER_PROVIDER,
    SECOND = 7,
    THIRD = 8,
    CROWD_FIRST = 9, /* providers without the role of a referee */
    CROWD_MOST = 200,
    RESULTS_MOST = 5000,
};
static const struct hash32 manifest = {{9}};

static void set_up_crowd(void)
{
    static struct exchange_genesis_account accounts[CROWD_FIRST - CONSUMER + CROWD_MOST];
    const uint32_t count = sizeof accounts / sizeof accounts[0];
    struct exchange_limits limits = exchange_limits_default();
    memset(accounts, 0, sizeof accounts);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t number = CONSUMER + i;
        accounts[i].key.bytes[0] = (uint8_t)(1 + i % 255);
        accounts[i].key.bytes[1] = (uint8_t)(1 + i / 255);
        accounts[i].roles = number == CONSUMER     ? ROLE_CONSUMER
                            : number == OPERATOR   ? ROLE_OPERATOR
                            : number < CROWD_FIRST ? ROLE_PROVIDER | ROLE_REFEREE
                                                   : ROLE_PROVIDER;
    }
    accounts[0].credits_micro = 100000 * MICRO_PER_CREDIT;
    open_market_of(&limits, 10 * price, accounts, count);
}

/* MAKER alone has a device that makes results, so that referees do nothing but judge. */
static const struct attribute made_by = {.name = "maker", .number = 1};

static void offer_maker(void)
{
    struct attribute attribute = made_by;
    struct exchange_device device = {.device = {{MAKER}},
                                     .slots = 1,
                                     .attributes = &attribute,
                                     .attribute_count = 1,
                                     .label = "a maker"};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, MAKER);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct exchange_command ask = command(EXCHANGE_ASK, MAKER);
    ask.ask = (struct exchange_ask){.device = device.device, .slots = 1, .price_micro = price};
    apply(&ask);
}

static struct id128 submit_checked(uint32_t results)
{
    static struct requirement by_maker;
    static uint32_t counts[2 * RESULTS_MOST], after[RESULTS_MOST];
    static struct exchange_graph graph;
    static struct exchange_part checks;
    struct exchange_command made = submit_of(2 * results, 50000);
    for (uint32_t i = 0; i < results; i++) {
        counts[i] = 0;
        after[i] = i;
    }
    for (uint32_t i = results; i < 2 * results; i++) {
        counts[i] = 1;
    }
    graph = (struct exchange_graph){.after_count = counts,
                                    .after_count_count = 2 * results,
                                    .after = after,
                                    .after_length = results};
    checks = (struct exchange_part){.subtasks = results,
                                    .needs = &anything,
                                    .slots = 1,
                                    .cap_micro = made.submit.cap_micro,
                                    .limit_ns = made.submit.limit_ns,
                                    .term_ns = 1000 * NS_PER_S};
    by_maker.count = 1;
    by_maker.nodes[0] = (struct requirement_node){.op = REQUIREMENT_EQ, .attribute = made_by};
    made.submit.needs = &by_maker;
    made.submit.term_ns = checks.term_ns;
    made.submit.graph = &graph;
    made.submit.parts = &checks;
    made.submit.part_count = 1;
    made.submit.verify = EXCHANGE_VERIFY_CHEAP;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

/* Dispatches to each account, oldest first; `answered` of them have their answer. */
static struct {
    struct exchange_work work[RESULTS_MOST];
    uint32_t count, answered;
} sent[CROWD_FIRST];

static void note_dispatches(void)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        if (effect->type == EFFECT_DISPATCH && effect->account < CROWD_FIRST) {
            sent[effect->account].work[sent[effect->account].count++] = effect->work;
        }
    }
}

static void offer_noted(uint32_t provider)
{
    offer(provider, 1, price);
    note_dispatches();
}

/* The account answers what it was sent first. */
static void answer(uint32_t provider, struct id128 job, uint8_t verdict)
{
    static uint32_t next_hash;
    ck_assert_uint_lt(sent[provider].answered, sent[provider].count);
    const struct exchange_work work = sent[provider].work[sent[provider].answered++];
    struct exchange_result one = {.job = job,
                                  .index = work.index,
                                  .attempt = work.attempt,
                                  .lease = work.lease,
                                  .device = {{(uint8_t)provider}},
                                  .manifest = manifest,
                                  .busy_ns = NS_PER_S,
                                  .verdict = verdict,
                                  .seed = work.seed,
                                  .bytes = (const uint8_t *)"signed",
                                  .length = 6};
    next_hash++;
    memcpy(one.hash.bytes, &next_hash, sizeof next_hash);
    market.now_ns += NS_PER_S;
    struct exchange_command results = command(EXCHANGE_RESULTS, provider);
    results.results = (struct exchange_results){.results = &one, .count = 1, .dice = {{5}}};
    apply(&results);
    note_dispatches();
}

/* MAKER makes `made` of the results, and REFEREE rejects `accused` of those. */
static struct id128 accused_job(uint32_t results, uint32_t made, uint32_t accused)
{
    memset(sent, 0, sizeof sent);
    offer_maker();
    const struct id128 job = submit_checked(results);
    note_dispatches();
    for (uint32_t i = 0; i < made; i++) {
        answer(MAKER, job, VERDICT_NONE);
    }
    offer_noted(REFEREE);
    for (uint32_t i = 0; i < accused; i++) {
        answer(REFEREE, job, VERDICT_REJECT);
    }
    ck_assert_uint_eq(job_row(job).accused, accused);
    return job;
}

static void group(size_t count, const uint32_t *numbers)
{
    struct key32 accounts[EXCHANGE_OWNER_MOST] = {{{0}}};
    struct exchange_command owner = command(EXCHANGE_OWNER, OPERATOR);
    for (size_t i = 0; i < count; i++) {
        struct exchange_account_row row;
        ck_assert(exchange_account(market.exchange, numbers[i], &row));
        accounts[i] = row.key;
    }
    owner.owner = (struct exchange_owner){.accounts = accounts, .count = count, .name = "lab"};
    apply(&owner);
}

/* ---------------------------------------------------------------- what is listed */

START_TEST(what_is_listed_and_counted_is_what_a_slow_walk_finds)
{
    const struct id128 job = accused_job(20, 16, 9);
    ck_assert_uint_eq(disputes_model_check(market.exchange, &job), 9);
    ck_assert_uint_eq(exchange_dispute_counts(market.exchange, &job).for_client, 9);
    reload();
    ck_assert_uint_eq(disputes_model_check(market.exchange, &job), 9);
    offer_noted(SECOND);
    ck_assert_uint_eq(disputes_model_check(market.exchange, &job), 9);
    ck_assert_uint_eq(exchange_dispute_counts(market.exchange, &job).for_client, 0);
    group(2, (const uint32_t[]){SECOND, REFEREE}); /* nobody of another owner again */
    ck_assert_uint_eq(disputes_model_check(market.exchange, &job), 9);
    ck_assert_uint_eq(exchange_dispute_counts(market.exchange, &job).for_client, 9);
    offer_noted(THIRD);
    ck_assert_uint_eq(exchange_dispute_counts(market.exchange, &job).for_client, 0);
    for (int i = 0; i < 3; i++) { /* REFEREE is overruled, and asked no more */
        answer(THIRD, job, VERDICT_ACCEPT);
        (void)disputes_model_check(market.exchange, &job);
    }
    presence(EXCHANGE_GOODBYE, THIRD);
    struct exchange_command none = command(EXCHANGE_ADVERTISE, THIRD); /* it takes its device off */
    apply(&none);
    /* The client has to judge all that is held now, accused or not. */
    ck_assert_uint_eq(disputes_model_check(market.exchange, &job), job_row(job).checking);
    ck_assert_uint_gt(job_row(job).checking, job_row(job).accused);
}
END_TEST

START_TEST(a_page_looks_at_no_more_than_its_cap)
{
    const struct id128 job = accused_job(RESULTS_MOST, 3, 2);
    struct exchange_dispute rows[4];
    uint32_t next = 0;
    ck_assert_uint_gt(RESULTS_MOST, EXCHANGE_DISPUTES_LOOKS);
    ck_assert_uint_eq(exchange_disputes(market.exchange, &job, 0, rows, 4, &next), 2);
    ck_assert_uint_eq(next, EXCHANGE_DISPUTES_LOOKS);
    ck_assert_uint_eq(exchange_disputes(market.exchange, &job, next, rows, 4, &next), 0);
    ck_assert_uint_eq(next, 0);
    ck_assert_uint_eq(exchange_disputes(market.exchange, &job, 0, rows, 1, &next), 1);
    ck_assert_uint_eq(next, rows[0].index + 1);
    ck_assert_uint_eq(exchange_disputes(market.exchange, &job, UINT32_MAX, rows, 4, &next), 0);
    ck_assert_uint_eq(next, 0);
    ck_assert_uint_eq(disputes_model_check(market.exchange, &job), 2);
}
END_TEST

/* ---------------------------------------------------------------- what it costs */

static uint64_t steps_of_page(const struct id128 *job)
{
    static struct exchange_dispute rows[RESULTS_MOST];
    const uint64_t before = exchange_steps(market.exchange);
    (void)exchange_disputes(market.exchange, job, 0, rows, RESULTS_MOST, NULL);
    return exchange_steps(market.exchange) - before;
}

static uint64_t steps_of_counts(const struct id128 *job)
{
    const uint64_t before = exchange_steps(market.exchange);
    (void)exchange_dispute_counts(market.exchange, job);
    return exchange_steps(market.exchange) - before;
}

START_TEST(a_provider_is_looked_at_once_however_many_results_are_held)
{
    enum { RESULTS = 64, EACH = 8, ROW = 80 };
    const struct id128 job = accused_job(RESULTS, RESULTS, RESULTS);
    const uint64_t alone = steps_of_page(&job);
    const uint64_t counts_alone = steps_of_counts(&job);
    for (uint32_t i = 0; i < CROWD_MOST; i++) {
        offer(CROWD_FIRST + i, 1, price);
    }
    ck_assert_uint_eq(disputes_model_check(market.exchange, &job), RESULTS);
    ck_assert_uint_le(alone, RESULTS * ROW + EACH * 2);
    ck_assert_uint_le(steps_of_page(&job) - alone, CROWD_MOST * EACH);
    ck_assert_uint_le(steps_of_counts(&job) - counts_alone, CROWD_MOST * EACH);
    /* A look is charged for every provider and every result. */
    ck_assert_uint_ge(steps_of_page(&job) - alone, CROWD_MOST);
    ck_assert_uint_ge(steps_of_counts(&job), CROWD_MOST + RESULTS);
}
END_TEST

START_TEST(a_job_without_disputes_costs_no_walk)
{
    const struct id128 job = accused_job(RESULTS_MOST, 100, 0);
    ck_assert_uint_eq(steps_of_page(&job), 0);
    ck_assert_uint_eq(steps_of_counts(&job), 0);
}
END_TEST

SUITE("disputes", set_up_crowd, tear_down,
      TEST(what_is_listed_and_counted_is_what_a_slow_walk_finds),
      TEST(a_page_looks_at_no_more_than_its_cap),
      TEST(a_provider_is_looked_at_once_however_many_results_are_held),
      TEST(a_job_without_disputes_costs_no_walk))
