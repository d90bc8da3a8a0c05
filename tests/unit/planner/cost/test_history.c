/* The tests ask what measurements say, and how much they count against a model. */
#include "planner/cost/history.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

static struct history history_of(const int64_t *samples, size_t count)
{
    struct history history = {.count = 0};
    for (size_t i = 0; i < count; i++) {
        ck_assert(history_add(&history, samples[i]));
    }
    return history;
}
#define HISTORY(...)                                                                               \
    history_of((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / 8)

START_TEST(the_median_is_what_half_of_them_took)
{
    struct history empty = {.count = 0};
    ck_assert_uint_eq(history_summarise(&empty).count, 0);
    struct history one = HISTORY(70);
    ck_assert_int_eq(history_summarise(&one).median, 70);
    struct history three = HISTORY(70, 90, 80);
    ck_assert_int_eq(history_summarise(&three).median, 80);
    struct history four = HISTORY(70, 95, 80, 90); /* (80 + 90) / 2 */
    ck_assert_int_eq(history_summarise(&four).median, 85);
    struct history odd = HISTORY(70, 71); /* rounded down */
    ck_assert_int_eq(history_summarise(&odd).median, 70);
}
END_TEST

/* Median 100, distances 0 1 1 2 2 3 and that of the stranger: MAD 2, floor 2 % = 2. 3 x 1.4826 x 2
 * = 8.9, so 8 away is in and 9 away is out. */
START_TEST(what_is_far_from_the_median_is_left_out)
{
    struct history in = HISTORY(99, 98, 97, 100, 101, 102, 108);
    ck_assert_uint_eq(history_summarise(&in).outliers, 0);
    struct history out = HISTORY(99, 98, 97, 100, 101, 102, 109);
    struct history_summary summary = history_summarise(&out);
    ck_assert_uint_eq(summary.outliers, 1);
    ck_assert_uint_eq(summary.count, 6);
    ck_assert_int_eq(summary.median, 99); /* of 97 .. 102: between 99 and 100 */
    struct history both = HISTORY(1, 99, 98, 97, 100, 101, 102, 103, INT64_MAX);
    ck_assert_uint_eq(history_summarise(&both).outliers, 2);
}
END_TEST

START_TEST(of_equal_samples_a_little_off_is_no_outlier)
{
    struct history history = HISTORY(1000, 1000, 1000, 1000, 1000, 1080); /* 3 x 1.4826 x 20 = 88 */
    ck_assert_uint_eq(history_summarise(&history).outliers, 0);
    struct history far = HISTORY(1000, 1000, 1000, 1000, 1000, 1090);
    ck_assert_uint_eq(history_summarise(&far).outliers, 1);
}
END_TEST

START_TEST(of_few_nobody_can_say_which_is_the_outlier)
{
    struct history history = HISTORY(10, 10, 1000);
    ck_assert_uint_eq(history_summarise(&history).outliers, 0);
    struct history halves = HISTORY(10, 10, 1000, 1000); /* two against two: all as far from 505 */
    ck_assert_uint_eq(history_summarise(&halves).outliers, 0);
}
END_TEST

/* Devices of one class of which one takes twice, one three times as long: half of all samples are
 * no slips. */
START_TEST(a_mode_of_its_own_is_no_outlier)
{
    struct history history = {.count = 0};
    for (int i = 0; i < HISTORY_SAMPLES; i++) {
        const int64_t took = i % 2 == 0 ? 210 + i % 4 : i % 4 == 1 ? 410 : 610;
        ck_assert(history_add(&history, took));
    }
    const struct history_summary summary = history_summarise(&history);
    ck_assert_uint_eq(summary.outliers, 0);
    ck_assert_uint_eq(summary.count, HISTORY_SAMPLES);
    ck_assert_int_eq(summary.p90, 610);
    /* Two of eight are, three of nine are not. */
    struct history two = HISTORY(100, 100, 101, 101, 102, 102, 300, 300);
    ck_assert_uint_eq(history_summarise(&two).outliers, 2);
    struct history three = HISTORY(100, 100, 101, 101, 102, 102, 300, 300, 300);
    ck_assert_uint_eq(history_summarise(&three).outliers, 0);
}
END_TEST

START_TEST(nine_of_ten_took_at_most)
{
    struct history few = HISTORY(10, 11, 12, 13);
    ck_assert_int_eq(history_summarise(&few).p90, 0); /* too few to say */
    struct history ten = HISTORY(10, 11, 12, 13, 14, 15, 16, 17, 18, 19);
    ck_assert_int_eq(history_summarise(&ten).p90, 18);
    struct history eleven = HISTORY(10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20);
    ck_assert_int_eq(history_summarise(&eleven).p90, 19); /* the tenth: 9.9 of 11 */
}
END_TEST

START_TEST(n_samples_weigh_n_to_four)
{
    struct history history = {.count = 0};
    struct history_summary none = history_summarise(&history);
    ck_assert_int_eq(history_blend(&none, 500), 500);
    ck_assert(history_add(&history, 1000));
    struct history_summary one = history_summarise(&history);
    ck_assert_int_eq(history_blend(&one, 500), 600); /* (1000 + 4 x 500) / 5 */
    ck_assert_int_eq(history_blend(&one, 0), 1000);  /* no model */
    ck_assert_int_eq(history_blend(&one, 501), 601); /* 600.8, up */
    for (int i = 0; i < 3; i++) {
        ck_assert(history_add(&history, 1000));
    }
    struct history_summary four = history_summarise(&history);
    ck_assert_int_eq(history_blend(&four, 500), 750); /* half and half */
    for (int i = 0; i < 100; i++) {
        ck_assert(history_add(&history, INT64_MAX));
    }
    struct history_summary full = history_summarise(&history);
    ck_assert_int_eq(history_blend(&full, INT64_MAX), INT64_MAX);
    ck_assert_uint_eq(full.count, HISTORY_SAMPLES);
}
END_TEST

START_TEST(a_device_that_changed_is_believed)
{
    struct history history = {.count = 0};
    for (int i = 0; i < 100; i++) {
        ck_assert(history_add(&history, 1000));
    }
    for (int i = 0; i < HISTORY_SAMPLES / 2 - 1; i++) {
        ck_assert(history_add(&history, 3000));
    }
    ck_assert_int_eq(history_summarise(&history).median, 1000);
    for (int i = 0; i < 2; i++) {
        ck_assert(history_add(&history, 3000));
    }
    ck_assert_int_eq(history_summarise(&history).median, 3000);
}
END_TEST

START_TEST(what_is_no_time_is_not_added)
{
    struct history history = {.count = 0};
    ck_assert(!history_add(&history, 0));
    ck_assert(!history_add(&history, -1));
    ck_assert(!history_add(&history, INT64_MIN));
    ck_assert_uint_eq(history.count, 0);
}
END_TEST

/* The order in which samples come does not matter, and the blend lies between the two. */
START_TEST(summaries_do_not_depend_on_order)
{
    struct random random = random_seeded((uint64_t)_i + 1);
    int64_t samples[HISTORY_SAMPLES];
    size_t count = 1 + (size_t)random_below(&random, HISTORY_SAMPLES);
    for (size_t i = 0; i < count; i++) {
        samples[i] = 1 + (int64_t)(random_u64(&random) >> (1 + random_below(&random, 62)));
    }
    struct history history = history_of(samples, count);
    struct history_summary before = history_summarise(&history);
    for (size_t i = count; i-- > 1;) {
        size_t other = (size_t)random_below(&random, i + 1);
        int64_t kept = samples[i];
        samples[i] = samples[other];
        samples[other] = kept;
    }
    history = history_of(samples, count);
    struct history_summary after = history_summarise(&history);
    ck_assert_int_eq(before.median, after.median);
    ck_assert_int_eq(before.p90, after.p90);
    ck_assert_uint_eq(before.count + before.outliers, count);
    ck_assert_uint_ge(2 * before.count, count); /* half of them are within MAD */
    ck_assert(before.p90 == 0 || before.p90 >= before.median);
    int64_t model = 1 + (int64_t)(random_u64(&random) >> 1);
    int64_t blend = history_blend(&before, model);
    int64_t low = before.median < model ? before.median : model;
    int64_t high = before.median > model ? before.median : model;
    ck_assert(blend >= low && blend <= high);
}
END_TEST

SUITE("history", NULL, NULL, TEST(the_median_is_what_half_of_them_took),
      TEST(what_is_far_from_the_median_is_left_out),
      TEST(of_equal_samples_a_little_off_is_no_outlier),
      TEST(of_few_nobody_can_say_which_is_the_outlier), TEST(a_mode_of_its_own_is_no_outlier),
      TEST(nine_of_ten_took_at_most), TEST(n_samples_weigh_n_to_four),
      TEST(a_device_that_changed_is_believed), TEST(what_is_no_time_is_not_added),
      LOOP(summaries_do_not_depend_on_order, 0, 100))
