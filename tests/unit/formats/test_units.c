#include "formats/units.h"

#include "formats/range.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

typedef enum units_status reader(const char *text, int64_t *ret);

struct good {
    const char *text;
    int64_t value;
};
struct bad {
    const char *text;
    enum units_status status;
};

static void check_good(reader *read, const struct good *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t value = 77;
        ck_assert_msg(read(cases[i].text, &value) == UNITS_OK, "%s", cases[i].text);
        ck_assert_msg(value == cases[i].value, "%s gives %lld", cases[i].text, (long long)value);
    }
}

static void check_bad(reader *read, const struct bad *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t value = 77;
        enum units_status status = read(cases[i].text, &value);
        ck_assert_msg(status == cases[i].status, "%s gives status %d", cases[i].text, (int)status);
        ck_assert_int_eq(value, 77);
    }
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

START_TEST(durations_are_read_exactly)
{
    static const struct good cases[] = {
        {"0", 0},
        {"0s", 0},
        {"1h30m", INT64_C(5400000000000)},
        {"10m", INT64_C(600000000000)},
        {"250ms", 250000000},
        {"2s", 2000000000},
        {"1d", INT64_C(86400000000000)},
        {"1.5h", INT64_C(5400000000000)},
        {"1m0.5s", INT64_C(60500000000)},
        {"1ns", 1},
        {"0.000000001s", 1},
        {"1.50000000000000000000000000s", 1500000000},
        {"9223372036854775807ns", INT64_MAX},
        {"106751d23h47m16s854ms775us807ns", INT64_MAX},
    };
    check_good(units_duration, cases, COUNT(cases));
}
END_TEST

START_TEST(wrong_durations_are_refused)
{
    static const struct bad cases[] = {
        {"", UNITS_MALFORMED},         {"10", UNITS_NO_UNIT},
        {"h", UNITS_MALFORMED},        {"10 m", UNITS_MALFORMED},
        {" 10m", UNITS_MALFORMED},     {"10m ", UNITS_MALFORMED},
        {"-1s", UNITS_MALFORMED},      {"+1s", UNITS_MALFORMED},
        {"1e3s", UNITS_UNKNOWN_UNIT},  {"nans", UNITS_MALFORMED},
        {"inf", UNITS_MALFORMED},      {"0x10s", UNITS_UNKNOWN_UNIT},
        {"5m1h", UNITS_MALFORMED},     {"1h1h", UNITS_MALFORMED},
        {"1.5h30m", UNITS_MALFORMED},  {"1.s", UNITS_MALFORMED},
        {".5s", UNITS_MALFORMED},      {"1h30", UNITS_NO_UNIT},
        {"10min", UNITS_UNKNOWN_UNIT}, {"10M", UNITS_UNKNOWN_UNIT},
        {"1.5ns", UNITS_INEXACT},      {"0.0000000001s", UNITS_INEXACT},
        {"1w", UNITS_UNKNOWN_UNIT},    {"9223372036854775808ns", UNITS_OVERFLOW},
        {"200000d", UNITS_OVERFLOW},   {"99999999999999999999999999h", UNITS_OVERFLOW},
        {"1_0s", UNITS_MALFORMED},     {"106751d24h", UNITS_OVERFLOW},
    };
    check_bad(units_duration, cases, COUNT(cases));
}
END_TEST

START_TEST(sizes_are_read_exactly)
{
    static const struct good cases[] = {
        {"0", 0},
        {"4096", 4096},
        {"4096B", 4096},
        {"40GiB", INT64_C(42949672960)},
        {"512MB", 512000000},
        {"1.5GiB", INT64_C(1610612736)},
        {"1kB", 1000},
        {"1KiB", 1024},
        {"0.5KiB", 512},
        {"8191PiB", INT64_C(8191) << 50},
        {"9223372036854775807", INT64_MAX},
    };
    check_good(units_bytes, cases, COUNT(cases));
}
END_TEST

START_TEST(wrong_sizes_are_refused)
{
    static const struct bad cases[] = {
        {"", UNITS_MALFORMED},         {"GiB", UNITS_MALFORMED},
        {"-1GiB", UNITS_MALFORMED},    {"1 GiB", UNITS_MALFORMED},
        {"2gib", UNITS_UNKNOWN_UNIT},  {"2G", UNITS_UNKNOWN_UNIT},
        {"2GIB", UNITS_UNKNOWN_UNIT},  {"0.3B", UNITS_INEXACT},
        {"0.1KiB", UNITS_INEXACT},     {"8192PiB", UNITS_OVERFLOW},
        {"1e400", UNITS_MALFORMED},    {"9223372036854775808", UNITS_OVERFLOW},
        {"2GiB1MiB", UNITS_MALFORMED}, {"1,5GiB", UNITS_MALFORMED},
    };
    check_bad(units_bytes, cases, COUNT(cases));
}
END_TEST

