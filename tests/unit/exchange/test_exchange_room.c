/* The tests follow what is kept about jobs and makes room for others, counted as it comes and goes,
 * and again from a snapshot. */
#include "base/random.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_limits(const struct exchange_limits *limits)
{
    struct exchange_command set = command(EXCHANGE_LIMITS, EXCHANGE_NO_ACCOUNT);
    set.set_limits = (struct exchange_set_limits){.rules = EXCHANGE_RULES, .limits = *limits};
    apply(&set);
}

static void cancel(struct id128 job)
{
    struct exchange_command made = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    made.cancel_job.job = job;
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

static bool is_kept(struct id128 job)
{
    struct exchange_job_row row;
    return exchange_job(market.exchange, &job, &row);
}

START_TEST(the_oldest_that_has_ended_makes_room_whichever_ended_first)
{
    struct exchange_limits limits = exchange_limits_now(market.exchange);
    limits.jobs = 6;
    set_limits(&limits);
    struct id128 jobs[6];
    for (int i = 0; i < 6; i++) {
        jobs[i] = submit(1, 10);
    }
    const int ends[] = {4, 1, 5, 2}; /* 0 and 3 wait on */
    for (int i = 0; i < 4; i++) {
        cancel(jobs[ends[i]]);
    }
    const int goes[] = {1, 2, 4, 5};
    for (int i = 0; i < 4; i++) {
        ck_assert(is_kept(jobs[goes[i]]));
        (void)submit(1, 10);
        ck_assert(!is_kept(jobs[goes[i]]));
        check_hash();
        if (i == 1) {
            reload();
        }
    }
    ck_assert(is_kept(jobs[0]) && is_kept(jobs[3]));
    struct exchange_command more = submit_of(1, 10);
    apply(&more);
    check_rejected(REJECT_LIMIT); /* none has ended */
    cancel(jobs[3]);
    (void)submit(1, 10);
    ck_assert(!is_kept(jobs[3]));
}
END_TEST

enum { MANY = 5, KEPT = 24, STEPS = 2000 };

static void open_many_accounts(void)
{
    static struct exchange_genesis_account accounts[MANY];
    for (uint8_t i = 0; i < MANY; i++) {
        accounts[i] = (struct exchange_genesis_account){
            .key = {{(uint8_t)(i + 1)}}, .roles = ROLE_CONSUMER, .credits_micro = INT64_MAX / 16};
        (void)snprintf(accounts[i].name, sizeof accounts[i].name, "consumer %d", i);
    }
    struct exchange_limits limits = exchange_limits_now(market.exchange);
    limits.jobs = limits.jobs_per_account = KEPT;
    limits.ids_per_account = STEPS + 1;
    exchange_destroy(&market.exchange);
    market.exchange = exchange_create(&limits);
    market.index = 0;
    struct exchange_command genesis = command(EXCHANGE_GENESIS, EXCHANGE_NO_ACCOUNT);
    genesis.genesis = (struct exchange_genesis){.cluster = {{1}},
                                                .price_band_micro = 100 * price,
                                                .accounts = accounts,
                                                .account_count = MANY};
    apply(&genesis);
}

/* Against a list in the order of submission. */
START_TEST(of_many_accounts_the_oldest_that_has_ended_goes_first)
{
    static struct {
        struct id128 id;
        uint32_t owner;
        bool is_open, is_kept;
    } jobs[STEPS];
    struct random random = random_seeded(7);
    uint32_t count = 0;
    uint32_t kept = 0;
    uint32_t gone = 0;
    open_many_accounts();
    for (int step = 0; step < STEPS; step++) {
        const uint32_t drawn = count == 0 ? 0 : (uint32_t)random_below(&random, count);
        if (count > 0 && jobs[drawn].is_open) {
            struct exchange_command cancelled = command(EXCHANGE_CANCEL_JOB, jobs[drawn].owner);
            cancelled.cancel_job.job = jobs[drawn].id;
            apply(&cancelled);
            jobs[drawn].is_open = false;
            continue;
        }
        uint32_t goes = 0;
        while (goes < count && (jobs[goes].is_open || !jobs[goes].is_kept)) {
            goes++;
        }
        struct exchange_command made = submit_of(1, 1);
        made.account = CONSUMER + (uint32_t)random_below(&random, MANY);
        apply(&made);
        if (kept == KEPT && goes == count) {
            check_rejected(REJECT_LIMIT); /* all are open */
            continue;
        }
        ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
        if (kept == KEPT) {
            jobs[goes].is_kept = false;
            ck_assert(!is_kept(jobs[goes].id));
            gone++;
        } else {
            kept++;
        }
        jobs[count].id = made.id;
        jobs[count].owner = made.account;
        jobs[count].is_open = jobs[count].is_kept = true;
        count++;
        uint32_t there = 0;
        for (uint32_t i = 0; i < count; i++) {
            ck_assert(is_kept(jobs[i].id) == jobs[i].is_kept);
            there += jobs[i].is_kept;
        }
        ck_assert_uint_eq(there, kept);
        if (step % 97 == 0) {
            reload();
        }
    }
    ck_assert_uint_gt(gone, STEPS / 20);
    check_hash();
}
END_TEST

static void expect_all_ways(const struct exchange *exchange, const struct exchange_command *coming)
{
    const uint32_t accounts[] = {CONSUMER, PROVIDER, EXCHANGE_NO_ACCOUNT};
    for (size_t i = 0; i < sizeof accounts / sizeof accounts[0]; i++) {
        exchange_expect(exchange, accounts[i], coming);
        exchange_expect_found(exchange, accounts[i], coming);
        exchange_expect_orders(exchange, accounts[i], coming);
    }
}

/* Any type of command about that order, or the device of `offer`. */
static struct exchange_command about(enum exchange_command_type type, struct id128 order)
{
    struct exchange_command coming = {.type = type, .id = order};
    if (type == EXCHANGE_CANCEL_JOB) {
        coming.cancel_job.job = order;
    } else if (type == EXCHANGE_REPLACE) {
        coming.replace.order = order;
    } else if (type == EXCHANGE_CANCEL_ORDER) {
        coming.cancel_order.order = order;
    } else if (type == EXCHANGE_ASK) {
        coming.ask.device = (struct id128){{PROVIDER}};
    }
    return coming;
}

/* The announced commands are looked up in a full exchange and in one that has nothing yet: a bid
 * and an ask that rest, a bid that was filled, a device with an ask and one without, and ids that
 * nobody knows. */
START_TEST(what_is_expected_changes_nothing)
{
    const struct id128 filled = submit(1, 100);
    offer(PROVIDER, 1, price);
    ck_assert_uint_eq(granted_to(filled), 1);
    const struct id128 ask = record_of(LEDGER_ASK)->order;
    const struct id128 orders[] = {submit(1, 10), filled, ask, {{77}}};
    const struct hash32 before = exchange_state_hash(market.exchange);
    struct exchange *fresh = exchange_create(
        &(struct exchange_limits){.asks = 1, .jobs = 1, .cells = 1, .classes = 1, .accounts = 4});
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        for (int type = EXCHANGE_GENESIS; type <= EXCHANGE_REPLACE; type++) {
            const struct exchange_command coming =
                about((enum exchange_command_type)type, orders[i]);
            expect_all_ways(market.exchange, &coming);
            expect_all_ways(fresh, &coming);
        }
    }
    exchange_destroy(&fresh);
    const struct hash32 after = exchange_state_hash(market.exchange);
    ck_assert_mem_eq(&before, &after, sizeof before);
    check_hash();
    cancel(orders[0]);
    struct exchange_command gone = command(EXCHANGE_CANCEL_ORDER, PROVIDER);
    gone.cancel_order.order = ask;
    apply(&gone);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    const struct exchange_command coming = about(EXCHANGE_ASK, ask);
    expect_all_ways(market.exchange, &coming); /* the device has none now */
    check_hash();
}
END_TEST

