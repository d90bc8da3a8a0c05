/* Units round trip: any number is written as a text that reads back as the same number, and any
 * text that is taken means exactly what a slow reading with 128-bit fractions says. */
#include "base/checked.h"
#include "base/random.h"
#include "formats/units.h"
#include "tests/support/property_seed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 20000 };

/* All sizes alike: small numbers, large ones, and round ones. */
static int64_t any_number(struct random *random)
{
    int64_t number = (int64_t)(random_u64(random) >> (1 + random_below(random, 63)));
    if (random_below(random, 3) == 0) {
        static const int64_t round[] = {1000, 1024, 60, 3600, 1000000, INT64_C(1) << 30};
        number -= number % round[random_below(random, 6)];
    }
    return number;
}

START_TEST(numbers_read_back_as_they_were_written)
{
    struct random random = random_seeded(property_seed(20261120));
    for (int i = 0; i < ROUNDS; i++) {
        int64_t number = any_number(&random);
        int64_t again = -1;
        char text[UNITS_TEXT_SIZE];
        units_duration_text(number, text);
        ck_assert_msg(units_duration(text, &again) == UNITS_OK && again == number, "%s", text);
        units_text(UNITS_BYTES, number, text);
        ck_assert_msg(units_bytes(text, &again) == UNITS_OK && again == number, "%s", text);
        number = random_below(&random, 2) == 0 ? number : -number;
        units_money_text(number, text);
        ck_assert_msg(units_money(text, &again) == UNITS_OK && again == number, "%s", text);
    }
}
END_TEST

/* "WHOLE.FRACTION" with `decimals` digits, times `unit`: exact, in the slow way. */
static bool slow_value(uint64_t whole, uint64_t fraction, unsigned decimals, uint64_t unit,
                       uint128 *ret_value)
{
    uint128 divisor = 1;
    for (unsigned i = 0; i < decimals; i++) {
        divisor *= 10;
    }
    uint128 numerator = ((uint128)whole * divisor + fraction) * unit;
    *ret_value = numerator / divisor;
    return numerator % divisor == 0;
}

START_TEST(fractions_are_exact_or_refused)
{
    static const struct {
        const char *name;
        uint64_t size;
        bool bytes;
    } units[] = {{"d", UINT64_C(86400000000000), false},
                 {"h", UINT64_C(3600000000000), false},
                 {"ms", 1000000, false},
                 {"KiB", 1024, true},
                 {"GiB", UINT64_C(1) << 30, true},
                 {"MB", 1000000, true}};
    struct random random = random_seeded(property_seed(20261120) + 1);
    unsigned exact = 0;
    for (int i = 0; i < ROUNDS; i++) {
        size_t unit = random_below(&random, sizeof units / sizeof units[0]);
        uint64_t whole = random_u64(&random) >> (20 + random_below(&random, 44));
        unsigned decimals = 1 + (unsigned)random_below(&random, 6);
        uint64_t range = 1;
        for (unsigned k = 0; k < decimals; k++) {
            range *= 10;
        }
        uint64_t fraction =
            random_below(&random, 2) == 0 ? random_below(&random, range) : range / 2;
        char text[80];
        (void)snprintf(text, sizeof text, "%" PRIu64 ".%0*" PRIu64 "%s", whole, (int)decimals,
                       fraction, units[unit].name);
        uint128 wanted;
        bool whole_number = slow_value(whole, fraction, decimals, units[unit].size, &wanted);
        int64_t value = -1;
        enum units_status status =
            units[unit].bytes ? units_bytes(text, &value) : units_duration(text, &value);
        if (!whole_number) {
            ck_assert_msg(status == UNITS_INEXACT, "%s", text);
        } else if (wanted > INT64_MAX) {
            ck_assert_msg(status == UNITS_OVERFLOW, "%s", text);
        } else {
            ck_assert_msg(status == UNITS_OK && (uint128)value == wanted, "%s", text);
            exact++;
        }
    }
    ck_assert_uint_gt(exact, ROUNDS / 20);
}
END_TEST

SUITE("units round trip", NULL, NULL, TEST(numbers_read_back_as_they_were_written),
      TEST(fractions_are_exact_or_refused))
