/* Random markets from a printed seed: after every command the money adds up, the incremental hash
 * equals the full walk, budgets hold; and an exchange loaded from a snapshot goes on exactly like
 * the original. */
#include "tests/support/checks_model.h"
#include "tests/support/disputes_model.h"
#include "tests/support/market_model.h"

#include "base/checked.h"
#include "ledger/accounts.h"
#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOSING_NS (20 * NS_PER_S) /* a closing job waits this long for withdrawn attempts */
enum { SEEDS = 40, COMMANDS = 1500, CALM_COMMANDS = 10000, ROWS = 300, ACCEPTED_SLOTS = 1 << 15 };

struct money {
    int64_t available[64], held[64];
};

/* Balances kept by nothing but the ledger records. */
static void replay_record(struct money *money, const struct ledger_record *record)
{
    uint32_t debit = record->debit;
    uint32_t credit = record->credit;
    int64_t amount = record->amount_micro;
    if (record->kind == LEDGER_TRANSFER) {
        money->available[debit] -= amount;
        money->available[credit] += amount;
    } else if (record->kind == LEDGER_HOLD) {
        money->available[debit] -= amount;
        money->held[debit] += amount;
    } else if (record->kind == LEDGER_CAPTURE || record->kind == LEDGER_FEE) {
        money->held[debit] -= amount;
        money->available[credit] += amount;
    } else if (record->kind == LEDGER_RELEASE || record->kind == LEDGER_EXPIRE) {
        money->held[debit] -= amount;
        money->available[debit] += amount;
    }
}

static void check_money(const struct model *model, struct money *money)
{
    for (size_t i = 0; i < model->effects.count; i++) {
        if (model->effects.items[i].type == EFFECT_LEDGER) {
            replay_record(money, &model->effects.items[i].ledger);
        }
    }
    int64_t sum = 0;
    for (uint32_t i = 0; i < exchange_account_count(model->exchange); i++) {
        struct exchange_account_row row;
        ck_assert(exchange_account(model->exchange, i, &row));
        ck_assert_int_eq(row.available_micro, money->available[i]);
        ck_assert_int_eq(row.held_micro, money->held[i]);
        ck_assert(i == ACCOUNT_MINT || row.available_micro >= 0);
        ck_assert_int_ge(row.held_micro, 0);
        sum += row.available_micro + row.held_micro;
    }
    ck_assert_int_eq(sum, 0);
}

static void check_jobs(const struct model *model)
{
    static struct exchange_job_row rows[ROWS];
    for (uint32_t owner = 3; owner < 3 + MODEL_CONSUMERS; owner++) {
        size_t count = exchange_jobs(model->exchange, owner, rows, ROWS);
        struct exchange_account_row account;
        ck_assert(exchange_account(model->exchange, owner, &account));
        int64_t held = 0;
        for (size_t i = 0; i < count; i++) {
            const struct exchange_job_row *row = &rows[i];
            ck_assert_int_le(row->charged_micro + row->reserved_micro, row->budget_micro); /* P5 */
            ck_assert_uint_eq(row->waiting + row->running + row->checking + row->accepted +
                                  row->failed + row->cancelled,
                              row->subtasks);
            struct exchange_job_row alone;
            ck_assert(exchange_job(model->exchange, &row->job, &alone));
            ck_assert_uint_eq(row->reason, alone.reason);
            held += row->state == 0 ? row->budget_micro - row->charged_micro : 0;
        }
        ck_assert_uint_lt(count, ROWS);
        ck_assert_int_eq(account.held_micro, held); /* P2: escrow held = open holds */
    }
}

/* The deadlines of jobs by their place in the model; 0: none. */
struct deadlines {
    int64_t of_job_ns[MODEL_JOBS_MAX];
    int64_t met_ns[MODEL_JOBS_MAX]; /* the first command at or after the deadline; 0: none yet */
    size_t job_count;
};

/* Returns the first place of the job, or the number of jobs. A repeated command names its job
 * again. */
static size_t place_of(const struct model *model, const struct id128 *job)
{
    size_t place = 0;
    while (place < model->job_count && !id128_equal(&model->jobs[place], job)) {
        place++;
    }
    return place;
}

/* Gives some new jobs a deadline. No die is drawn, so the markets stay those of their seeds. */
static void set_deadline(struct model *model)
{
    if (model->command.type == EXCHANGE_SUBMIT && model->index % 7 == 0 &&
        place_of(model, &model->command.id) == model->job_count) {
        model->command.submit.deadline_ns =
            model->now_ns + (int64_t)(model->index % 120) * NS_PER_S;
        model->command.submit.is_expectation_stated = model->index % 2 == 0;
    }
}

