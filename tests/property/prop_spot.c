/* Random markets of interruptible leases, of jobs that save their state and of others, against a
 * slow model of what is saved: every lease that is taken was due to be, at the price that is due,
 * and nobody takes one while a slot is free; whoever took from another never loses to him on that
 * device, by price or by value; the limit that explain names takes one; and when nobody comes or
 * changes his limit, taking comes to an end. Halfway the market goes on from its snapshot. */
#include "protocol/message.h"
#include "tests/support/hand_market.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEEDS = 60,
    DEVICES = 3,
    SLOTS = 3,
    ACCOUNTS = 4, /* 3 to 6; the first offers as well */
    SELLER = 3,
    BIDS = 10,
    SECONDS = 150,
    LEASES = 4096,
    SUBTASKS = 1000, /* of each job */
};

static struct random dice;

struct seen_lease {
    struct id128 job;
    uint32_t device, slots;
    int64_t granted_ns, price_micro; /* granted 0: promised */
    struct exchange_terms terms;
    bool has_ended, was_told;
    struct exchange_work work[64]; /* under way */
    size_t work_count;
};
/* A checkpoint, as the slow model has it: a number stands for its bytes. */
struct seen_saved {
    uint32_t bytes, attempt, missing; /* attempt 0: none */
};
struct seen_job {
    struct id128 id;
    uint32_t account;
    int64_t limit_micro; /* of a slot-hour; or, by value, of so much work an hour */
    enum rate rate;
    bool has_checkpoints;
    struct seen_saved saved[SUBTASKS];
};

static struct seen_lease leases[LEASES];
static uint64_t last_fill;
static struct seen_job jobs[BIDS];
static uint32_t value_takers, value_losers, named_count;
static uint32_t job_count, taken_count, saved_count, free_count, drop_count;
static struct exchange_terms terms[DEVICES];
static uint32_t device_slots[DEVICES];
static int64_t operations
    [DEVICES]; /* that they do in a second: no two prices of a unit of work are quite the same */
static bool took[DEVICES][BIDS][BIDS]; /* there, the first from the second */
static bool is_calm;                   /* whatever is not taken comes to its end */

static uint32_t draw(uint32_t bound)
{
    return (uint32_t)random_below(&dice, bound);
}

static uint32_t job_index(struct id128 id)
{
    uint32_t i = 0;
    while (!id128_equal(&jobs[i].id, &id)) {
        i++;
        ck_assert_uint_lt(i, job_count);
    }
    return i;
}

static struct seen_lease *lease_of(uint64_t number)
{
    ck_assert_uint_lt(number, LEASES);
    return &leases[number];
}

static uint32_t free_slots(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < DEVICES; i++) {
        count += device_slots[i];
    }
    for (uint32_t i = 0; i < LEASES; i++) {
        count -= leases[i].granted_ns != 0 && !leases[i].has_ended ? leases[i].slots : 0;
    }
    return count;
}

/* Returns the limit for a slot-hour of that device; devices are numbered from 1. */
static int64_t limit_on(const struct seen_job *job, uint32_t device)
{
    const int64_t band = 10 * price;
    const int64_t limit = job->rate == RATE_NONE
                              ? job->limit_micro
                              : rate_limit(job->limit_micro, operations[device - 1]);
    return limit < band ? limit : band;
}

/* Another's fill was just seen: it is what takes this lease. */
static void on_taken(const struct seen_lease *lease)
{
    const struct seen_lease *by = lease_of(last_fill);
    const uint32_t loser = job_index(lease->job);
    const uint32_t winner = job_index(by->job);
    ck_assert_uint_eq(by->device, lease->device);
    ck_assert_uint_le(by->slots, lease->slots);
    ck_assert(lease->terms.is_interruptible);
    ck_assert_int_ge(market.now_ns, lease->granted_ns + lease->terms.minimum_run_ns);
    ck_assert_uint_ne(jobs[winner].account, jobs[loser].account);
    ck_assert_uint_ne(jobs[winner].account, SELLER);
    ck_assert_int_eq(by->price_micro,
                     limit_on(&jobs[loser], by->device) + EXCHANGE_INCREMENT_MICRO);
    ck_assert_int_le(by->price_micro, limit_on(&jobs[winner], by->device));
    ck_assert_uint_eq(free_slots(), 0);
    took[by->device - 1][winner][loser] = true;
    ck_assert(!took[by->device - 1][loser][winner]);
    value_takers += jobs[winner].rate != RATE_NONE;
    value_losers += jobs[loser].rate != RATE_NONE;
    taken_count++;
}

