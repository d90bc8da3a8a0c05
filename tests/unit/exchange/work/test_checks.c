/* Results that are held until a referee has judged them. */
#include "tests/support/hand_market.h"

#include "base/sha256.h"
#include "exchange/account/standing.h"
#include "exchange/lifecycle.h"
#include "exchange/view/disputes.h"
#include "exchange/view/why.h"
#include "exchange/work/check_roles.h"
#include "exchange/work/juries.h"
#include "exchange/work/part_queues.h"
#include "exchange/work/subtask_makers.h"
#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* Each of the two providers of this market is a referee. */
enum { MAKER = PROVIDER, REFEREE = OTHER_PROVIDER, SECOND = 7, NO_REFEREE = 8, THIRD = 9 };
static const struct hash32 dice = {{5, 7}};
static const struct hash32 manifest = {{9}};
static uint8_t next_hash;
static int64_t step_ns, busy_ns; /* that a work takes, and says that it took */

static void set_up_referees(void)
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

enum { MOST = 32 };
static struct {
    uint32_t counts[2 * MOST], after[2 * MOST];
    struct exchange_graph graph;
    struct exchange_part checks;
} shape;

static struct exchange_command checked_of(uint32_t results, int64_t budget_credits)
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

static struct id128 submit_checked(uint32_t results)
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

static struct exchange_work sent_to(uint32_t provider)
{
    ck_assert_msg(find_sent(provider) != NULL, "nothing was sent to %u", provider);
    return *find_sent(provider);
}

static bool is_sent_to(uint32_t provider)
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
static void check_choice(struct id128 id)
{
    const struct job *job = table_find(&market.exchange->jobs, &id);
    for (uint32_t provider = PROVIDER;
         job->phase == JOB_PHASE_OPEN && !job->is_closing && provider <= THIRD; provider++) {
        ck_assert_uint_eq(part_choice(market.exchange, &job->parts[0], provider),
                          choice_one_by_one(job, provider));
    }
}

static bool lacks_factor; /* the next answers say so */

/* A second of work, unless a test says otherwise. */
static struct hash32 answer(uint32_t provider, struct id128 job, struct exchange_work work,
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

static void done(uint32_t provider, struct id128 job, struct exchange_work work)
{
    (void)answer(provider, job, work, OUTCOME_OK, VERDICT_NONE);
}

/* MAKER does so many subtasks, of those that it has been sent by the last command and is sent
 * then. */
static void make_all(struct id128 job, uint32_t results)
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

static const struct ledger_record *result_of(uint32_t index)
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
struct held_case {
    struct id128 job;
    struct exchange_work work, check;
};
static struct held_case hold_one(void)
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

/* ---------------------------------------------------------------- tests */

START_TEST(a_job_without_its_checks_is_refused)
{
    struct exchange_command made;
#define REFUSED(field_name, change)                                                                \
    made = checked_of(3, 10);                                                                      \
    change;                                                                                        \
    apply(&made);                                                                                  \
    check_rejected(REJECT_VERIFY);                                                                 \
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, field_name)
    REFUSED("verify", made.submit.part_count = 0);
    REFUSED("verify", (shape.checks.subtasks = 2));
    REFUSED("verify", made.submit.verify = EXCHANGE_VERIFY_UNKNOWN);
    REFUSED("graph", made.submit.graph = NULL);
    REFUSED("graph", shape.graph = (struct exchange_graph){0});
    REFUSED("graph.after", shape.after[2] = 1);
    REFUSED("graph.after_count", (shape.counts[4] = 2, shape.counts[5] = 0, shape.after[2] = 0));
    static struct requirement simulation;
    simulation.count = 1;
    simulation.nodes[0].op = REQUIREMENT_EQ;
    simulation.nodes[0].attribute = (struct attribute){.name = "simulated", .number = 1};
    REFUSED("needs", made.submit.needs = &simulation);
    REFUSED("parts.needs", shape.checks.needs = &simulation);
    simulation.nodes[0].attribute =
        (struct attribute){.name = "instrument", .is_text = true, .text = "sim.lpu.groq.v1"};
    REFUSED("needs", made.submit.needs = &simulation);
#undef REFUSED
    simulation.nodes[0].attribute =
        (struct attribute){.name = "simulated"}; /* = false: a machine */
    made = checked_of(3, 10);
    made.submit.needs = &simulation;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    static struct requirement large;
    large.count = REQUIREMENT_NODES_MAX - 1;
    for (uint32_t i = 0; i < large.count; i++) { /* one predicate, and nots of it */
        large.nodes[i].op = i == 0 ? REQUIREMENT_GE : REQUIREMENT_NOT;
        (void)strcpy(large.nodes[i].attribute.name, i == 0 ? "memory" : "");
    }
    made = checked_of(3, 10);
    shape.checks.needs = &large;
    apply(&made);
    check_rejected(REJECT_REQUIREMENT);
}
END_TEST

