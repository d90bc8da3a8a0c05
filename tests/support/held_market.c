#include "tests/support/held_market.h"

#include "exchange/lifecycle.h"
#include "exchange/work/part_queues.h"
#include "exchange/work/subtask_makers.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const struct hash32 manifest = {{9}};
static uint8_t next_hash;
int64_t step_ns, busy_ns;

void set_up_referees(void)
{
    memset(&market, 0, sizeof market);
    struct exchange_limits limits = exchange_limits_default();
    limits.asks = limits.jobs = limits.cells = 64;
    limits.leases = 64;
    limits.attempts = 4096;
    limits.classes = 16;
    market.exchange = exchange_create(&limits);
    market.now_ns = start_ns;
    next_hash = 0;
    step_ns = busy_ns = NS_PER_S;
    const uint32_t referee = ROLE_PROVIDER | ROLE_REFEREE;
    struct exchange_genesis_account accounts[] = {
        {.key = {{1}}, .roles = ROLE_CONSUMER, .credits_micro = 1000 * MICRO_PER_CREDIT},
        {.key = {{2}}, .roles = referee},
        {.key = {{3}}, .roles = referee},
        {.key = {{4}}, .roles = ROLE_OPERATOR},
        {.key = {{5}}, .roles = referee},
        {.key = {{6}}, .roles = ROLE_PROVIDER},
        {.key = {{7}}, .roles = referee},
    };
    struct exchange_command genesis = command(EXCHANGE_GENESIS, EXCHANGE_NO_ACCOUNT);
    genesis.genesis = (struct exchange_genesis){
        .cluster = {{7}}, .price_band_micro = 10 * price, .accounts = accounts, .account_count = 7};
    apply(&genesis);
}

/* ---------------------------------------------------------------- jobs with checks */

struct checked_shape shape;

struct exchange_command checked_of(uint32_t results, int64_t budget_credits)
{
    struct exchange_command made = submit_of(2 * results, budget_credits);
    memset(&shape, 0, sizeof shape);
    for (uint32_t i = 0; i < results; i++) {
        shape.counts[results + i] = 1;
        shape.after[i] = i;
    }
    shape.graph = (struct exchange_graph){.after_count = shape.counts,
                                          .after_count_count = 2 * results,
                                          .after = shape.after,
                                          .after_length = results};
    shape.checks = (struct exchange_part){.subtasks = results,
                                          .needs = &anything,
                                          .slots = 1,
                                          .cap_micro = made.submit.cap_micro,
                                          .limit_ns = made.submit.limit_ns,
                                          .term_ns = made.submit.term_ns};
    made.submit.graph = &shape.graph;
    made.submit.parts = &shape.checks;
    made.submit.part_count = 1;
    made.submit.verify = EXCHANGE_VERIFY_CHEAP;
    return made;
}

struct id128 submit_checked(uint32_t results)
{
    struct exchange_command made = checked_of(results, 500);
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return made.id;
}

static const struct exchange_work *find_sent(uint32_t provider)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        if (effect->type == EFFECT_DISPATCH && effect->account == provider) {
            return &effect->work;
        }
    }
    return NULL;
}

struct exchange_work sent_to(uint32_t provider)
{
    ck_assert_msg(find_sent(provider) != NULL, "nothing was sent to %u", provider);
    return *find_sent(provider);
}

bool is_sent_to(uint32_t provider)
{
    return find_sent(provider) != NULL;
}

/* Subtasks of the first part that wait for a lane, and that the provider may make: one by one. */
static uint32_t choice_one_by_one(const struct job *job, uint32_t provider)
{
    const struct part *part = &job->parts[0];
    uint32_t barred = 0;
    for (uint32_t index = part->first; index < part->end; index++) {
        const struct page *page = job->pages[index / PAGE_SUBTASKS];
        barred += page != NULL && page->subtasks[index % PAGE_SUBTASKS].state == SUBTASK_WAITING &&
                  !subtask_may_run_on(market.exchange, job, index, provider);
    }
    return part->waiting - barred;
}