/* A requirement of its own for each number. */
static struct requirement needs_memory(int64_t bytes)
{
    struct requirement needs = {.count = 1};
    needs.nodes[0].op = REQUIREMENT_GE;
    (void)snprintf(needs.nodes[0].attribute.name, sizeof needs.nodes[0].attribute.name, "memory");
    needs.nodes[0].attribute.number = bytes;
    return needs;
}

static struct exchange_command job_of_class(const struct requirement *needs)
{
    struct exchange_command made = submit_of(1, 1);
    made.submit.needs = needs;
    return made;
}

static struct id128 submit_class(const struct requirement *needs)
{
    struct exchange_command made = job_of_class(needs);
    apply(&made);
    const struct exchange_effect *refusal = nth(EFFECT_REJECT, 0);
    ck_assert_msg(refusal == NULL, "refused: %u", refusal == NULL ? 0 : refusal->reject.code);
    return made.id;
}

static void check_class_refused(const struct requirement *needs, int64_t used)
{
    struct exchange_command made = job_of_class(needs);
    apply(&made);
    check_rejected(REJECT_LIMIT);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "classes_per_account");
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, used);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, 2);
}

START_TEST(classes_of_an_account_are_counted_once_each_and_as_long_as_they_are_used)
{
    tear_down();
    set_up_with(16, 64, 8);
    struct exchange_limits limits = exchange_limits_now(market.exchange);
    limits.classes_per_account = 2;
    set_limits(&limits);
    const struct requirement a = needs_memory(1);
    const struct requirement b = needs_memory(2);
    const struct requirement c = needs_memory(3);
    struct id128 first = submit_class(&a);
    struct id128 second = submit_class(&a);
    struct id128 third = submit_class(&b);
    check_class_refused(&c, 3);
    cancel(first); /* one more job has it */
    check_class_refused(&c, 3);
    reload();
    check_class_refused(&c, 3);
    cancel(second);
    struct id128 fourth = submit_class(&c);
    check_class_refused(&a, 3);
    cancel(third);
    cancel(fourth);
    (void)submit_class(&a);
    (void)submit_class(&b);
    check_hash();
}
END_TEST