START_TEST(what_a_referee_takes_is_paid_and_names_the_check)
{
    struct held_case held;
    offer(MAKER, 1, price);
    held.job = submit_checked(1);
    held.work = sent_to(MAKER);
    offer(REFEREE, 1, price);
    const struct hash32 hash = answer(MAKER, held.job, held.work, OUTCOME_OK, VERDICT_NONE);
    const struct ledger_record *record = record_of(LEDGER_HELD);
    ck_assert(hash32_equal(&record->hash, &hash));
    ck_assert_uint_eq(record->batch_index, market.index);
    const uint64_t held_at = market.index;
    ck_assert_ptr_null(record_of(LEDGER_RESULT));
    ck_assert_ptr_null(record_of(LEDGER_CAPTURE));
    ck_assert_uint_eq(job_row(held.job).checking, 1);
    ck_assert_int_eq(balance(MAKER).available_micro, 0);

    struct exchange_work check = sent_to(REFEREE);
    ck_assert_uint_eq(check.index, 1);
    ck_assert_uint_eq(check.given_count, 1); /* what it is about */
    const struct hash32 seed = exchange_check_seed(&dice, &hash, check.index, check.attempt);
    ck_assert(hash32_equal(&check.seed, &seed));
    reload();

    const struct hash32 verdict = answer(REFEREE, held.job, check, OUTCOME_OK, VERDICT_ACCEPT);
    record = result_of(0);
    ck_assert_uint_eq(record->status, ATTEMPT_ACCEPTED);
    ck_assert_uint_eq(record->level, CHECK_CHEAP);
    ck_assert(hash32_equal(&record->check, &verdict));
    ck_assert(hash32_equal(&record->hash, &hash));
    ck_assert_uint_eq(record->batch_index, held_at);
    ck_assert_uint_eq(record->result_length, 6);
    ck_assert_mem_eq(record->result, "signed", 6);
    ck_assert_int_eq(record->charge_micro, MICRO_PER_CREDIT);
    ck_assert_uint_eq(result_of(1)->level, CHECK_NONE);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
    ck_assert_int_eq(balance(REFEREE).available_micro, MICRO_PER_CREDIT);
    ck_assert_uint_eq(job_row(held.job).state, JOB_DONE);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

START_TEST(a_seed_is_of_dice_result_check_and_attempt)
{
    /* SHA-256 of "bourse/check/v1\0", dice, hash, u32le 9, u32le 2. */
    const struct hash32 hash = {{3}};
    uint8_t bytes[16 + 32 + 32 + 8] = "bourse/check/v1";
    memcpy(bytes + 16, dice.bytes, 32);
    memcpy(bytes + 48, hash.bytes, 32);
    bytes[80] = 9;
    bytes[84] = 2;
    const struct hash32 expected = sha256_of(bytes, sizeof bytes);
    const struct hash32 seed = exchange_check_seed(&dice, &hash, 9, 2);
    ck_assert(hash32_equal(&seed, &expected));
}
END_TEST

/* REFEREE has rejected what MAKER made, and so does whoever `other` is. */
static void refute(const struct held_case *held, uint32_t other)
{
    (void)answer(REFEREE, held->job, held->check, OUTCOME_OK, VERDICT_REJECT);
    (void)answer(other, held->job, sent_to(other), OUTCOME_OK, VERDICT_REJECT);
}

START_TEST(one_reject_holds_a_result_and_a_second_owners_refutes_it)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_REJECT);
    ck_assert_uint_eq(result_of(1)->status, ATTEMPT_FAILED_PAID); /* work, too */
    ck_assert_uint_eq(job_row(held.job).checking, 1);
    ck_assert_uint_eq(job_row(held.job).accused, 1);
    ck_assert(!is_sent_to(REFEREE));
    const struct exchange_work second = sent_to(SECOND);
    ck_assert_uint_eq(second.index, 1);
    ck_assert(!hash32_equal(&second.seed, &held.check.seed));
    reload();
    offer(THIRD, 1, price);
    (void)answer(SECOND, held.job, second, OUTCOME_OK, VERDICT_REJECT);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_REFUTED);
    ck_assert_uint_eq(result_of(0)->level, CHECK_CHEAP);
    ck_assert_int_eq(result_of(0)->charge_micro, 0);
    ck_assert_uint_eq(result_of(1)->status, ATTEMPT_FAILED_PAID);
    ck_assert_int_eq(balance(MAKER).available_micro, 0);
    ck_assert_uint_eq(job_row(held.job).checking, 0);
    ck_assert_uint_eq(job_row(held.job).accused, 0);
    ck_assert_uint_eq(exchange_standing(market.exchange, MAKER).refuted, 1);

    const struct exchange_work again = sent_to(THIRD); /* who judged it does not make it */
    ck_assert_uint_eq(again.index, 0);
    ck_assert_uint_eq(again.attempt, 2);
    reload();
    done(THIRD, held.job, again);
    const uint32_t by = is_sent_to(SECOND) ? SECOND : REFEREE;
    (void)answer(by, held.job, sent_to(by), OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(held.job).state, JOB_DONE);
    ck_assert_int_eq(balance(MAKER).available_micro, 0);
    ck_assert_int_eq(balance(CONSUMER).available_micro, 996 * MICRO_PER_CREDIT);
}
END_TEST