static void on_end(uint64_t number, uint32_t reason)
{
    struct seen_lease *lease = lease_of(number);
    if (reason == LEASE_END_PREEMPTED && !lease->was_told) {
        on_taken(lease);
    }
    lease->has_ended = true;
    lease->work_count = 0;
}

/* It goes on from the newest that its job has of it. */
static void check_given(const struct seen_job *job, const struct exchange_work *work)
{
    const struct seen_saved *saved = &job->saved[work->index];
    ck_assert_uint_eq(work->saved_by, saved->attempt);
    ck_assert_uint_eq(work->saved.length, saved->attempt == 0 ? 0 : sizeof saved->bytes);
    if (saved->attempt != 0) {
        ck_assert(memcmp(work->saved.bytes, &saved->bytes, sizeof saved->bytes) == 0);
    }
}

/* Follows what the result does to the checkpoint, and returns true when the result is paid. */
static bool is_paid(struct seen_job *job, const struct exchange_work *work, uint8_t outcome,
                    bool is_lost, uint32_t bytes)
{
    struct seen_saved *saved = &job->saved[work->index];
    const bool went_on = saved->attempt != 0 && saved->attempt == work->saved_by;
    const bool is_new =
        job->has_checkpoints && bytes != 0 && (saved->attempt == 0 || saved->bytes != bytes);
    if (outcome == OUTCOME_PREEMPTED && is_new) {
        *saved = (struct seen_saved){.bytes = bytes, .attempt = work->attempt};
        saved_count++;
    } else if (outcome == OUTCOME_PROGRAM_FAILED ||
               (outcome == OUTCOME_INPUT_MISSING && is_lost && went_on && ++saved->missing == 2)) {
        drop_count += went_on;
        *saved = went_on ? (struct seen_saved){0} : *saved;
    } else if (outcome == OUTCOME_OK) {
        *saved = (struct seen_saved){0};
    }
    free_count += outcome == OUTCOME_PREEMPTED && job->has_checkpoints && !is_new;
    return outcome == OUTCOME_PREEMPTED ? is_new || !job->has_checkpoints
                                        : outcome != OUTCOME_INPUT_MISSING;
}

static void read_effects(void)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        if (effect->type == EFFECT_LEDGER && effect->ledger.kind == LEDGER_FILL) {
            last_fill = effect->ledger.lease;
            *lease_of(last_fill) =
                (struct seen_lease){.job = effect->ledger.job,
                                    .device = effect->ledger.device.bytes[0],
                                    .slots = effect->ledger.slots,
                                    .price_micro = effect->ledger.price_micro,
                                    .terms = terms[effect->ledger.device.bytes[0] - 1]};
        } else if (effect->type == EFFECT_LEASE_GRANT) {
            lease_of(effect->grant.lease)->granted_ns = market.now_ns;
        } else if (effect->type == EFFECT_LEASE_NOTICE) {
            on_taken(lease_of(effect->lease.lease));
            lease_of(effect->lease.lease)->was_told = true;
        } else if (effect->type == EFFECT_LEASE_END) {
            on_end(effect->lease.lease, effect->lease.reason);
        } else if (effect->type == EFFECT_DISPATCH) {
            struct seen_lease *lease = lease_of(effect->work.lease);
            ck_assert_uint_lt(lease->work_count, 64);
            check_given(&jobs[job_index(lease->job)], &effect->work);
            lease->work[lease->work_count++] = effect->work;
        }
    }
    check_hash();
}

static void open_market(uint64_t seed)
{
    memset(leases, 0, sizeof leases);
    memset(took, 0, sizeof took);
    is_calm = false;
    job_count = taken_count = saved_count = free_count = drop_count = 0;
    value_takers = value_losers = named_count = 0;
    memset(jobs, 0, sizeof jobs);
    dice = random_seeded(seed);
    struct exchange_limits limits = exchange_limits_default();
    struct exchange_genesis_account accounts[ACCOUNTS];
    /* The market is loaded anew for each limit that is tried, and its tables are made as large as
     * they may become. */
    limits.asks = limits.jobs = limits.cells = limits.classes = 64;
    limits.leases = 1024;
    limits.attempts = 8192;
    memset(accounts, 0, sizeof accounts);
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        accounts[i].key.bytes[0] = (uint8_t)(i + 1);
        accounts[i].roles = ROLE_CONSUMER | (SELLER == i + 3 ? ROLE_PROVIDER : 0U);
        accounts[i].credits_micro = 1000000 * MICRO_PER_CREDIT;
    }
    open_market_of(&limits, 10 * price, accounts, ACCOUNTS);
}

