/* The tests count bytes at chosen times, and look at the waits and at the month. */
#include "provider/session/network_rule.h"
#include "tests/support/suite.h"

#include <check.h>
#include <time.h>

#define NS INT64_C(1000000000)
#define NOVEMBER_MS INT64_C(1795996800000) /* 2026-11-30 00:00 UTC */
#define DAY_MS INT64_C(86400000)

static struct network_rule rule;

static void open_rule(int64_t rate_bytes, int64_t month_bytes)
{
    const struct network_terms terms = {.rate_bytes = rate_bytes, .month_bytes = month_bytes};
    network_rule_init(&rule, &terms, 0, 0);
}

static int64_t count(int64_t now_ns, int64_t bytes)
{
    return network_rule_count(&rule, now_ns, NOVEMBER_MS, bytes);
}

START_TEST(the_bucket_gives_a_second_at_once_and_then_the_rate)
{
    open_rule(1000, 0);
    ck_assert_int_eq(count(100 * NS, 1000), 0);
    ck_assert_int_eq(count(100 * NS, 500), NS / 2);
    ck_assert_int_eq(count(100 * NS + NS / 2, 1000), NS); /* the debt is paid, and begins anew */
    ck_assert_int_eq(count(200 * NS, 1000), 0);           /* no more than a second is saved up */
    ck_assert_int_eq(count(200 * NS, 1), NS / 1000);
}
END_TEST

START_TEST(without_a_rate_nothing_waits)
{
    open_rule(0, 0);
    ck_assert_int_eq(count(0, INT64_MAX), 0);
    ck_assert_int_eq(count(0, INT64_MAX), 0);
    ck_assert(rule.used_bytes == INT64_MAX);
    ck_assert(!network_rule_is_spent(&rule, NOVEMBER_MS));
}
END_TEST

START_TEST(no_piece_is_too_large)
{
    open_rule(1, 0);
    ck_assert_int_gt(count(100 * NS, INT64_MAX), 1000 * NS);
    ck_assert_int_gt(count(100 * NS, INT64_MAX), 1000 * NS);
}
END_TEST

START_TEST(a_month_is_used_up_until_the_next_one)
{
    open_rule(0, 100);
    ck_assert(!network_rule_is_spent(&rule, NOVEMBER_MS));
    (void)count(0, 99);
    ck_assert(!network_rule_is_spent(&rule, NOVEMBER_MS));
    (void)count(0, 1);
    ck_assert(network_rule_is_spent(&rule, NOVEMBER_MS));
    ck_assert(network_rule_is_spent(&rule, NOVEMBER_MS + DAY_MS - 1));
    ck_assert(!network_rule_is_spent(&rule, NOVEMBER_MS + DAY_MS)); /* 1 December */
    (void)network_rule_count(&rule, 0, NOVEMBER_MS + DAY_MS, 7);
    ck_assert_int_eq(rule.used_bytes, 7);
    /* A clock that goes back begins no month anew. */
    (void)network_rule_count(&rule, 0, NOVEMBER_MS, 93);
    ck_assert_int_eq(rule.used_bytes, 100);
    ck_assert(network_rule_is_spent(&rule, NOVEMBER_MS));
}
END_TEST

START_TEST(what_was_counted_before_counts)
{
    const struct network_terms terms = {.month_bytes = 100};
    ck_assert_int_eq(network_rule_month(NOVEMBER_MS), 2026 * 12 + 10);
    ck_assert_int_eq(network_rule_month(0), 1970 * 12);
    network_rule_init(&rule, &terms, network_rule_month(NOVEMBER_MS), 100);
    ck_assert(network_rule_is_spent(&rule, NOVEMBER_MS));
    network_rule_init(&rule, &terms, network_rule_month(NOVEMBER_MS) - 1, 100);
    ck_assert(!network_rule_is_spent(&rule, NOVEMBER_MS));
}
END_TEST

/* The C library knows the month, too. The moments stand 8 days and some hours apart, from 1700 to
 * 2400, so that each month of each year is met. */
START_TEST(a_month_is_that_of_the_calendar)
{
    for (int64_t ms = -8520336000000; ms < INT64_C(13569465600000); ms += 700000001) {
        const time_t seconds = (time_t)((ms - (ms % 1000 + 1000) % 1000) / 1000);
        struct tm day;
        ck_assert_ptr_nonnull(gmtime_r(&seconds, &day));
        ck_assert_int_eq(network_rule_month(ms), (day.tm_year + 1900) * 12 + day.tm_mon);
    }
    ck_assert_int_eq(network_rule_month(INT64_C(951782400000) - 1),
                     2000 * 12 + 1);                                            /* 28 February */
    ck_assert_int_eq(network_rule_month(INT64_C(951868800000)), 2000 * 12 + 2); /* 1 March */
    ck_assert_int_eq(network_rule_month(INT64_C(951868800000) - 1),
                     2000 * 12 + 1); /* 29 February */
}
END_TEST

START_TEST(other_terms_hold_at_once_and_the_month_counts_on)
{
    const struct network_terms faster = {.rate_bytes = 100000, .month_bytes = 4000};
    open_rule(1000, 5000);
    ck_assert_int_eq(count(100 * NS, 3000), 2 * NS);
    ck_assert(!network_rule_is_spent(&rule, NOVEMBER_MS));
    network_rule_change(&rule, &faster);
    ck_assert_int_eq(count(100 * NS, 1000), 0);
    ck_assert(network_rule_is_spent(&rule, NOVEMBER_MS));
}
END_TEST

SUITE("the rule of the network", NULL, NULL,
      TEST(the_bucket_gives_a_second_at_once_and_then_the_rate), TEST(without_a_rate_nothing_waits),
      TEST(no_piece_is_too_large), TEST(a_month_is_used_up_until_the_next_one),
      TEST(a_month_is_that_of_the_calendar), TEST(what_was_counted_before_counts),
      TEST(other_terms_hold_at_once_and_the_month_counts_on))
