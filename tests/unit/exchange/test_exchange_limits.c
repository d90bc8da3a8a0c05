/* The limits of an exchange are part of its state. A command changes them; what stands stays. */
#include "protocol/message.h"
#include "protocol/reject.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

static void set_under(uint32_t rules, const struct exchange_limits *limits)
{
    struct exchange_command set = command(EXCHANGE_LIMITS, EXCHANGE_NO_ACCOUNT);
    set.set_limits = (struct exchange_set_limits){.rules = rules, .limits = *limits};
    apply(&set);
}

static void set_limits(const struct exchange_limits *limits)
{
    set_under(EXCHANGE_RULES, limits);
}

static bool holds(const struct exchange *exchange, const struct exchange_limits *limits)
{
    const struct exchange_set_limits set = {.rules = EXCHANGE_RULES, .limits = *limits};
    return exchange_holds_limits(exchange, &set);
}

START_TEST(limits_are_a_command_and_what_stands_stays)
{
    struct exchange_limits limits = exchange_limits_default();
    ck_assert_uint_eq(exchange_rules(market.exchange), 0);
    ck_assert(!holds(market.exchange, &limits));
    struct hash32 before = exchange_state_hash(market.exchange);
    set_limits(&limits);
    ck_assert(holds(market.exchange, &limits));
    struct hash32 after = exchange_state_hash(market.exchange);
    ck_assert(!hash32_equal(&before, &after));

    struct id128 first = submit(1, 10);
    (void)submit(1, 10);
    limits.jobs_per_account = 1;
    set_limits(&limits);
    ck_assert(holds(market.exchange, &limits));
    ck_assert_uint_eq(job_row(first).state, JOB_OPEN); /* two stand, above the cap */
    struct exchange_command third = submit_of(1, 10);
    apply(&third);
    ck_assert_ptr_nonnull(nth(EFFECT_REJECT, 0));
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "jobs_per_account");
    limits.jobs_per_account = 10;
    set_limits(&limits);
    (void)submit(1, 10);
    ck_assert_uint_eq(count_of(EFFECT_REJECT), 0);
}
END_TEST

/* Rules 23 are the first that the market keeps: nothing takes them back, and none is skipped. */
START_TEST(rules_rise_by_one_and_never_fall_once_the_market_keeps_them)
{
    struct exchange_limits limits = exchange_limits_default();
    set_under(22, &limits);
    set_under(21, &limits); /* earlier rules let a broker go back */
    ck_assert_uint_eq(exchange_rules(market.exchange), 21);
    set_under(23, &limits);
    ck_assert_uint_eq(exchange_rules(market.exchange), 23);

    static const uint32_t wrong[] = {0, 1, 22, 25, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        limits.jobs = 7;
        set_under(wrong[i], &limits);
        ck_assert_uint_eq(exchange_rules(market.exchange), 23);
        ck_assert_uint_ne(exchange_limits_now(market.exchange).jobs, 7);
    }
    set_under(23, &limits); /* the same rules, and other caps */
    ck_assert_uint_eq(exchange_limits_now(market.exchange).jobs, 7);
    set_under(24, &limits);
    ck_assert_uint_eq(exchange_rules(market.exchange), 24);
}
END_TEST

START_TEST(the_state_hash_knows_the_rules)
{
    const struct exchange_limits limits = exchange_limits_default();
    set_under(22, &limits);
    const struct exchange_set_limits before = {.rules = 22, .limits = limits};
    ck_assert(exchange_holds_limits(market.exchange, &before));
    ck_assert(!holds(market.exchange, &limits));
    size_t length;
    uint8_t *bytes = exchange_save(market.exchange, &length);
    struct exchange *other = exchange_load(&limits, bytes, length);
    ck_assert_ptr_nonnull(other);
    ck_assert_uint_eq(exchange_rules(other), 22); /* a snapshot brings its rules */
    set_under(23, &limits);
    const struct hash32 raised = exchange_state_hash(market.exchange);
    struct exchange_effects effects = {0};
    struct exchange_command again = {.type = EXCHANGE_LIMITS,
                                     .account = EXCHANGE_NO_ACCOUNT,
                                     .index = exchange_index(market.exchange),
                                     .log_time_ns = exchange_log_time_ns(market.exchange),
                                     .set_limits = before};
    ck_assert_int_eq(exchange_step(other, &again, &effects), EXCHANGE_OK);
    const struct hash32 kept = exchange_state_hash(other);
    ck_assert(!hash32_equal(&raised, &kept));
    exchange_effects_fini(&effects);
    exchange_destroy(&other);
    free(bytes);
}
END_TEST

START_TEST(a_snapshot_brings_its_limits_and_more_than_they_allow)
{
    struct exchange_limits limits = exchange_limits_default();
    offer(PROVIDER, 1, price);
    (void)submit(3, 10);
    (void)submit(3, 10);
    (void)submit(3, 10);
    limits.asks = limits.jobs = limits.jobs_per_account = 1;
    limits.subtasks = 1;
    set_limits(&limits);

    size_t length;
    uint8_t *bytes = exchange_save(market.exchange, &length);
    struct exchange_limits file = exchange_limits_default(); /* others: the snapshot's count */
    file.asks = file.jobs = 1;                               /* and its orders find room */
    struct exchange *loaded = exchange_load(&file, bytes, length);
    ck_assert_ptr_nonnull(loaded);
    ck_assert(holds(loaded, &limits));
    struct hash32 ours = exchange_state_hash(market.exchange);
    struct hash32 theirs = exchange_state_hash(loaded);
    struct hash32 walked = exchange_state_hash_walk(loaded);
    ck_assert(hash32_equal(&ours, &theirs));
    ck_assert(hash32_equal(&walked, &theirs));
    exchange_destroy(&loaded);
    free(bytes);
}
END_TEST

START_TEST(one_account_cannot_have_all_subtasks)
{
    struct exchange_limits limits = exchange_limits_default();
    ck_assert_uint_lt(limits.subtasks_per_account, limits.subtasks);
    limits.subtasks = 100;
    limits.subtasks_per_account = 60;
    set_limits(&limits);
    struct id128 first = submit(50, 10);
    struct exchange_command more = submit_of(11, 10);
    apply(&more);
    check_rejected(REJECT_LIMIT);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "subtasks_per_account");
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.value, 61);
    ck_assert_int_eq(nth(EFFECT_REJECT, 0)->reject.limit, 60);
    (void)submit(10, 10);

    reload(); /* what it has is found again */
    more = submit_of(1, 10);
    apply(&more);
    check_rejected(REJECT_LIMIT);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    cancel.cancel_job.job = first;
    apply(&cancel);
    (void)submit(50, 10);
    more = submit_of(1, 10);
    apply(&more);
    check_rejected(REJECT_LIMIT);
    limits.subtasks_per_account = 0; /* as a journal says it that is older than this cap */
    set_limits(&limits);
    (void)submit(40, 10);
    more = submit_of(1, 10);
    apply(&more);
    ck_assert_str_eq(nth(EFFECT_REJECT, 0)->reject.field, "subtasks");
}
END_TEST

SUITE("exchange: limits", set_up, tear_down, TEST(limits_are_a_command_and_what_stands_stays),
      TEST(rules_rise_by_one_and_never_fall_once_the_market_keeps_them),
      TEST(the_state_hash_knows_the_rules),
      TEST(a_snapshot_brings_its_limits_and_more_than_they_allow),
      TEST(one_account_cannot_have_all_subtasks))
