#include "planner/cost/estimate.h"

#include "base/checked.h"
#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

static const struct estimate_level market[] = {{0, 1}, {20000, 5}, {50000, 4}, {90000, 100}};

START_TEST(cheapest_lanes_come_first_and_work_is_dealt_in_rounds)
{
    struct estimate_row rows[4];
    struct estimate total;
    const struct estimate_job job = {
        .subtasks = 11, .width = 2, .cap_micro = 50000, .expect_ns = NS_PER_HOUR};
    ck_assert_int_eq(estimate_make(&job, market, 4, rows, &total), ESTIMATE_OK);
    ck_assert_uint_eq(rows[0].lanes, 0); /* one slot is too narrow */
    ck_assert_uint_eq(rows[1].lanes, 2);
    ck_assert_uint_eq(rows[2].lanes, 2);
    ck_assert_uint_eq(rows[3].lanes, 0); /* above the cap */
    ck_assert_uint_eq(rows[1].subtasks, 6);
    ck_assert_uint_eq(rows[2].subtasks, 5);
    ck_assert_uint_eq(total.rounds, 3);
    ck_assert_int_eq(total.makespan_ns, 3 * NS_PER_HOUR);
    ck_assert_int_eq(total.lower_bound_ns, 11 * NS_PER_HOUR / 4);
    ck_assert_int_eq(rows[1].cost_micro, 6 * 2 * 20000);
    ck_assert_int_eq(rows[2].cost_micro, 5 * 2 * 50000);
    ck_assert_int_eq(total.cost_micro, 740000);
    ck_assert_int_eq(total.busy_ns, 11 * NS_PER_HOUR);
}
END_TEST

START_TEST(no_more_lanes_than_subtasks_or_at_most)
{
    struct estimate_row rows[4];
    struct estimate total;
    struct estimate_job job = {.subtasks = 3, .width = 1, .cap_micro = -1, .expect_ns = 1000};
    ck_assert_int_eq(estimate_make(&job, market, 4, rows, &total), ESTIMATE_OK);
    ck_assert_uint_eq(total.lanes, 3);
    ck_assert_uint_eq(rows[0].lanes, 1);
    ck_assert_uint_eq(rows[1].lanes, 2);
    ck_assert_int_eq(total.lower_bound_ns, 1000);
    job.subtasks = 1000;
    job.at_most = 5;
    job.width = 2;
    ck_assert_int_eq(estimate_make(&job, market, 4, rows, &total), ESTIMATE_OK);
    ck_assert_uint_eq(total.lanes, 2);
}
END_TEST

START_TEST(costs_round_up_to_a_micro_credit)
{
    struct estimate_row rows[1];
    struct estimate total;
    const struct estimate_level level = {1, 1};
    const struct estimate_job job = {.subtasks = 1, .width = 1, .cap_micro = -1, .expect_ns = 1};
    ck_assert_int_eq(estimate_make(&job, &level, 1, rows, &total), ESTIMATE_OK);
    ck_assert_int_eq(total.cost_micro, 1);
    const struct estimate_level gift = {0, 1};
    ck_assert_int_eq(estimate_make(&job, &gift, 1, rows, &total), ESTIMATE_OK);
    ck_assert_int_eq(total.cost_micro, 0);
}
END_TEST

START_TEST(nothing_to_run_on_is_said_so)
{
    struct estimate_row rows[4];
    struct estimate total;
    struct estimate_job job = {.subtasks = 1, .width = 101, .cap_micro = -1, .expect_ns = 1};
    ck_assert_int_eq(estimate_make(&job, market, 4, rows, &total), ESTIMATE_NO_LANE);
    ck_assert_int_eq(estimate_make(&job, NULL, 0, rows, &total), ESTIMATE_NO_LANE);
    job.width = 2;
    job.at_most = 1;
    ck_assert_int_eq(estimate_make(&job, market, 4, rows, &total), ESTIMATE_NO_LANE);
    job.at_most = 0;
    job.cap_micro = 19999;
    ck_assert_int_eq(estimate_make(&job, market, 4, rows, &total), ESTIMATE_NO_LANE);
}
END_TEST