START_TEST(a_lone_reject_is_overruled_and_its_referee_is_asked_no_more)
{
    offer(MAKER, 1, price);
    struct id128 job = submit_checked(2);
    make_all(job, 2);
    offer(REFEREE, 1, price);
    (void)answer(REFEREE, job, sent_to(REFEREE), OUTCOME_OK, VERDICT_REJECT);
    struct exchange_work next = sent_to(REFEREE); /* of the other result */
    offer(SECOND, 1, price);
    (void)answer(SECOND, job, sent_to(SECOND), OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_ACCEPTED);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
    ck_assert_uint_eq(exchange_standing(market.exchange, REFEREE).overruled, 1);
    ck_assert_uint_eq(exchange_standing(market.exchange, MAKER).refuted, 0);
    reload();
    (void)answer(REFEREE, job, next, OUTCOME_OK, VERDICT_UNSURE); /* which it had already */
    ck_assert(!is_sent_to(REFEREE));
    (void)answer(SECOND, job, sent_to(SECOND), OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

START_TEST(a_hostile_referee_gets_neither_the_maker_refused_nor_the_work)
{
    struct held_case held = hold_one();
    for (int i = 0; i < 20; i++) { /* nobody else comes: it is held */
        if (is_sent_to(REFEREE)) {
            (void)answer(REFEREE, held.job, sent_to(REFEREE), OUTCOME_OK, VERDICT_REJECT);
        }
        market.now_ns += 30 * NS_PER_S;
        tick();
        ck_assert_uint_eq(job_row(held.job).checking, 1);
    }
    ck_assert_uint_eq(exchange_standing(market.exchange, MAKER).refuted, 0);
    ck_assert_uint_eq(job_row(held.job).reason, JOB_REASON_REFEREE);
    struct exchange_dispute dispute;
    ck_assert_uint_eq(exchange_disputes(market.exchange, &held.job, 0, &dispute, 1, NULL), 1);
    ck_assert_uint_eq(dispute.accuser, REFEREE);
    ck_assert(hash32_equal(&dispute.seed, &held.check.seed));
    ck_assert(!dispute.has_referee);
    offer(NO_REFEREE, 1, price);
    ck_assert_uint_eq(exchange_disputes(market.exchange, &held.job, 0, &dispute, 1, NULL), 1);
    ck_assert(!dispute.has_referee);
    offer(SECOND, 1, price);
    (void)answer(SECOND, held.job, sent_to(SECOND), OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(held.job).state, JOB_DONE);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
}
END_TEST

/* ---------------------------------------------------------------- owners */

static void group(const char *name, size_t count, const uint8_t *keys)
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

START_TEST(two_accounts_of_one_owner_are_one_referee)
{
    struct held_case held = hold_one();
    group("lab", 2, (const uint8_t[]){3, 5}); /* REFEREE and SECOND */
    ck_assert_str_eq(record_of(LEDGER_FLAG)->name, "owner");
    ck_assert_str_eq(exchange_standing(market.exchange, SECOND).owner, "lab");
    reload();
    offer(SECOND, 1, price);
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_REJECT);
    ck_assert(!is_sent_to(SECOND));
    ck_assert_uint_eq(job_row(held.job).checking, 1);
    group("", 1, (const uint8_t[]){5});
    ck_assert_str_eq(exchange_standing(market.exchange, SECOND).owner, "");
    (void)answer(SECOND, held.job, sent_to(SECOND), OUTCOME_OK, VERDICT_REJECT);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_REFUTED);
}
END_TEST