START_TEST(amounts_are_read_exactly)
{
    static const struct good cases[] = {
        {"2.00", 2000000},
        {"12", 12000000},
        {"0.000001", 1},
        {"-0.000001", -1},
        {"-0", 0},
        {"0.1", 100000},
        {"9223372036854.775807", INT64_MAX},
        {"-9223372036854.775808", INT64_MIN},
    };
    check_good(units_money, cases, COUNT(cases));
}
END_TEST

START_TEST(wrong_amounts_are_refused)
{
    static const struct bad cases[] = {
        {"", UNITS_MALFORMED},
        {"-", UNITS_MALFORMED},
        {"--1", UNITS_MALFORMED},
        {"+1", UNITS_MALFORMED},
        {"1.", UNITS_MALFORMED},
        {".5", UNITS_MALFORMED},
        {"0.0000001", UNITS_INEXACT},
        {"1.0000000", UNITS_INEXACT},
        {"nan", UNITS_MALFORMED},
        {"NaN", UNITS_MALFORMED},
        {"inf", UNITS_MALFORMED},
        {"1e400", UNITS_MALFORMED},
        {"1e3", UNITS_MALFORMED},
        {"9223372036854775808", UNITS_OVERFLOW},
        {"18446744073709551617", UNITS_OVERFLOW}, /* 2^64 + 1 */
        {"9223372036854.775808", UNITS_OVERFLOW},
        {"-9223372036854.775809", UNITS_OVERFLOW},
        {"1,00", UNITS_MALFORMED},
        {"1 credit", UNITS_MALFORMED},
        {"0x1", UNITS_MALFORMED},
    };
    check_bad(units_money, cases, COUNT(cases));
}
END_TEST

START_TEST(counts_are_digits)
{
    static const struct good good[] = {
        {"0", 0}, {"10_000", 10000}, {"9223372036854775807", INT64_MAX}};
    static const struct bad bad[] = {
        {"", UNITS_MALFORMED},    {"_1", UNITS_MALFORMED},
        {"1_", UNITS_MALFORMED},  {"1__0", UNITS_MALFORMED},
        {"1.0", UNITS_MALFORMED}, {"-1", UNITS_MALFORMED},
        {"1k", UNITS_MALFORMED},  {"9223372036854775808", UNITS_OVERFLOW},
    };
    check_good(units_count, good, COUNT(good));
    check_bad(units_count, bad, COUNT(bad));
}
END_TEST