static void note_deadline(struct deadlines *deadlines, const struct model *model)
{
    if (model->job_count > deadlines->job_count) {
        const size_t first = place_of(model, &model->command.id);
        const bool is_repeat = first < deadlines->job_count;
        deadlines->of_job_ns[deadlines->job_count++] =
            is_repeat ? deadlines->of_job_ns[first] : model->command.submit.deadline_ns;
    }
}

/* A job past its deadline buys and holds nothing, and ends within the time that its withdrawn
 * attempts get; no other job ends for this reason. Returns how many jobs missed their deadlines. */
static size_t check_deadlines(struct deadlines *deadlines, const struct model *model)
{
    const int64_t now_ns = model->command.log_time_ns;
    size_t missed = 0;
    for (size_t i = 0; i < model->job_count; i++) {
        const int64_t deadline_ns = deadlines->of_job_ns[i];
        const bool is_past = deadline_ns != 0 && now_ns >= deadline_ns;
        struct exchange_job_row row;
        if (is_past && deadlines->met_ns[i] == 0) {
            deadlines->met_ns[i] = now_ns;
        }
        if (!exchange_job(model->exchange, &model->jobs[i], &row)) {
            continue; /* forgotten */
        }
        const bool is_late = row.reason == JOB_REASON_DEADLINE;
        ck_assert_int_eq(row.deadline_ns, deadline_ns);
        ck_assert(!is_late || is_past);
        if (is_past) {
            ck_assert_uint_eq(row.waiting + row.checking, 0);
            ck_assert(row.state != JOB_OPEN || now_ns < deadlines->met_ns[i] + CLOSING_NS);
            ck_assert(row.state == JOB_OPEN || !is_late || row.state == JOB_CANCELLED);
            ck_assert(row.state == JOB_OPEN || !is_late || row.cancelled > 0);
        }
        missed += is_late;
    }
    return missed;
}

/* Returns how many disputes there are in all jobs. */
static uint64_t check_disputes(const struct model *model)
{
    uint64_t count = 0;
    for (size_t i = 0; i < model->job_count; i++) {
        count += disputes_model_check(model->exchange, &model->jobs[i]);
    }
    return count;
}

static bool is_refused(const struct exchange_effects *effects)
{
    for (size_t i = 0; i < effects->count; i++) {
        if (effects->items[i].type == EFFECT_REJECT) {
            return true;
        }
    }
    return false;
}

static size_t results_accepted(const struct exchange_effects *effects)
{
    size_t count = 0;
    for (size_t i = 0; i < effects->count; i++) {
        const struct ledger_record *record = &effects->items[i].ledger;
        count += effects->items[i].type == EFFECT_LEDGER && record->kind == LEDGER_RESULT &&
                 record->status == 0;
    }
    return count;
}

/* P3: a subtask is accepted once, whatever was sent how often. The set is of fingerprints: 64 bits
 * do. */
static void check_accepted_once(const struct exchange_effects *effects,
                                uint64_t accepted[ACCEPTED_SLOTS])
{
    for (size_t i = 0; i < effects->count; i++) {
        const struct ledger_record *record = &effects->items[i].ledger;
        if (effects->items[i].type != EFFECT_LEDGER || record->kind != LEDGER_RESULT) {
            continue;
        }
        ck_assert(record->status < 2 || record->charge_micro == 0);
        if (record->status != 0) {
            continue;
        }
        uint64_t key;
        memcpy(&key, record->job.bytes, sizeof key);
        key = (key ^ record->index) * UINT64_C(0x9e3779b97f4a7c15);
        size_t at = key >> 49;
        while (accepted[at] != 0) {
            ck_assert_msg(accepted[at] != key, "subtask %u was accepted twice", record->index);
            at = (at + 1) % ACCEPTED_SLOTS;
        }
        accepted[at] = key;
    }
}

static void check_checks(struct checks_model *checks, const struct model *model)
{
    for (size_t i = 0; i < model->effects.count; i++) {
        const char *wrong = checks_model_read(checks, &model->command, &model->effects.items[i]);
        ck_assert_msg(wrong == NULL, "command %llu of type %d, effect %zu: %s",
                      (unsigned long long)model->index, (int)model->command.type, i, wrong);
    }
}

static size_t open_jobs(const struct model *model)
{
    static struct exchange_job_row rows[ROWS];
    size_t open = 0;
    for (uint32_t owner = 3; owner < 3 + MODEL_CONSUMERS; owner++) {
        size_t count = exchange_jobs(model->exchange, owner, rows, ROWS);
        for (size_t i = 0; i < count; i++) {
            open += rows[i].state == 0;
        }
    }
    return open;
}

