/* The limits of an exchange are part of its state. A command changes them; what stands stays. */
#include "protocol/message.h"
#include "protocol/reject.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

static void set_limits(const struct exchange_limits *limits)
{
    struct exchange_command set = command(EXCHANGE_LIMITS, EXCHANGE_NO_ACCOUNT);
    set.set_limits = (struct exchange_set_limits){.rules = EXCHANGE_RULES, .limits = *limits};
    apply(&set);
}

START_TEST(limits_are_a_command_and_what_stands_stays)
{
    struct exchange_limits limits = exchange_limits_default();
    ck_assert_uint_eq(exchange_rules(market.exchange), 0);
    ck_assert(!exchange_holds_limits(market.exchange, &limits));
    struct hash32 before = exchange_state_hash(market.exchange);
    set_limits(&limits);
    ck_assert(exchange_holds_limits(market.exchange, &limits));
    struct hash32 after = exchange_state_hash(market.exchange);
    ck_assert(!hash32_equal(&before, &after));

    struct id128 first = submit(1, 10);
    (void)submit(1, 10);
    limits.jobs_per_account = 1;
    set_limits(&limits);
    ck_assert(exchange_holds_limits(market.exchange, &limits));
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
    ck_assert(exchange_holds_limits(loaded, &limits));
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
      TEST(a_snapshot_brings_its_limits_and_more_than_they_allow),
      TEST(one_account_cannot_have_all_subtasks))
