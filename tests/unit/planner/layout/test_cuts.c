/* The tests cut rows of columns into stages, and compare the cuts with all that there are. */
#include "planner/layout/cuts.h"

#include "tests/support/suite.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { COLUMNS = 9 };

static struct cuts found;

START_TEST(stages_are_level_where_little_crosses)
{
    const double time_s[] = {3, 1, 2, 4, 1};
    const double cross_s[] = {0, 9, 1, 9, 2};
    const struct cuts_input input = {
        .column_count = 5, .stage_count = 2, .time_s = time_s, .cross_s = cross_s};
    ck_assert_int_eq(cuts_find(&input, &found), CUTS_OK);
    ck_assert_uint_eq(found.first[0], 0);
    ck_assert_uint_eq(found.first[1], 2);
    ck_assert(found.slowest_s == 8);
    ck_assert(found.crossing_s == 1);
}
END_TEST

START_TEST(among_cuts_that_are_as_fast_the_least_crosses)
{
    const double time_s[] = {5, 100, 5, 5, 100};
    const double cross_s[] = {0, 0.5, 0.9, 0.1, 0.4};
    const struct cuts_input input = {
        .column_count = 5, .stage_count = 2, .time_s = time_s, .cross_s = cross_s};
    ck_assert_int_eq(cuts_find(&input, &found), CUTS_OK);
    ck_assert_uint_eq(found.first[1], 3); /* 110.1, where 2 would be 110.9 and cross 0.9 */
}
END_TEST

START_TEST(what_cannot_be_cut_is_told)
{
    const double time_s[] = {1, 1, 1};
    const double cross_s[] = {0, INFINITY, 1};
    struct cuts_input input = {
        .column_count = 3, .stage_count = 3, .time_s = time_s, .cross_s = cross_s};
    ck_assert_int_eq(cuts_find(&input, &found), CUTS_NOWHERE);
    input.stage_count = 2;
    ck_assert_int_eq(cuts_find(&input, &found), CUTS_OK);
    ck_assert_uint_eq(found.first[1], 2);
    input.stage_count = CUTS_STAGES + 1;
    ck_assert_int_eq(cuts_find(&input, &found), CUTS_BAD_INPUT);
    input.stage_count = 0;
    ck_assert_int_eq(cuts_find(&input, &found), CUTS_BAD_INPUT);
}
END_TEST

/* ---------------------------------------------------------------- against all cuts */

static uint64_t dice = 88172645463325252U;
static double throw(double most)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return most * (double)(dice >> 11) / 9007199254740992.0;
}

/* Measures the cuts at the bits of `mask`: bit i is a cut before column i + 1. */
static void measure(const struct cuts_input *input, unsigned mask, double *ret_slowest_s,
                    double *ret_crossing_s)
{
    double stage_s = 0;
    *ret_slowest_s = 0;
    *ret_crossing_s = 0;
    for (size_t i = 0; i < input->column_count; i++) {
        const bool is_cut = i > 0 && (mask >> (i - 1) & 1) != 0;
        if (is_cut) {
            *ret_slowest_s = fmax(*ret_slowest_s, stage_s + input->cross_s[i]);
            *ret_crossing_s += input->cross_s[i];
            stage_s = input->cross_s[i];
        }
        stage_s += input->time_s[i];
    }
    *ret_slowest_s = fmax(*ret_slowest_s, stage_s);
}

static unsigned bits_of(unsigned mask)
{
    unsigned bits = 0;
    for (; mask != 0; mask &= mask - 1) {
        bits++;
    }
    return bits;
}

START_TEST(no_cuts_are_better)
{
    double time_s[COLUMNS];
    double cross_s[COLUMNS];
    for (size_t i = 0; i < COLUMNS; i++) {
        time_s[i] = throw(10);
        cross_s[i] = throw(1) < 0.2 ? INFINITY : throw(4);
    }
    const struct cuts_input input = {.column_count = 2 + (size_t) throw(COLUMNS - 2),
                                     .stage_count = 1 + (size_t) throw(5),
                                     .time_s = time_s,
                                     .cross_s = cross_s};
    double least_s = INFINITY;
    double crossing_s = INFINITY;
    double slowest_s;
    double all_s;
    const unsigned masks = 1U << (input.column_count - 1);
    for (unsigned mask = 0; mask < masks; mask++) {
        measure(&input, mask, &slowest_s, &all_s);
        least_s = bits_of(mask) + 1 == input.stage_count ? fmin(least_s, slowest_s) : least_s;
    }
    for (unsigned mask = 0; mask < masks; mask++) {
        measure(&input, mask, &slowest_s, &all_s);
        const bool counts = bits_of(mask) + 1 == input.stage_count &&
                            slowest_s <= least_s * (1 + CUTS_SLACK_PERCENT / 100.0);
        crossing_s = counts ? fmin(crossing_s, all_s) : crossing_s;
    }
    const enum cuts_status status = cuts_find(&input, &found);
    ck_assert_int_eq(status, isinf(least_s) ? CUTS_NOWHERE : CUTS_OK);
    if (status == CUTS_OK) {
        ck_assert(found.slowest_s <= least_s * (1 + CUTS_SLACK_PERCENT / 100.0) + 1e-9);
        ck_assert(fabs(found.crossing_s - crossing_s) < 1e-9);
    }
}
END_TEST

SUITE("cuts", NULL, NULL, TEST(stages_are_level_where_little_crosses),
      TEST(among_cuts_that_are_as_fast_the_least_crosses), TEST(what_cannot_be_cut_is_told),
      LOOP(no_cuts_are_better, 0, 300))
