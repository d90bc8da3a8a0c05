/* The tests choose how many parts the rows of an array have, for devices of equal and unlike
 * speed. */
#include "planner/layout/parts.h"

#include "tests/support/suite.h"

static struct parts found;

static const struct split_device fast = {.flops = 3e9, .slots = 1};
static const struct split_device slow = {.flops = 1e9, .slots = 1};

START_TEST(each_equal_slot_has_a_part)
{
    const struct split_device devices[] = {{.flops = 1e9, .slots = 3}, slow};
    const struct parts_work work = {.rows = 1000, .flop = 40e9, .overhead_s = 0.1};
    ck_assert_int_eq(parts_choose(&work, devices, 2, &found), SPLIT_OK);
    ck_assert_uint_eq(found.parts, 4);
    ck_assert_uint_eq(found.slots, 4);
    ck_assert_uint_eq(found.device_count, 2);
    ck_assert(found.single_s > 39 && found.finish_s < 10.2);
}
END_TEST

START_TEST(shares_follow_the_speeds)
{
    const struct split_device devices[] = {fast, slow};
    const struct parts_work work = {.rows = 1000, .flop = 40e9, .overhead_s = 0.01};
    ck_assert_int_eq(parts_choose(&work, devices, 2, &found), SPLIT_OK);
    ck_assert_uint_eq(found.parts, 4); /* three for the one, one for the other */
    ck_assert(found.finish_s < 10.2);
    ck_assert(found.least_flops == 1e9);
}
END_TEST

START_TEST(a_device_that_is_too_slow_has_no_part)
{
    const struct split_device devices[] = {fast, fast, {.flops = 1e6, .slots = 1}};
    const struct parts_work work = {.rows = 1000, .flop = 6e9, .overhead_s = 0.05};
    ck_assert_int_eq(parts_choose(&work, devices, 3, &found), SPLIT_OK);
    ck_assert_uint_eq(found.parts, 2);
    ck_assert_uint_eq(found.device_count, 2);
    ck_assert(found.least_flops == 3e9);
}
END_TEST

START_TEST(nothing_is_split_for_a_small_gain)
{
    const struct split_device devices[] = {{.flops = 1e9, .fixed_s = 0.1, .slots = 1},
                                           {.flops = 1e9, .fixed_s = 0.1, .slots = 1}};
    struct parts_work work = {.rows = 1000, .flop = 1e7, .overhead_s = 0.01};
    ck_assert_int_eq(parts_choose(&work, devices, 2, &found), SPLIT_OK);
    ck_assert_uint_eq(found.parts, 1); /* 115 ms, where one alone takes 120 ms */
    work.flop = 1e9;
    ck_assert_int_eq(parts_choose(&work, devices, 2, &found), SPLIT_OK);
    ck_assert_uint_eq(found.parts, 2);
    work.rows = 1;
    ck_assert_int_eq(parts_choose(&work, devices, 2, &found), SPLIT_OK);
    ck_assert_uint_eq(found.parts, 1);
    work.rows = 0;
    ck_assert_int_eq(parts_choose(&work, devices, 2, &found), SPLIT_BAD_INPUT);
    work.rows = 1;
    ck_assert_int_eq(parts_choose(&work, devices, 0, &found), SPLIT_BAD_INPUT);
}
END_TEST

/* The number that is taken ends as early as any number of parts up to 64, but for the tolerance. */
START_TEST(no_number_of_parts_is_much_better)
{
    const struct split_device devices[] = {
        {.flops = (1 + _i % 7) * 1e9, .fixed_s = 0.05 * (_i % 3), .slots = 1 + (uint32_t)_i % 2},
        {.flops = (1 + _i % 5) * 1e9, .slots = 2},
        {.flops = (1 + _i % 11) * 3e8, .slots = 1, .link = 1e8}};
    const struct parts_work work = {
        .rows = 48, .flop = (1 + _i) * 1e9, .bytes = 1e6 * _i, .overhead_s = 0.02};
    ck_assert_int_eq(parts_choose(&work, devices, 3, &found), SPLIT_OK);
    for (uint32_t parts = 1; parts <= 40; parts++) {
        struct split_share shares[3];
        struct split split;
        const struct split_work pieces = {.units = parts,
                                          .flop = work.flop / parts,
                                          .bytes = work.bytes / parts,
                                          .overhead_s = work.overhead_s};
        ck_assert_int_eq(split_make(&pieces, devices, 3, shares, &split), SPLIT_OK);
        ck_assert(found.finish_s <= split.finish_s * 1.021 || found.parts == 1);
        ck_assert(found.parts > 1 || split.finish_s * 1.02 > found.single_s * 0.949);
    }
}
END_TEST

SUITE("parts", NULL, NULL, TEST(each_equal_slot_has_a_part), TEST(shares_follow_the_speeds),
      TEST(a_device_that_is_too_slow_has_no_part), TEST(nothing_is_split_for_a_small_gain),
      LOOP(no_number_of_parts_is_much_better, 0, 40))
