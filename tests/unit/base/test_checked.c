#include "base/checked.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

START_TEST(sums_that_would_wrap_are_refused)
{
    int64_t result = 7;
    ck_assert(!checked_add(INT64_MAX, 1, &result));
    ck_assert(!checked_add(INT64_MIN, -1, &result));
    ck_assert(!checked_sub(INT64_MIN, 1, &result));
    ck_assert(!checked_sub(0, INT64_MIN, &result));
    ck_assert(!checked_mul(INT64_MIN, -1, &result));
    ck_assert(!checked_mul(INT64_MAX / 2 + 1, 2, &result));
    ck_assert_int_eq(result, 7);
    ck_assert(checked_add(INT64_MAX, INT64_MIN, &result));
    ck_assert_int_eq(result, -1);
    ck_assert(checked_sub(-1, INT64_MIN, &result));
    ck_assert(result == INT64_MAX);
    ck_assert(checked_mul(INT64_MIN, 1, &result));
    ck_assert(result == INT64_MIN);
}
END_TEST

START_TEST(divisions_name_their_rounding)
{
    int64_t result = 7;
    ck_assert(checked_muldiv_floor(10, 1, 3, &result));
    ck_assert_int_eq(result, 3);
    ck_assert(checked_muldiv_ceil(10, 1, 3, &result));
    ck_assert_int_eq(result, 4);
    ck_assert(checked_muldiv_ceil(9, 1, 3, &result));
    ck_assert_int_eq(result, 3);
    ck_assert(checked_muldiv_ceil(0, INT64_MAX, 5, &result));
    ck_assert_int_eq(result, 0);
}
END_TEST

START_TEST(products_pass_through_128_bits)
{
    int64_t result = 7;
    ck_assert(checked_muldiv_floor(INT64_MAX, INT64_MAX, INT64_MAX, &result));
    ck_assert(result == INT64_MAX);
    ck_assert(!checked_muldiv_floor(INT64_MAX, INT64_MAX, INT64_MAX - 1, &result));
    ck_assert(!checked_muldiv_ceil(INT64_MAX, 3, 2, &result));
    ck_assert(result == INT64_MAX);
    /* floor fits, ceil does not: INT64_MAX + 1/2 */
    ck_assert(checked_muldiv_floor(INT64_MAX, 1, 1, &result));
    ck_assert(checked_muldiv_ceil(INT64_MAX - 1, 1, 1, &result));
}
END_TEST

START_TEST(floor_and_ceil_enclose_the_quotient)
{
    struct random random = random_seeded((uint64_t)_i);
    int64_t a = (int64_t)(random_u64(&random) >> (1 + random_below(&random, 60)));
    int64_t b = (int64_t)(random_u64(&random) >> (1 + random_below(&random, 60)));
    int64_t divisor = (int64_t)(random_u64(&random) >> (1 + random_below(&random, 60))) | 1;
    int64_t low;
    int64_t high;
    if (!checked_muldiv_floor(a, b, divisor, &low)) {
        ck_assert(!checked_muldiv_ceil(a, b, divisor, &high));
        return;
    }
    ck_assert((int128)low * divisor <= (int128)a * b);
    ck_assert(((int128)low + 1) * divisor > (int128)a * b);
    if (checked_muldiv_ceil(a, b, divisor, &high)) {
        ck_assert((int128)high * divisor >= (int128)a * b);
        ck_assert(((int128)high - 1) * divisor < (int128)a * b);
    } else {
        ck_assert(low == INT64_MAX);
    }
}
END_TEST

SUITE("checked", NULL, NULL, TEST(sums_that_would_wrap_are_refused),
      TEST(divisions_name_their_rounding), TEST(products_pass_through_128_bits),
      LOOP(floor_and_ceil_enclose_the_quotient, 0, 200))