START_TEST(a_text_longer_than_any_number_is_refused)
{
    char text[200];
    memset(text, '1', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    int64_t value;
    ck_assert_int_eq(units_duration(text, &value), UNITS_MALFORMED);
    ck_assert_int_eq(units_bytes(text, &value), UNITS_MALFORMED);
    ck_assert_int_eq(units_money(text, &value), UNITS_MALFORMED);
    ck_assert_int_eq(units_count(text, &value), UNITS_MALFORMED);
}
END_TEST

START_TEST(numbers_are_written_as_people_write_them)
{
    char text[UNITS_TEXT_SIZE];
    units_duration_text(INT64_C(5400000000000), text);
    ck_assert_str_eq(text, "1h30m");
    units_duration_text(0, text);
    ck_assert_str_eq(text, "0s");
    units_duration_text(INT64_MIN, text);
    ck_assert_str_eq(text, "-106751d23h47m16s854ms775us808ns");
    units_text(UNITS_BYTES, INT64_C(2) << 30, text);
    ck_assert_str_eq(text, "2GiB");
    units_text(UNITS_BYTES, 512000000, text);
    ck_assert_str_eq(text, "512MB");
    units_text(UNITS_BYTES, 1000001, text);
    ck_assert_str_eq(text, "1000001B");
    units_text(UNITS_BYTES, 0, text);
    ck_assert_str_eq(text, "0B");
    units_text(UNITS_BYTES, INT64_MIN, text);
    ck_assert_str_eq(text, "-8192PiB");
    units_slot_hours(INT64_C(5399999999999), text);
    ck_assert_str_eq(text, "1.49");
    units_slot_hours(INT64_MAX, text);
    ck_assert_str_eq(text, "2562047.78");
    units_slot_hours(0, text);
    ck_assert_str_eq(text, "0.00");
    units_money_text(2000000, text);
    ck_assert_str_eq(text, "2.00");
    units_money_text(1, text);
    ck_assert_str_eq(text, "0.000001");
    units_money_text(-1500000, text);
    ck_assert_str_eq(text, "-1.50");
    units_money_text(INT64_MIN, text);
    ck_assert_str_eq(text, "-9223372036854.775808");
}
END_TEST

START_TEST(short_forms_round_and_carry)
{
    char text[UNITS_TEXT_SIZE];
    units_duration_short(INT64_C(5400000000001), text);
    ck_assert_str_eq(text, "1h 31m");
    units_duration_short(INT64_C(2310000000), text);
    ck_assert_str_eq(text, "2.4s");
    units_duration_short(INT64_C(59950000000), text);
    ck_assert_str_eq(text, "1m");
    units_duration_short(INT64_C(86399000000000), text);
    ck_assert_str_eq(text, "1d");
    units_duration_short(INT64_C(249000001), text);
    ck_assert_str_eq(text, "250ms");
    units_duration_short(0, text);
    ck_assert_str_eq(text, "0s");
    units_duration_short(INT64_MIN, text);
    ck_assert_str_eq(text, "-106752d");
    units_duration_near(INT64_C(1003000000), text);
    ck_assert_str_eq(text, "1.0s");
    units_duration_near(INT64_C(1050000000), text);
    ck_assert_str_eq(text, "1.1s");
    units_duration_near(INT64_C(59960000000), text);
    ck_assert_str_eq(text, "1m");
    units_duration_near(INT64_C(5429999999999), text);
    ck_assert_str_eq(text, "1h 30m");
    units_duration_near(INT64_C(249499999), text);
    ck_assert_str_eq(text, "249ms");
    units_duration_near(0, text);
    ck_assert_str_eq(text, "0s");
    units_duration_near(INT64_MIN, text);
    ck_assert_str_eq(text, "-106752d");
    units_bytes_short(1023, text);
    ck_assert_str_eq(text, "1023 B");
    units_bytes_short(1536, text);
    ck_assert_str_eq(text, "1.5 KiB");
    units_bytes_short(1048575, text);
    ck_assert_str_eq(text, "1.0 MiB");
    units_bytes_short(INT64_MAX, text);
    ck_assert_str_eq(text, "8.0 EiB");
}
END_TEST

START_TEST(what_is_left_is_never_shown_as_more)
{
    char text[UNITS_TEXT_SIZE];
    units_duration_down(INT64_C(599998000000), text);
    ck_assert_str_eq(text, "9m 59s");
    units_duration_down(INT64_C(600000000000), text);
    ck_assert_str_eq(text, "10m");
    units_duration_down(INT64_C(5519999999999), text);
    ck_assert_str_eq(text, "1h 31m");
    units_duration_down(INT64_C(999999999), text);
    ck_assert_str_eq(text, "999ms");
    units_duration_down(0, text);
    ck_assert_str_eq(text, "0s");
}
END_TEST

START_TEST(rates_are_read_and_written_exactly)
{
    static const struct {
        enum units_kind kind;
        const char *text;
        int64_t value;
        const char *again, *brief;
    } cases[] = {
        {UNITS_FLOPS, "989.4TFLOPS", INT64_C(989400000000000), "989400GFLOPS", "989.4 TFLOPS"},
        {UNITS_FLOPS, "1EFLOPS", INT64_C(1000000000000000000), "1EFLOPS", "1.0 EFLOPS"},
        {UNITS_FLOPS, "999960kFLOPS", 999960000, "999960kFLOPS", "1.0 GFLOPS"},
        {UNITS_FLOPS, "0FLOPS", 0, "0FLOPS", "0.0 FLOPS"},
        {UNITS_OPS, "1979TOPS", INT64_C(1979000000000000), "1979TOPS", "2.0 POPS"},
        {UNITS_BANDWIDTH, "100GB/s", INT64_C(100000000000), "100GB/s", "93.1 GiB/s"},
        {UNITS_BANDWIDTH, "2GiB", INT64_C(2) << 30, "2GiB/s", "2.0 GiB/s"},
        {UNITS_BANDWIDTH, "4096", 4096, "4KiB/s", "4.0 KiB/s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t value = -1;
        char text[UNITS_TEXT_SIZE];
        ck_assert_int_eq(units_read(cases[i].kind, cases[i].text, &value), UNITS_OK);
        ck_assert_int_eq(value, cases[i].value);
        units_text(cases[i].kind, value, text);
        ck_assert_str_eq(text, cases[i].again);
        units_short(cases[i].kind, value, text);
        ck_assert_str_eq(text, cases[i].brief);
    }
    int64_t untouched = 7;
    ck_assert_int_eq(units_read(UNITS_FLOPS, "300", &untouched), UNITS_NO_UNIT);
    ck_assert_int_eq(units_read(UNITS_FLOPS, "300tflops", &untouched), UNITS_UNKNOWN_UNIT);
    ck_assert_int_eq(units_read(UNITS_FLOPS, "1TFLOPS/s", &untouched), UNITS_MALFORMED);
    ck_assert_int_eq(units_read(UNITS_FLOPS, "-1FLOPS", &untouched), UNITS_MALFORMED);
    ck_assert_int_eq(units_read(UNITS_FLOPS, "nanFLOPS", &untouched), UNITS_MALFORMED);
    ck_assert_int_eq(units_read(UNITS_FLOPS, "9.3EFLOPS", &untouched), UNITS_OVERFLOW);
    ck_assert_int_eq(units_read(UNITS_BANDWIDTH, "100/s", &untouched), UNITS_MALFORMED);
    ck_assert_int_eq(untouched, 7);
}
END_TEST

START_TEST(a_refusal_says_what_would_be_right)
{
    char text[160];
    units_explain(UNITS_DURATION, UNITS_NO_UNIT, "10", text, sizeof text);
    ck_assert_str_eq(text, "\"10\" has no unit; write for example 90s, 10m, 1h30m or 7d");
    units_explain(UNITS_BYTES, UNITS_UNKNOWN_UNIT, "2G\x1b[31m", text, sizeof text);
    ck_assert_str_eq(text, "\"2G?[31m\" has an unknown unit; known are "
                           "B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB");
    units_explain(UNITS_MONEY, UNITS_INEXACT, "0.0000001", text, sizeof text);
    ck_assert_str_eq(text, "\"0.0000001\" is finer than the smallest step, 0.000001 (6 decimals)");
}
END_TEST

START_TEST(a_range_knows_its_numbers)
{
    struct range range;
    ck_assert(range_parse("1-100:2", &range, NULL));
    ck_assert_int_eq(range.first, 1);
    ck_assert_int_eq(range.last, 99);
    ck_assert_int_eq(range_count(&range), 50);
    ck_assert_int_eq(range_at(&range, 49), 99);

    ck_assert(range_parse("7", &range, NULL));
    ck_assert_int_eq(range_count(&range), 1);
    ck_assert(range_parse("0-9223372036854775807:9223372036854775807", &range, NULL));
    ck_assert_int_eq(range_count(&range), 2);
    ck_assert_int_eq(range_at(&range, 1), INT64_MAX);
}
END_TEST

START_TEST(wrong_ranges_are_refused_with_the_reason)
{
    static const char *const malformed[] = {
        "",    "-",     "1-",     "-5",   "1-2:",  "1-2:0", "7:2",    "1-2-3",
        "a-b", "1 - 5", "1-5:-1", "1..5", "0x1-5", "1,2",   "1-5:2:3"};
    struct range range = {.first = 5, .last = 5, .step = 1};
    struct problem problem;
    for (size_t i = 0; i < COUNT(malformed); i++) {
        ck_assert_msg(!range_parse(malformed[i], &range, &problem), "%s", malformed[i]);
        ck_assert_ptr_nonnull(strstr(problem.text, "is not a range"));
    }
    ck_assert(!range_parse("5-1", &range, &problem));
    ck_assert_str_eq(problem.text,
                     "the range \"5-1\" runs backwards; write the smaller number first");
    ck_assert(range_parse("1-10000000", &range, &problem));
    ck_assert(!range_parse("0-10000000", &range, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "more than 10000000"));
    ck_assert(!range_parse("0-9223372036854775807", &range, &problem));
}
END_TEST

SUITE("units", NULL, NULL, TEST(what_is_left_is_never_shown_as_more),
      TEST(durations_are_read_exactly), TEST(wrong_durations_are_refused),
      TEST(sizes_are_read_exactly), TEST(wrong_sizes_are_refused), TEST(amounts_are_read_exactly),
      TEST(wrong_amounts_are_refused), TEST(counts_are_digits),
      TEST(a_text_longer_than_any_number_is_refused),
      TEST(numbers_are_written_as_people_write_them), TEST(short_forms_round_and_carry),
      TEST(rates_are_read_and_written_exactly), TEST(a_refusal_says_what_would_be_right),
      TEST(a_range_knows_its_numbers), TEST(wrong_ranges_are_refused_with_the_reason))