static void offer_all(void)
{
    static struct attribute facts[DEVICES][2];
    struct exchange_device devices[DEVICES];
    for (uint32_t i = 0; i < DEVICES; i++) {
        device_slots[i] = 1 + draw(SLOTS);
        operations[i] = RATE_UNIT + draw(6) * (RATE_UNIT / (price / EXCHANGE_INCREMENT_MICRO));
        facts[i][0] = (struct attribute){.name = "bf16", .number = operations[i]};
        facts[i][1] = (struct attribute){.name = "kind", .is_text = true, .text = "cpu"};
        devices[i] = (struct exchange_device){.device = {{(uint8_t)(i + 1)}},
                                              .slots = device_slots[i],
                                              .attributes = facts[i],
                                              .attribute_count = 2,
                                              .label = "a cpu"};
    }
    struct exchange_command made = command(EXCHANGE_ADVERTISE, SELLER);
    made.advertise = (struct exchange_advertise){devices, DEVICES};
    apply(&made);
    for (uint32_t i = 0; i < DEVICES; i++) {
        terms[i] = (struct exchange_terms){.is_interruptible = draw(4) > 0};
        if (terms[i].is_interruptible) {
            terms[i].notice_ns = draw(4) * NS_PER_S;
            terms[i].minimum_run_ns = draw(3) * 4 * NS_PER_S;
        }
        made = command(EXCHANGE_ASK, SELLER);
        made.ask = (struct exchange_ask){.device = devices[i].device,
                                         .slots = device_slots[i],
                                         .price_micro = price,
                                         .terms = terms[i]};
        apply(&made);
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    }
}

/* Nobody's job comes to its end, nor its budget. */
static void add_bid(void)
{
    struct exchange_command made = submit_of(SUBTASKS, 50000);
    struct seen_job *job = &jobs[job_count];
    job->account = SELLER + 1 + draw(ACCOUNTS - 1);
    job->limit_micro = price + (int64_t)draw(8) * EXCHANGE_INCREMENT_MICRO / 2;
    job->rate = draw(3) == 0 ? RATE_BF16 : RATE_NONE;
    job->id = made.id;
    job_count++;
    made.account = job->account;
    made.submit.cap_micro = job->limit_micro;
    made.submit.rate = job->rate;
    made.submit.at_most = 1 + draw(3);
    made.submit.retries = 100;
    made.submit.crash_limit = 100;
    made.submit.has_checkpoints = job->has_checkpoints = draw(3) > 0;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    read_effects();
}

static void answer(uint64_t number, const struct exchange_work *work, uint8_t outcome)
{
    const struct seen_lease *lease = lease_of(number);
    struct seen_job *job = &jobs[job_index(lease->job)];
    const uint32_t bytes = draw(4); /* 0: it saves nothing */
    /* The broker lacks what the result says is missing; else the provider lies. */
    const bool is_lost = outcome == OUTCOME_INPUT_MISSING && draw(2) == 0;
    struct exchange_result one = {.job = lease->job,
                                  .index = work->index,
                                  .attempt = work->attempt,
                                  .lease = number,
                                  .device = {{(uint8_t)lease->device}},
                                  .manifest = {{9}},
                                  .outcome = outcome,
                                  .busy_ns = NS_PER_S,
                                  .saved = bytes == 0 ? NULL : (const uint8_t *)&bytes,
                                  .saved_length = bytes == 0 ? 0 : sizeof bytes,
                                  .is_missing = is_lost};
    struct exchange_command made = command(EXCHANGE_RESULTS, SELLER);
    made.results = (struct exchange_results){.results = &one, .count = 1};
    apply(&made);
    ck_assert_uint_ne(record_of(LEDGER_RESULT)->status, ATTEMPT_LATE);
    const bool was_paid = record_of(LEDGER_RESULT)->status != ATTEMPT_FAILED_UNPAID;
    ck_assert_int_eq(was_paid, is_paid(job, work, outcome, is_lost, bytes));
    read_effects();
}

/* Whoever holds a lease goes on with it; who was told to leave answers at once, or lets the notice
 * pass. */
static void work_on(void)
{
    for (uint64_t i = 1; i < LEASES; i++) {
        struct seen_lease *lease = &leases[i];
        if (lease->granted_ns == 0 || lease->has_ended || lease->work_count == 0 ||
            (lease->was_told && draw(2) == 0)) {
            continue;
        }
        const struct exchange_work work = lease->work[0];
        memmove(lease->work, lease->work + 1, --lease->work_count * sizeof work);
        static const uint8_t outcomes[] = {OUTCOME_OK, OUTCOME_OK, OUTCOME_OK,
                                           OUTCOME_PROGRAM_FAILED, OUTCOME_INPUT_MISSING};
        answer(i, &work, lease->was_told ? OUTCOME_PREEMPTED : outcomes[draw(is_calm ? 1 : 5)]);
    }
}

