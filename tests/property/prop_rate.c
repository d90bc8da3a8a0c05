/* The exchange (base/rate.h) and the audit (audit/worth.h) read limits by value apart. Both must
 * say the same of any value on any device. Otherwise the audit faults what the exchange does
 * rightly, or misses what it does wrongly. */
#include "audit/worth.h"
#include "base/checked.h"
#include "base/random.h"
#include "base/rate.h"
#include "tests/support/property_seed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 50000 };

/* Draws numbers of every length, every third one at or beside a multiple of 10^15. */
static int64_t any_number(struct random *random)
{
    int64_t number = (int64_t)(random_u64(random) >> (1 + random_below(random, 63)));
    if (random_below(random, 3) == 0) {
        number -= number % RATE_UNIT;
        number += number < INT64_MAX && random_below(random, 2) == 0 ? 1 : 0;
        number -= number > 0 && random_below(random, 2) == 0 ? 1 : 0;
    }
    return number;
}

static void both_agree(int64_t value, int64_t operations)
{
    const int64_t limit = rate_limit(value, operations);
    const int64_t again = audit_worth_limit(value, operations);
    ck_assert_msg(limit == again,
                  "a value of %" PRId64 " at %" PRId64 " a second: exchange %" PRId64
                  ", audit %" PRId64,
                  value, operations, limit, again);
}

START_TEST(exchange_and_audit_give_a_value_the_same_price)
{
    struct random random = random_seeded(property_seed(20261127));
    unsigned beyond = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const int64_t value = any_number(&random);
        const int64_t operations = any_number(&random);
        both_agree(value, operations);
        beyond += rate_limit(value, operations) == INT64_MAX;
    }
    ck_assert_uint_gt(beyond, ROUNDS / 100); /* both sides of the bound were met */
    ck_assert_uint_lt(beyond, ROUNDS - ROUNDS / 100);
}
END_TEST

START_TEST(they_agree_at_the_ends_of_the_range)
{
    static const int64_t ends[] = {
        0, 1, RATE_UNIT - 1, RATE_UNIT, RATE_UNIT + 1, INT64_MAX / 2, INT64_MAX - 1, INT64_MAX};
    enum { ENDS = sizeof ends / sizeof ends[0] };
    for (int i = 0; i < ENDS; i++) {
        for (int k = 0; k < ENDS; k++) {
            both_agree(ends[i], ends[k]);
        }
    }
}
END_TEST

START_TEST(exchange_and_audit_know_the_same_rates)
{
    static const char *const others[] = {"", "fp", "fp640", "FP64", "int", "int16", "cores"};
    ck_assert_int_eq(AUDIT_RATES, RATES);
    ck_assert_int_eq(AUDIT_RATE_NONE, RATE_NONE);
    for (unsigned rate = RATE_FP64; rate < RATES; rate++) {
        ck_assert_uint_eq(audit_worth_rate(rate_name((enum rate)rate)), rate);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_uint_eq(audit_worth_rate(others[i]), AUDIT_RATE_NONE);
        ck_assert_int_eq(rate_named(others[i]), RATE_NONE);
    }
}
END_TEST

SUITE("limits by value", NULL, NULL, TEST(exchange_and_audit_give_a_value_the_same_price),
      TEST(they_agree_at_the_ends_of_the_range), TEST(exchange_and_audit_know_the_same_rates))