/* The index of who may make what waits says what a walk over all subtasks says. */
void check_choice(struct id128 id)
{
    const struct job *job = table_find(&market.exchange->jobs, &id);
    for (uint32_t provider = PROVIDER;
         job->phase == JOB_PHASE_OPEN && !job->is_closing && provider <= THIRD; provider++) {
        ck_assert_uint_eq(part_choice(market.exchange, &job->parts[0], provider),
                          choice_one_by_one(job, provider));
    }
}

bool lacks_factor;

/* A second of work, unless a test says otherwise. */
struct hash32 answer(uint32_t provider, struct id128 job, struct exchange_work work,
                     uint8_t outcome, uint8_t verdict)
{
    struct exchange_result one = {
        .is_missing = outcome == OUTCOME_INPUT_MISSING,
        .lacks_factor = lacks_factor,
        .job = job,
        .index = work.index,
        .attempt = work.attempt,
        .lease = work.lease,
        .device = {{(uint8_t)provider}},
        .manifest = manifest,
        .outcome = outcome,
        .busy_ns = busy_ns,
        .hash = {{++next_hash, 1}},
        .given = (const uint8_t *)"left",
        .given_length = 4,
        .verdict = verdict,
        .seed = work.seed,
        .bytes = (const uint8_t *)"signed",
        .length = 6,
    };
    market.now_ns += step_ns;
    struct exchange_command results = command(EXCHANGE_RESULTS, provider);
    results.results = (struct exchange_results){.results = &one, .count = 1, .dice = dice};
    apply(&results);
    check_hash();
    check_choice(job);
    return one.hash;
}

void done(uint32_t provider, struct id128 job, struct exchange_work work)
{
    (void)answer(provider, job, work, OUTCOME_OK, VERDICT_NONE);
}

void make_all(struct id128 job, uint32_t results)
{
    struct exchange_work sent[MOST];
    uint32_t count = 0;
    for (uint32_t i = 0; i < results; i++) {
        for (size_t k = 0; k < market.effects.count; k++) {
            const struct exchange_effect *effect = &market.effects.items[k];
            if (effect->type == EFFECT_DISPATCH && effect->account == MAKER) {
                ck_assert_uint_lt(effect->work.index, results);
                sent[count++] = effect->work;
            }
        }
        ck_assert_uint_lt(i, count);
        done(MAKER, job, sent[i]);
    }
    ck_assert_uint_eq(job_row(job).checking, results);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
}

const struct ledger_record *result_of(uint32_t index)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        if (effect->type == EFFECT_LEDGER && effect->ledger.kind == LEDGER_RESULT &&
            effect->ledger.index == index) {
            return &effect->ledger;
        }
    }
    ck_abort_msg("no result of subtask %u", index);
}

/* One result of MAKER, held, and its check sent to REFEREE. */

struct held_case hold_one(void)
{
    struct held_case held;
    offer(MAKER, 1, price);
    held.job = submit_checked(1);
    held.work = sent_to(MAKER);
    offer(REFEREE, 1, price);
    ck_assert(!is_sent_to(REFEREE));
    done(MAKER, held.job, held.work);
    held.check = sent_to(REFEREE);
    return held;
}

void refute(const struct held_case *held, uint32_t other)
{
    (void)answer(REFEREE, held->job, held->check, OUTCOME_OK, VERDICT_REJECT);
    (void)answer(other, held->job, sent_to(other), OUTCOME_OK, VERDICT_REJECT);
}

void group(const char *name, size_t count, const uint8_t *keys)
{
    struct key32 accounts[EXCHANGE_OWNER_MOST] = {{{0}}};
    struct exchange_command owner = command(EXCHANGE_OWNER, OPERATOR);
    for (size_t i = 0; i < count; i++) {
        accounts[i].bytes[0] = keys[i];
    }
    owner.owner = (struct exchange_owner){.accounts = accounts, .count = count};
    (void)snprintf(owner.owner.name, sizeof owner.owner.name, "%s", name);
    apply(&owner);
    check_hash();
}