/* Liveness: once the faults stop, every job that the market can run ends. */
static void check_all_ends(struct model *model, struct money *money, struct checks_model *checks)
{
    model_calm(model);
    size_t open = open_jobs(model);
    for (int i = 0; i < CALM_COMMANDS && open > 0; i++) {
        model_next(model);
        ck_assert_int_eq(model_apply(model), EXCHANGE_OK);
        check_money(model, money);
        check_checks(checks, model);
        open = i % 64 == 63 ? open_jobs(model) : open;
    }
    ck_assert_msg(open == 0, "%zu jobs never end", open);
}

static struct exchange *reload(const struct model *model)
{
    size_t length;
    size_t again_length;
    uint8_t *bytes = exchange_save(model->exchange, &length);
    ck_assert_ptr_nonnull(bytes);
    struct exchange *loaded = exchange_load(&model->limits, bytes, length);
    ck_assert_msg(loaded != NULL, "the snapshot at command %llu does not load",
                  (unsigned long long)model->index);
    uint8_t *again = exchange_save(loaded, &again_length);
    ck_assert_uint_eq(length, again_length);
    ck_assert_mem_eq(bytes, again, length);
    free(bytes);
    free(again);
    return loaded;
}

/* The bytes between the fields may differ. */
static bool same_ask(const struct exchange_ask_note *a, const struct exchange_ask_note *b)
{
    return id128_equal(&a->device, &b->device) && id128_equal(&a->order, &b->order) &&
           a->stands == b->stands && a->slots == b->slots && a->price_micro == b->price_micro &&
           a->good_till_ns == b->good_till_ns && a->max_term_ns == b->max_term_ns &&
           a->terms.is_interruptible == b->terms.is_interruptible &&
           a->terms.notice_ns == b->terms.notice_ns &&
           a->terms.minimum_run_ns == b->terms.minimum_run_ns;
}

/* Two effects are the same when all that they carry is, wherever it lies. */
static bool same_effect(const struct exchange_effect *ours, const struct exchange_effect *theirs)
{
    struct exchange_effect left = *ours;
    struct exchange_effect right = *theirs;
    if (left.type == EFFECT_DISPATCH && right.type == EFFECT_DISPATCH) {
        if (left.work.given_count != right.work.given_count) {
            return false;
        }
        for (uint32_t i = 0; i < left.work.given_count; i++) {
            const struct exchange_given *a = &left.work.given[i];
            const struct exchange_given *b = &right.work.given[i];
            if (a->length != b->length || memcmp(a->bytes, b->bytes, a->length) != 0) {
                return false;
            }
        }
        if (left.work.saved.length != right.work.saved.length ||
            (left.work.saved.length > 0 &&
             memcmp(left.work.saved.bytes, right.work.saved.bytes, left.work.saved.length) != 0)) {
            return false;
        }
        left.work.saved.bytes = right.work.saved.bytes = NULL;
        left.work.given = right.work.given = NULL;
    }
    if (left.type == EFFECT_ASK && right.type == EFFECT_ASK) {
        if (!same_ask(&left.ask, &right.ask)) {
            return false;
        }
        memset(&left.ask, 0, sizeof left.ask);
        memset(&right.ask, 0, sizeof right.ask);
    }
    return memcmp(&left, &right, sizeof left) == 0;
}

static void step_twin(const struct model *model, struct exchange *twin,
                      struct exchange_effects *effects)
{
    exchange_effects_clear(effects);
    ck_assert_int_eq(exchange_step(twin, &model->command, effects), EXCHANGE_OK);
    ck_assert_uint_eq(model->effects.count, effects->count);
    for (size_t i = 0; i < effects->count; i++) {
        const struct exchange_effect *ours = &model->effects.items[i];
        const struct exchange_effect *theirs = &effects->items[i];
        ck_assert_msg(same_effect(ours, theirs),
                      "command %llu of type %d: effect %zu of %zu differs, types %d and %d, "
                      "accounts %u and %u",
                      (unsigned long long)model->index, (int)model->command.type, i, effects->count,
                      (int)ours->type, (int)theirs->type, ours->account, theirs->account);
    }
    struct hash32 hash = exchange_state_hash(model->exchange);
    struct hash32 other = exchange_state_hash(twin);
    ck_assert_msg(hash32_equal(&hash, &other), "command %llu of type %d: the loaded copy differs",
                  (unsigned long long)model->index, (int)model->command.type);
}

