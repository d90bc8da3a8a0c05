#include "formats/value.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static struct value parsed(const char *text)
{
    struct value value = {-1, RATE_NONE};
    struct problem problem = {""};
    ck_assert_msg(value_parse(text, &value, &problem), "%s: %s", text, problem.text);
    return value;
}

static void refused(const char *text, const char *words)
{
    struct value value = {-1, RATE_NONE};
    struct problem problem = {""};
    ck_assert_msg(!value_parse(text, &value, &problem), "%s", text);
    ck_assert_msg(strstr(problem.text, words) != NULL, "%s", problem.text);
    ck_assert_int_eq(value.micro, -1);
}

START_TEST(a_value_is_an_amount_for_work_at_a_rate)
{
    ck_assert_int_eq(parsed("0.02 per bf16 TFLOP-hour").micro, 20000000);
    ck_assert_int_eq(parsed("0.02 per bf16 TFLOP-hour").rate, RATE_BF16);
    ck_assert_int_eq(parsed("20 per fp32 PFLOP-hour").micro, 20000000);
    ck_assert_int_eq(parsed("0.00002 per fp64 GFLOP-hour").micro, 20000000);
    ck_assert_int_eq(parsed("1.5 per int8 TOP-hour").micro, 1500000000);
    ck_assert_int_eq(parsed("1.5 per int8 TOP-hour").rate, RATE_INT8);
    ck_assert_int_eq(parsed("0 per bf16 TFLOP-hour").micro, 0);
    ck_assert_int_eq(parsed("  3  per  fp16  TFLOP-hour  ").micro, 3000000000);
}
END_TEST

START_TEST(it_is_read_exactly_or_not_at_all)
{
    ck_assert_int_eq(parsed("0.000000001 per bf16 TFLOP-hour").micro, 1);
    ck_assert_int_eq(parsed("0.000001 per bf16 PFLOP-hour").micro, 1);
    ck_assert_int_eq(parsed("0.000000000001 per bf16 GFLOP-hour").micro, 1);
    ck_assert(parsed("9223372036.854775807 per bf16 TFLOP-hour").micro == INT64_MAX);
    refused("0.0000000001 per bf16 TFLOP-hour", "too fine");
    refused("0.0000001 per int8 POP-hour", "0.000001 for a POP-hour");
    refused("9223372036.854775808 per bf16 TFLOP-hour", "more than there can be");
    refused("9223372036854775808 per bf16 PFLOP-hour", "more than there can be");
    refused("99999999999999999999 per bf16 GFLOP-hour", "more than there can be");
}
END_TEST

START_TEST(what_is_wrong_is_said_with_what_is_right)
{
    refused("", "0.02 per bf16 TFLOP-hour");
    refused("0.02", "0.02 per bf16 TFLOP-hour");
    refused("0.02 for bf16 TFLOP-hour", "is no value");
    refused("0.02 per bf16 TFLOP-hour each", "is no value");
    refused("0.02 per bf61 TFLOP-hour", "did you mean bf16?");
    refused("0.02 per memory TFLOP-hour", "fp64, fp32, tf32");
    refused("0.02 per bf16 TFLOPS", "write TFLOP-hour");
    refused("0.02 per bf16 TOP-hour", "write TFLOP-hour");
    refused("0.02 per int4 TFLOP-hour", "write TOP-hour");
    refused("-1 per bf16 TFLOP-hour", "no amount");
    refused("nan per bf16 TFLOP-hour", "no amount");
    refused("1e3 per bf16 TFLOP-hour", "no amount");
    refused(".5 per bf16 TFLOP-hour", "no amount");
    refused("5. per bf16 TFLOP-hour", "no amount");
    refused("0.02 per bf16\x01 TFLOP-hour", "is no value");
    refused("0.02 per bf16 \xff", "is no value");
}
END_TEST

START_TEST(its_text_is_read_back)
{
    static const int64_t values[] = {0, 1, 10, 999999999, 1000000000, 20000000, INT64_MAX};
    char text[VALUE_TEXT_SIZE];
    value_text(&(struct value){20000000, RATE_BF16}, text);
    ck_assert_str_eq(text, "0.02 per bf16 TFLOP-hour");
    value_text(&(struct value){1500000000, RATE_INT8}, text);
    ck_assert_str_eq(text, "1.50 per int8 TOP-hour");
    for (unsigned rate = RATE_NONE + 1; rate < RATES; rate++) {
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            value_text(&(struct value){values[i], (enum rate)rate}, text);
            ck_assert_int_eq(parsed(text).micro, values[i]);
            ck_assert_int_eq(parsed(text).rate, rate);
        }
    }
}
END_TEST

SUITE("value", NULL, NULL, TEST(a_value_is_an_amount_for_work_at_a_rate),
      TEST(it_is_read_exactly_or_not_at_all), TEST(what_is_wrong_is_said_with_what_is_right),
      TEST(its_text_is_read_back))