START_TEST(wrong_input_and_overflow_are_answers)
{
    struct estimate_row rows[2];
    struct estimate total;
    const struct estimate_level falling[] = {{2, 1}, {1, 1}};
    const struct estimate_level negative[] = {{-1, 1}};
    const struct estimate_level dear[] = {{INT64_MAX, 1}};
    const struct estimate_job good = {.subtasks = 10, .width = 1, .cap_micro = -1, .expect_ns = 1};
    struct estimate_job job = good;
    ck_assert_int_eq(estimate_make(&job, falling, 2, rows, &total), ESTIMATE_BAD_INPUT);
    ck_assert_int_eq(estimate_make(&job, negative, 1, rows, &total), ESTIMATE_BAD_INPUT);
    job.width = 0;
    ck_assert_int_eq(estimate_make(&job, market, 2, rows, &total), ESTIMATE_BAD_INPUT);
    job = good;
    job.subtasks = 0;
    ck_assert_int_eq(estimate_make(&job, market, 2, rows, &total), ESTIMATE_BAD_INPUT);
    job = good;
    job.expect_ns = 0;
    ck_assert_int_eq(estimate_make(&job, market, 2, rows, &total), ESTIMATE_BAD_INPUT);
    job.expect_ns = INT64_MAX;
    ck_assert_int_eq(estimate_make(&job, market, 2, rows, &total), ESTIMATE_OVERFLOW);
    job.expect_ns = NS_PER_HOUR;
    ck_assert_int_eq(estimate_make(&job, dear, 1, rows, &total), ESTIMATE_OVERFLOW);
}
END_TEST

/* Hands subtasks out one by one to the lane that is free first, the cheapest of equals. */
START_TEST(the_sums_agree_with_a_simulation)
{
    struct random random = random_seeded((uint64_t)_i + 1);
    struct estimate_level levels[5];
    struct estimate_row rows[5];
    uint64_t done[5][8] = {{0}};
    int64_t price = 0;
    for (int i = 0; i < 5; i++) {
        price += (int64_t)random_below(&random, 3);
        levels[i] = (struct estimate_level){price, (uint32_t)random_below(&random, 9)};
    }
    const struct estimate_job job = {.subtasks = 1 + random_below(&random, 200),
                                     .width = 1 + (uint32_t)random_below(&random, 3),
                                     .cap_micro = (int64_t)random_below(&random, 8),
                                     .expect_ns = 1 + (int64_t)random_below(&random, 1000)};
    struct estimate total;
    uint64_t lanes = 0;
    for (int i = 0; i < 5; i++) {
        lanes += levels[i].price_micro <= job.cap_micro ? levels[i].slots / job.width : 0;
    }
    enum estimate_status status = estimate_make(&job, levels, 5, rows, &total);
    if (lanes == 0) {
        ck_assert_int_eq(status, ESTIMATE_NO_LANE);
        return;
    }
    ck_assert_int_eq(status, ESTIMATE_OK);
    uint64_t longest = 0;
    for (uint64_t n = 0; n < job.subtasks; n++) {
        uint64_t *free_first = NULL;
        for (int i = 0; i < 5; i++) {
            bool affordable = levels[i].price_micro <= job.cap_micro;
            for (uint32_t k = 0; affordable && k < levels[i].slots / job.width; k++) {
                free_first =
                    free_first == NULL || done[i][k] < *free_first ? &done[i][k] : free_first;
            }
        }
        longest = ++*free_first > longest ? *free_first : longest;
    }
    ck_assert_uint_eq(total.rounds, longest);
    uint64_t all = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t here = 0;
        for (int k = 0; k < 8; k++) {
            here += done[i][k];
        }
        ck_assert_uint_eq(rows[i].subtasks, here);
        all += here;
    }
    ck_assert_uint_eq(all, job.subtasks);
    ck_assert_int_le(total.lower_bound_ns, total.makespan_ns);
}
END_TEST

SUITE("estimate", NULL, NULL, TEST(cheapest_lanes_come_first_and_work_is_dealt_in_rounds),
      TEST(no_more_lanes_than_subtasks_or_at_most), TEST(costs_round_up_to_a_micro_credit),
      TEST(nothing_to_run_on_is_said_so), TEST(wrong_input_and_overflow_are_answers),
      LOOP(the_sums_agree_with_a_simulation, 0, 50))