START_TEST(a_random_market_keeps_its_promises)
{
    uint64_t seed = 1 + (uint64_t)_i;
    static struct model model;
    struct money money = {{0}, {0}};
    static uint64_t accepted_set[ACCEPTED_SLOTS];
    static struct deadlines deadlines;
    struct exchange *twin = NULL;
    struct exchange_effects twin_effects = {0};
    struct checks_model checks = {0};
    size_t accepted = 0;
    size_t refused = 0;
    size_t late = 0;
    int halted = 0;
    printf("seed %llu\n", (unsigned long long)seed);
    model_init(&model, seed);
    memset(&deadlines, 0, sizeof deadlines); /* of the seed before */
    check_money(&model, &money);
    for (int i = 0; i < COMMANDS; i++) {
        if (i % 250 == 100) { /* from here on a loaded copy runs beside */
            exchange_destroy(&twin);
            twin = reload(&model);
        }
        model_next(&model);
        set_deadline(&model);
        ck_assert_int_eq(model_apply(&model), EXCHANGE_OK);
        note_deadline(&deadlines, &model);
        check_money(&model, &money);
        check_accepted_once(&model.effects, accepted_set);
        check_checks(&checks, &model);
        if (i % 4 == 0) {
            check_jobs(&model);
        }
        late = check_deadlines(&deadlines, &model);
        if (i % 16 == 0) {
            struct hash32 hash = exchange_state_hash(model.exchange);
            struct hash32 walked = exchange_state_hash_walk(model.exchange);
            ck_assert_msg(hash32_equal(&hash, &walked), "command %d: hash and walk differ", i);
        }
        if (twin != NULL) {
            step_twin(&model, twin, &twin_effects);
        }
        halted += exchange_halted(model.exchange);
        refused += is_refused(&model.effects);
        accepted += results_accepted(&model.effects);
    }
    const bool was_open = halted < COMMANDS * 3 / 5; /* else there is not much to be seen */
    ck_assert_msg(accepted > 20 || !was_open, "only %zu results accepted: the market hardly ran",
                  accepted);
    ck_assert_uint_gt(refused, 0);
    ck_assert_msg(late > 0 || !was_open, "no job missed its deadline");
    check_all_ends(&model, &money, &checks);
    ck_assert(checks.accepted > 0 || !was_open);
    checks_model_fini(&checks);
    exchange_destroy(&twin);
    exchange_effects_fini(&twin_effects);
    model_fini(&model);
}
END_TEST

/* The markets above would watch over nothing if no verdict came up. The counts only
 * grow, so the markets after those that reach the bounds would change nothing. */
START_TEST(random_markets_come_to_every_verdict)
{
    static struct model model;
    uint64_t refuted = 0;
    uint64_t unsure = 0;
    uint64_t disputes = 0;
    enum {
        REFUTED_ABOVE = 5,
        DISPUTES_ABOVE = 20,
        SEEDS_MOST = 3 * SEEDS
    }; /* two have to say so */
    for (uint64_t seed = 1; seed <= SEEDS_MOST &&
                            (refuted <= REFUTED_ABOVE || unsure == 0 || disputes <= DISPUTES_ABOVE);
         seed++) {
        struct checks_model checks = {0};
        model_init(&model, seed);
        for (int i = 0; i < COMMANDS; i++) {
            model_next(&model);
            ck_assert_int_eq(model_apply(&model), EXCHANGE_OK);
            check_checks(&checks, &model);
            disputes += i % 16 == 0 ? check_disputes(&model) : 0;
        }
        refuted += checks.refuted;
        unsure += checks.unsure;
        checks_model_fini(&checks);
        model_fini(&model);
    }
    ck_assert_uint_gt(refuted, REFUTED_ABOVE);
    ck_assert_uint_gt(unsure, 0);
    ck_assert_uint_gt(disputes, DISPUTES_ABOVE);
}
END_TEST

START_TEST(a_damaged_snapshot_is_refused_or_harmless)
{
    static struct model model;
    model_init(&model, 77);
    for (int i = 0; i < 400; i++) {
        model_next(&model);
        ck_assert_int_eq(model_apply(&model), EXCHANGE_OK);
    }
    size_t length;
    uint8_t *bytes = exchange_save(model.exchange, &length);
    struct random random = random_seeded(5);
    for (int i = 0; i < 300; i++) {
        size_t at = random_below(&random, length);
        uint8_t keep = bytes[at];
        bytes[at] = (uint8_t)(keep ^ (1 + random_below(&random, 255)));
        struct exchange *loaded = exchange_load(
            &model.limits, bytes, i % 3 == 0 ? random_below(&random, length) : length);
        exchange_destroy(&loaded); /* one that loads is caught by its hash; nothing may crash */
        bytes[at] = keep;
    }
    free(bytes);
    model_fini(&model);
}
END_TEST

SUITE("exchange properties", NULL, NULL, LOOP(a_random_market_keeps_its_promises, 0, SEEDS),
      TEST(random_markets_come_to_every_verdict), TEST(a_damaged_snapshot_is_refused_or_harmless))