START_TEST(no_account_judges_or_makes_for_another_of_its_owner)
{
    group("lab", 2, (const uint8_t[]){2, 3}); /* MAKER and REFEREE */
    offer(MAKER, 1, price);
    struct id128 job = submit_checked(1);
    struct exchange_work work = sent_to(MAKER);
    offer(REFEREE, 1, price);
    done(MAKER, job, work);
    ck_assert(!is_sent_to(REFEREE));
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_REFEREE);
    offer(SECOND, 1, price);
    struct exchange_work check = sent_to(SECOND);
    offer(THIRD, 1, price);
    (void)answer(SECOND, job, check, OUTCOME_OK, VERDICT_REJECT);
    check = sent_to(THIRD);
    group("lab", 1, (const uint8_t[]){6});      /* NO_REFEREE, which changes nothing here */
    group("other", 2, (const uint8_t[]){5, 6}); /* SECOND judged: nor may NO_REFEREE make it now */
    presence(EXCHANGE_GOODBYE, REFEREE);
    offer(NO_REFEREE, 1, price);
    (void)answer(THIRD, job, check, OUTCOME_OK, VERDICT_REJECT);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_REFUTED);
    ck_assert(!is_sent_to(NO_REFEREE));
    reload();
    group("", 1, (const uint8_t[]){6});
    ck_assert_uint_eq(sent_to(NO_REFEREE).index, 0);
}
END_TEST

START_TEST(a_grouping_is_the_operators_and_of_accounts_that_exist)
{
    struct key32 accounts[] = {{{2}}, {{99}}};
    struct exchange_command owner = command(EXCHANGE_OWNER, CONSUMER);
    owner.owner = (struct exchange_owner){.accounts = accounts, .count = 1, .name = "lab"};
    apply(&owner);
    check_rejected(REJECT_ROLE);
    owner = command(EXCHANGE_OWNER, OPERATOR);
    owner.owner = (struct exchange_owner){.accounts = accounts, .count = 2, .name = "lab"};
    apply(&owner);
    check_rejected(REJECT_NOT_FOUND);
    ck_assert_str_eq(exchange_standing(market.exchange, MAKER).owner, "");
    owner = command(EXCHANGE_OWNER, OPERATOR);
    owner.owner = (struct exchange_owner){.accounts = accounts, .name = "lab"};
    apply(&owner);
    check_rejected(REJECT_QUANTITY);
}
END_TEST

START_TEST(what_was_begun_before_two_became_one_owners_does_not_count)
{
    struct held_case held = hold_one();
    group("lab", 2, (const uint8_t[]){2, 3}); /* MAKER, and REFEREE, who is at it */
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(result_of(1)->status, ATTEMPT_FAILED_PAID);
    ck_assert_uint_eq(job_row(held.job).checking, 1);
    ck_assert_uint_eq(job_row(held.job).accused, 0);
    offer(SECOND, 1, price);
    (void)answer(SECOND, held.job, sent_to(SECOND), OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(held.job).state, JOB_DONE);
}
END_TEST

/* ---------------------------------------------------------------- the client's own word */

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

