#include "base/rate.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static struct attribute number(const char *name, int64_t value)
{
    struct attribute attribute = {.number = value};
    strcpy(attribute.name, name);
    return attribute;
}

START_TEST(every_rate_has_a_name_of_its_own)
{
    for (unsigned i = RATE_NONE + 1; i < RATES; i++) {
        ck_assert_int_eq(rate_named(rate_name((enum rate)i)), i);
    }
    ck_assert_int_eq(rate_named("bf16"), RATE_BF16);
    ck_assert_int_eq(rate_named("memory"), RATE_NONE);
    ck_assert_int_eq(rate_named(""), RATE_NONE);
    ck_assert(rate_is_of_integers(RATE_INT8));
    ck_assert(!rate_is_of_integers(RATE_FP8));
}
END_TEST

START_TEST(of_several_figures_the_least_counts)
{
    struct attribute attributes[] = {number("bf16", 0), number("bf16", 300), number("bf16", 200),
                                     number("fp16", 100), number("fp8", -5)};
    struct attribute word = {.is_text = true};
    strcpy(word.name, "fp64");
    ck_assert_int_eq(rate_of(RATE_BF16, attributes, 5), 200);
    ck_assert_int_eq(rate_of(RATE_FP16, attributes, 5), 100);
    ck_assert_int_eq(rate_of(RATE_FP8, attributes, 5), 0);
    ck_assert_int_eq(rate_of(RATE_INT8, attributes, 5), 0);
    ck_assert_int_eq(rate_of(RATE_FP64, &word, 1), 0);
}
END_TEST

START_TEST(a_limit_is_rounded_down_and_the_value_for_a_price_up)
{
    int64_t value = 7;
    /* 0.002 credits per TFLOP-hour, on 989.4 TFLOPS */
    ck_assert_int_eq(rate_limit(2000000, INT64_C(989400000000000)), 1978800);
    ck_assert_int_eq(rate_limit(1999999, RATE_UNIT / 2), 999999);
    ck_assert_int_eq(rate_limit(0, INT64_MAX), 0);
    ck_assert_int_eq(rate_limit(INT64_MAX, INT64_MAX), INT64_MAX);
    ck_assert_int_eq(rate_limit(INT64_MAX, RATE_UNIT), INT64_MAX);

    ck_assert(rate_value_for(1978800, INT64_C(989400000000000), &value));
    ck_assert_int_eq(value, 2000000);
    ck_assert(rate_value_for(1978801, INT64_C(989400000000000), &value));
    ck_assert_int_eq(value, 2000002);
    ck_assert_int_eq(rate_limit(value, INT64_C(989400000000000)), 1978801);
    ck_assert(rate_value_for(0, 1, &value));
    ck_assert_int_eq(value, 0);
    ck_assert(rate_value_for(INT64_MAX, INT64_MAX, &value));
    ck_assert_int_eq(value, RATE_UNIT);
    ck_assert(!rate_value_for(INT64_MAX, RATE_UNIT - 1, &value));
    ck_assert(!rate_value_for(1000000, 1, &value));
    ck_assert_int_eq(value, RATE_UNIT); /* untouched */
}
END_TEST

SUITE("rate", NULL, NULL, TEST(every_rate_has_a_name_of_its_own),
      TEST(of_several_figures_the_least_counts),
      TEST(a_limit_is_rounded_down_and_the_value_for_a_price_up))