START_TEST(a_class_is_found_among_many)
{
    enum { CLASSES = 300 };
    tear_down();
    set_up_with(16, 64, 400);
    struct exchange_limits limits = exchange_limits_now(market.exchange);
    limits.jobs = limits.jobs_per_account = limits.classes_per_account = 400;
    set_limits(&limits);
    static struct requirement needs[CLASSES];
    static struct id128 jobs[CLASSES];
    for (int i = 0; i < CLASSES; i++) {
        needs[i] = needs_memory(i);
        jobs[i] = submit_class(&needs[i]);
    }
    limits.classes_per_account = CLASSES; /* all that are used: none of these is another */
    set_limits(&limits);
    for (int i = 0; i < CLASSES; i += 7) {
        cancel(submit_class(&needs[i]));
    }
    for (int i = 0; i < CLASSES / 2; i++) { /* half of them go, in no order: the others are found */
        cancel(jobs[i * 7 % CLASSES]);
    }
    limits.classes_per_account = CLASSES / 2;
    set_limits(&limits);
    for (int i = CLASSES / 2; i < CLASSES; i++) {
        cancel(submit_class(&needs[i * 7 % CLASSES]));
    }
    struct exchange_command another = job_of_class(&needs[0]);
    apply(&another);
    check_rejected(REJECT_LIMIT);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, CLASSES / 2 + 1);
    for (int i = CLASSES / 2; i < CLASSES; i++) {
        cancel(jobs[i * 7 % CLASSES]);
    }
    (void)submit_class(&needs[0]);
    check_hash();
}
END_TEST

SUITE("exchange room", set_up, tear_down,
      TEST(the_oldest_that_has_ended_makes_room_whichever_ended_first),
      TEST(of_many_accounts_the_oldest_that_has_ended_goes_first),
      TEST(what_is_expected_changes_nothing),
      TEST(classes_of_an_account_are_counted_once_each_and_as_long_as_they_are_used),
      TEST(a_class_is_found_among_many))