/* ---------------------------------------------------------------- who judged never makes */

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

/* ---------------------------------------------------------------- refutations count */

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

START_TEST(nobody_judges_results_of_its_own)
{
    offer(MAKER, 1, price);
    struct id128 job = submit_checked(3);
    make_all(job, 3);
    size_t leases = 0;
    size_t dispatches = 0;
    for (int i = 0; i < 50; i++) { /* nor does it get leases that it could not use */
        market.now_ns += NS_PER_S;
        tick();
        leases += count_of(EFFECT_LEASE_GRANT);
        dispatches += count_of(EFFECT_DISPATCH);
    }
    ck_assert_uint_eq(leases, 0);
    ck_assert_uint_eq(dispatches, 0);
    ck_assert_uint_eq(job_row(job).checking, 3);
    ck_assert_uint_eq(job_row(job).reason, JOB_REASON_REFEREE);
    struct exchange_explanation why;
    ck_assert(exchange_explain_job(market.exchange, &job, EXCHANGE_ANY_PART, &why));
    ck_assert_uint_eq(why.own, 1);
    ck_assert_uint_eq(why.free, 0);
    offer(NO_REFEREE, 1, price);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    offer(REFEREE, 1, price);
    ck_assert_uint_eq(sent_to(REFEREE).index, 3); /* what came first is checked first */
}
END_TEST

START_TEST(only_the_role_makes_a_referee)
{
    struct attribute said[] = {{.name = "kind", .is_text = true, .text = "cpu"},
                               {.name = "referee", .number = 1}};
    struct exchange_device device = {
        .device = {{NO_REFEREE}}, .slots = 1, .attributes = said, .attribute_count = 2};
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, NO_REFEREE);
    advertise.advertise = (struct exchange_advertise){&device, 1};
    apply(&advertise);
    struct exchange_command ask = command(EXCHANGE_ASK, NO_REFEREE);
    ask.ask = (struct exchange_ask){.device = device.device, .slots = 1, .price_micro = price};
    apply(&ask);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);

    struct requirement needs = {.count = 1};
    needs.nodes[0].op = REQUIREMENT_EQ;
    (void)strcpy(needs.nodes[0].attribute.name, "referee");
    needs.nodes[0].attribute.number = 1;
    struct exchange_need need = {.needs = &needs,
                                 .account = CONSUMER,
                                 .subtasks = 1,
                                 .slots = 1,
                                 .cap_micro = -1,
                                 .limit_ns = NS_PER_S,
                                 .term_ns = NS_PER_S};
    struct exchange_explanation why;
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.fitting, 0);
    offer(REFEREE, 1, price);
    exchange_explain(market.exchange, &need, &why);
    ck_assert_uint_eq(why.fitting, 1);
}
END_TEST

START_TEST(a_referee_is_required_once)
{
    struct requirement needs = {.count = 1};
    needs.nodes[0] = (struct requirement_node){.op = REQUIREMENT_GE,
                                               .attribute = {.name = "memory", .number = 1024}};
    struct requirement once, twice;
    ck_assert(check_role_require(&needs, &once)); /* as the consumer does, for its quote */
    ck_assert_uint_eq(once.count, 3);
    ck_assert(check_role_require(&once, &twice));
    ck_assert_uint_eq(twice.count, 3);
    ck_assert(check_role_require(&anything, &once));
    ck_assert_uint_eq(once.count, 1);
    ck_assert(check_role_require(&once, &twice));
    ck_assert_uint_eq(twice.count, 1);
    /* A need that either of two branches may hold is no demand for it. */
    once.nodes[1] = needs.nodes[0];
    once.nodes[2] = (struct requirement_node){.op = REQUIREMENT_OR, .arity = 2};
    once.count = 3;
    ck_assert(check_role_require(&once, &twice));
    ck_assert_uint_eq(twice.count, 5);
}
END_TEST