static void pass_second(void)
{
    market.now_ns += NS_PER_S;
    tick();
    read_effects();
    work_on();
}

static struct id128 asked_with(const struct seen_job *job, int64_t limit_micro)
{
    struct exchange_command made = command(EXCHANGE_REPLACE, job->account);
    made.replace = (struct exchange_replace){.order = job->id,
                                             .part = EXCHANGE_ANY_PART,
                                             .has_price = true,
                                             .price_micro = limit_micro,
                                             .rate = job->rate};
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    return job->id;
}

/* Returns true when the job takes a lease once it is replaced to bid that; everything is then as
 * before. */
static bool takes_with(const struct seen_job *job, int64_t limit_micro)
{
    const struct exchange_limits limits = exchange_limits_now(market.exchange);
    const struct market before = market;
    size_t length;
    uint8_t *bytes = exchange_save(market.exchange, &length);
    ck_assert_ptr_nonnull(bytes);
    const struct id128 id = asked_with(job, limit_micro);
    bool takes = false;
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        takes = takes || (effect->type == EFFECT_LEDGER && effect->ledger.kind == LEDGER_FILL &&
                          id128_equal(&effect->ledger.job, &id));
    }
    struct exchange_effects effects = market.effects; /* may have grown */
    exchange_destroy(&market.exchange);
    market = before;
    market.effects = effects;
    market.exchange = exchange_load(&limits, bytes, length);
    ck_assert_ptr_nonnull(market.exchange);
    free(bytes);
    return takes;
}

/* Checks every job that is told a limit with which it takes a lease. The limit is above its own.
 * The job that is replaced to bid the limit gets a lease at once, and one that bids one less gets
 * none. Each is tried on a copy, and everything is then as before. */
static void check_named(void)
{
    for (uint32_t i = 0; i < job_count; i++) {
        struct exchange_explanation why;
        const struct seen_job *job = &jobs[i];
        ck_assert(exchange_explain_job(market.exchange, &job->id, 0, &why));
        if (why.takes_at_micro >= 0) {
            named_count++;
            ck_assert_int_gt(why.takes_at_micro, job->limit_micro);
            ck_assert(takes_with(job, why.takes_at_micro));
            ck_assert(!takes_with(job, why.takes_at_micro - 1));
        }
    }
}

START_TEST(taking_is_due_and_comes_to_an_end)
{
    printf("seed %d\n", _i);
    open_market((uint64_t)_i);
    offer_all();
    uint32_t slots = free_slots();
    for (uint32_t i = 0; i < BIDS; i++) {
        add_bid();
        for (uint32_t k = draw(4); k > 0; k--) {
            pass_second();
        }
        check_named();
    }
    reload();
    is_calm = true;
    uint32_t before = taken_count;
    uint32_t last = taken_count;
    for (uint32_t i = 0; i < SECONDS; i++) {
        pass_second();
        last = i < SECONDS / 2 ? taken_count : last;
    }
    /* Each time the rank of some slots has risen, and there are no more ranks than bids. */
    ck_assert_uint_le(taken_count - before, slots * BIDS);
    ck_assert_uint_eq(taken_count, last);
    tear_down();
}
END_TEST

static uint32_t all_taken, all_saved, all_free, all_dropped, all_value_takers, all_value_losers,
    all_named;

START_TEST(leases_are_taken_and_states_saved_at_all)
{
    for (uint64_t seed = 0; seed < 24; seed++) {
        open_market(seed);
        offer_all();
        for (uint32_t i = 0; i < BIDS; i++) {
            add_bid();
            pass_second();
            check_named();
        }
        all_value_takers += value_takers;
        all_value_losers += value_losers;
        all_named += named_count;
        all_taken += taken_count;
        all_saved += saved_count;
        all_free += free_count;
        all_dropped += drop_count;
        tear_down();
    }
    ck_assert_uint_gt(all_taken, 8);
    ck_assert_uint_gt(all_saved, 4);
    ck_assert_uint_gt(all_free, 2);
    ck_assert_uint_gt(all_dropped, 0);
    ck_assert_uint_gt(all_value_takers, 0);
    ck_assert_uint_gt(all_value_losers, 0);
    ck_assert_uint_gt(all_named, 8);
}
END_TEST

SUITE("spot", NULL, NULL, LOOP(taking_is_due_and_comes_to_an_end, 0, SEEDS),
      TEST(leases_are_taken_and_states_saved_at_all))