START_TEST(two_agents_of_one_slot_judge_each_other_at_once)
{
    offer(MAKER, 1, price);
    offer(REFEREE, 1, price);
    struct id128 job = submit_checked(2);
    struct exchange_work first = sent_to(MAKER);
    struct exchange_work second = sent_to(REFEREE);
    done(MAKER, job, first); /* its slot has no more to do, and nothing that it may check */
    done(REFEREE, job, second);
    /* Each has a check of the other's result, without waiting until idle leases run out. */
    struct exchange_work of_maker = sent_to(REFEREE);
    ck_assert_uint_eq(of_maker.index, 2 + first.index);
    struct exchange_work of_referee = sent_to(MAKER);
    ck_assert_uint_eq(of_referee.index, 2 + second.index);
    (void)answer(REFEREE, job, of_maker, OUTCOME_OK, VERDICT_ACCEPT);
    (void)answer(MAKER, job, of_referee, OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

START_TEST(a_maker_that_comes_back_judges_at_once)
{
    offer(MAKER, 1, price);
    offer(REFEREE, 1, price);
    struct id128 job = submit_checked(2);
    struct exchange_work first = sent_to(MAKER);
    struct exchange_work second = sent_to(REFEREE);
    done(MAKER, job, first);
    presence(EXCHANGE_SUSPECT, MAKER);
    done(REFEREE, job, second);
    ck_assert_uint_eq(sent_to(REFEREE).index, 2 + first.index);
    reload();
    offer(MAKER, 1, price); /* its lease for products stood all the time, with nothing to do */
    ck_assert_uint_eq(sent_to(MAKER).index, 2 + second.index);
}
END_TEST

START_TEST(an_idle_referee_that_comes_back_takes_what_waits_in_another_part)
{
    offer(MAKER, 1, price);
    struct id128 job = submit_checked(2);
    done(MAKER, job, sent_to(MAKER));
    const struct exchange_work work = sent_to(MAKER); /* its next */
    offer(REFEREE, 1, price);
    (void)answer(REFEREE, job, sent_to(REFEREE), OUTCOME_OK, VERDICT_ACCEPT);
    presence(EXCHANGE_SUSPECT, REFEREE);
    reload();
    presence(EXCHANGE_GOODBYE, MAKER); /* what it ran waits for a device */
    ck_assert(!is_sent_to(REFEREE));
    offer(REFEREE, 1, price); /* its lease for checks has nothing to do */
    ck_assert_uint_eq(sent_to(REFEREE).index, work.index);
}
END_TEST

START_TEST(a_lease_without_work_to_come_makes_room_for_other_jobs_at_once)
{
    offer(MAKER, 1, price);
    struct id128 job = submit_checked(1);
    struct exchange_work work = sent_to(MAKER);
    struct id128 other = submit(1, 100);
    ck_assert_uint_eq(count_of(EFFECT_LEASE_GRANT), 0);
    done(MAKER, job, work); /* held, and nobody there to judge it */
    ck_assert_uint_eq(job_row(job).checking, 1);
    ck_assert_uint_eq(job_row(other).running, 1);
}
END_TEST

START_TEST(without_a_budget_checks_wait_for_a_referee_who_gives_away)
{
    offer(MAKER, 1, 0);
    offer(REFEREE, 1, price);
    struct exchange_command made = checked_of(1, 0);
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    struct exchange_work work = sent_to(MAKER);
    done(MAKER, made.id, work);
    presence(EXCHANGE_GOODBYE, MAKER);
    market.now_ns += 60 * NS_PER_S;
    struct exchange_command tick = command(EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    apply(&tick);
    ck_assert_uint_eq(job_row(made.id).state, JOB_OPEN);
    ck_assert_uint_eq(job_row(made.id).checking, 1);
    ck_assert(!is_sent_to(REFEREE));
    offer(SECOND, 1, 0);
    ck_assert_uint_eq(sent_to(SECOND).index, 1);
}
END_TEST

START_TEST(a_lost_referee_is_replaced_and_its_late_verdict_does_not_count_twice)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    presence(EXCHANGE_SUSPECT, REFEREE);
    struct exchange_work second = sent_to(SECOND);
    ck_assert_uint_eq(second.index, 1);
    reload();
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_REJECT);
    ck_assert_uint_eq(job_row(held.job).accused, 1);
    (void)answer(SECOND, held.job, second, OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(result_of(0)->status, ATTEMPT_ACCEPTED);
    ck_assert_uint_eq(exchange_standing(market.exchange, REFEREE).overruled, 1);
}
END_TEST

START_TEST(a_check_that_nobody_wants_any_more_may_be_lost)
{
    struct held_case held = hold_one();
    offer(SECOND, 1, price);
    presence(EXCHANGE_SUSPECT, REFEREE);
    (void)answer(SECOND, held.job, sent_to(SECOND), OUTCOME_OK, VERDICT_REJECT);
    presence(EXCHANGE_RETURNED, REFEREE);
    check_hash();
    struct exchange_command statement = command(EXCHANGE_STATEMENT, REFEREE);
    const struct exchange_held nothing = {.lease = held.check.lease};
    statement.statement = (struct exchange_statement){&nothing, 1, market.now_ns};
    apply(&statement);
    check_hash();
    reload();
}
END_TEST

START_TEST(a_referee_that_comes_back_goes_on)
{
    struct held_case held = hold_one();
    presence(EXCHANGE_SUSPECT, REFEREE);
    ck_assert_uint_eq(job_row(held.job).running, 0);
    reload();
    presence(EXCHANGE_RETURNED, REFEREE);
    ck_assert_uint_eq(job_row(held.job).running, 1);
    check_hash();
    reload();
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_uint_eq(job_row(held.job).state, JOB_DONE);
}
END_TEST

START_TEST(who_left_is_paid_for_what_is_taken_later)
{
    struct held_case held = hold_one();
    presence(EXCHANGE_GOODBYE, MAKER);
    check_hash();
    reload();
    ck_assert_int_eq(job_row(held.job).reserved_micro,
                     MICRO_PER_CREDIT + 20 * MICRO_PER_CREDIT); /* what is due, and the referee's */
    (void)answer(REFEREE, held.job, held.check, OUTCOME_OK, VERDICT_ACCEPT);
    ck_assert_int_eq(balance(MAKER).available_micro, MICRO_PER_CREDIT);
    ck_assert_int_eq(balance(CONSUMER).held_micro, 0);
}
END_TEST

START_TEST(small_sums_neither_vanish_nor_double)
{
    offer(MAKER, 1, 1500); /* a second costs less than half a micro-credit */
    struct id128 job = submit_checked(6);
    make_all(job, 6);
    int64_t charged_micro = 0;
    offer(REFEREE, 1, 0);
    struct exchange_work sent[6];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 6; i++) {
        for (size_t k = 0; k < market.effects.count; k++) {
            if (market.effects.items[k].type == EFFECT_DISPATCH) {
                sent[count++] = market.effects.items[k].work;
            }
        }
        ck_assert_uint_lt(i, count);
        (void)answer(REFEREE, job, sent[i], OUTCOME_OK, VERDICT_ACCEPT);
        charged_micro += result_of(sent[i].index - 6)->charge_micro;
    }
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    ck_assert_int_eq(charged_micro, 6 * 1500 / 3600);
    ck_assert_int_eq(charged_micro, balance(MAKER).available_micro);
}
END_TEST

START_TEST(an_epoch_shows_the_secret_that_it_promised)
{
    const struct hash32 secret = {{1, 2, 3}};
    struct exchange_command epoch = command(EXCHANGE_EPOCH, EXCHANGE_NO_ACCOUNT);
    epoch.epoch = (struct exchange_epoch){.commitment = sha256_of(secret.bytes, 32)};
    apply(&epoch);
    const struct ledger_record *record = record_of(LEDGER_EPOCH);
    ck_assert(hash32_equal(&record->hash, &epoch.epoch.commitment));
    check_hash();
    reload();

    epoch = command(EXCHANGE_EPOCH, EXCHANGE_NO_ACCOUNT);
    epoch.epoch = (struct exchange_epoch){.commitment = {{8}}, .secret = {{1, 2, 4}}};
    apply(&epoch); /* not what was promised */
    ck_assert_ptr_null(record_of(LEDGER_EPOCH));
    struct hash32 commitment;
    ck_assert_uint_eq(exchange_epochs(market.exchange, &commitment), 1);

    epoch = command(EXCHANGE_EPOCH, EXCHANGE_NO_ACCOUNT);
    epoch.epoch = (struct exchange_epoch){.commitment = {{8}}, .secret = secret};
    apply(&epoch);
    ck_assert(hash32_equal(&record_of(LEDGER_EPOCH)->check, &secret));
    ck_assert_uint_eq(exchange_epochs(market.exchange, &commitment), 2);
    ck_assert_uint_eq(commitment.bytes[0], 8);
}
END_TEST

SUITE("checks", set_up_referees, tear_down, TEST(a_job_without_its_checks_is_refused),
      TEST(what_a_referee_takes_is_paid_and_names_the_check),
      TEST(a_seed_is_of_dice_result_check_and_attempt),
      TEST(one_reject_holds_a_result_and_a_second_owners_refutes_it),
      TEST(a_lone_reject_is_overruled_and_its_referee_is_asked_no_more),
      TEST(a_hostile_referee_gets_neither_the_maker_refused_nor_the_work),
      TEST(two_accounts_of_one_owner_are_one_referee),
      TEST(no_account_judges_or_makes_for_another_of_its_owner),
      TEST(a_grouping_is_the_operators_and_of_accounts_that_exist),
      TEST(what_was_begun_before_two_became_one_owners_does_not_count),
      TEST(with_one_referee_the_client_confirms_or_overrules), TEST(a_client_alone_refutes_nothing),
      TEST(a_referee_of_the_clients_owner_needs_another_one),
      TEST(a_client_accepts_while_a_referee_is_at_it), TEST(a_word_about_anything_else_is_refused),
      TEST(where_all_who_could_make_it_have_judged_it_the_job_ends_with_a_reason),
      TEST(who_was_refuted_may_make_it_again_where_nobody_else_is),
      TEST(an_idle_judge_starts_no_second_copy_of_what_it_judged),
      TEST(an_idle_lane_of_who_has_not_judged_starts_the_copy),
      TEST(an_idle_judge_takes_nothing_over_that_it_judged),
      TEST(what_failed_after_a_look_is_looked_at_again),
      TEST(what_earlier_rules_left_without_a_look_is_looked_at),
      TEST(what_a_judges_owner_was_sent_is_not_sent_again),
      TEST(a_judge_is_told_from_what_it_judged_however_much_of_that_waits),
      TEST(refutations_close_the_asks_of_their_account_for_longer_each_time),
      TEST(closed_asks_come_back_by_themselves), TEST(work_that_checks_accept_makes_the_count_fade),
      TEST(who_was_refuted_is_told_apart_from_who_merely_failed),
      TEST(too_many_refuted_results_fail_the_subtask),
      TEST(who_is_unsure_makes_room_for_another_and_twice_accuses_nobody),
      TEST(where_nobody_else_is_it_comes_back_to_who_left_it_unsure),
      TEST(what_nobody_can_judge_fails_the_job_by_nobodys_fault),
      TEST(another_referee_goes_before_one_who_was_unsure),
      TEST(a_verdict_of_another_seed_or_none_is_the_referees_fault),
      TEST(what_two_do_not_find_is_paid_and_made_again_without_a_word_against_anybody),
      TEST(a_lost_factor_of_a_check_is_nobodys_fault_and_the_check_is_tried_again),
      TEST(a_factor_that_is_lost_for_good_leaves_the_result_paid),
      TEST(what_is_accused_and_then_lost_is_paid), TEST(a_check_that_fails_for_good_proves_nothing),
      TEST(who_cancels_pays_for_what_is_held), TEST(nobody_judges_results_of_its_own),
      TEST(only_the_role_makes_a_referee), TEST(a_referee_is_required_once),
      TEST(two_agents_of_one_slot_judge_each_other_at_once),
      TEST(a_maker_that_comes_back_judges_at_once),
      TEST(an_idle_referee_that_comes_back_takes_what_waits_in_another_part),
      TEST(a_lease_without_work_to_come_makes_room_for_other_jobs_at_once),
      TEST(without_a_budget_checks_wait_for_a_referee_who_gives_away),
      TEST(a_lost_referee_is_replaced_and_its_late_verdict_does_not_count_twice),
      TEST(a_check_that_nobody_wants_any_more_may_be_lost), TEST(a_referee_that_comes_back_goes_on),
      TEST(who_left_is_paid_for_what_is_taken_later), TEST(small_sums_neither_vanish_nor_double),
      TEST(an_epoch_shows_the_secret_that_it_promised))
