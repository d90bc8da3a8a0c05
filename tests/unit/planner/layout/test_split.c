#include "planner/layout/split.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 4, SOME = 300 };

static struct split split;
static struct split_share shares[SPLIT_DEVICES];

static struct split_device device(double flops, double fixed_s)
{
    return (struct split_device){
        .flops = flops, .fixed_s = fixed_s, .slots = 1, .tile_bytes = UINT64_C(1) << 30};
}

START_TEST(four_times_the_speed_gets_four_times_the_work)
{
    const struct split_device devices[] = {device(4e9, 0), device(1e9, 0)};
    const struct split_work work = {.units = 100, .flop = 1e9};
    ck_assert_int_eq(split_make(&work, devices, 2, shares, &split), SPLIT_OK);
    ck_assert(split.is_split);
    ck_assert_uint_eq(shares[0].units, 80);
    ck_assert_uint_eq(shares[1].units, 20);
    ck_assert_double_eq_tol(split.finish_s, 20, 1e-9);
    ck_assert_double_eq_tol(split.single_s, 25, 1e-9);
    ck_assert_uint_eq(split.single, 0);
}
END_TEST

START_TEST(a_fixed_cost_is_made_up_for_by_less_work)
{
    /* The two end after 6 s: 6 units at once, or 5 s of preparing and 1 unit. */
    const struct split_device devices[] = {device(1e9, 0), device(1e9, 5)};
    const struct split_work work = {.units = 7, .flop = 1e9};
    ck_assert_int_eq(split_make(&work, devices, 2, shares, &split), SPLIT_OK);
    ck_assert_uint_eq(shares[0].units, 6);
    ck_assert_uint_eq(shares[1].units, 1);
    ck_assert_double_eq_tol(shares[1].finish_s, 6, 1e-9);
}
END_TEST

START_TEST(who_would_start_after_the_end_gets_nothing)
{
    const struct split_device devices[] = {device(1e9, 0), device(1e12, 11), device(1e9, 0)};
    const struct split_work work = {.units = 20, .flop = 1e9};
    ck_assert_int_eq(split_make(&work, devices, 3, shares, &split), SPLIT_OK);
    ck_assert_uint_eq(shares[0].units, 10);
    ck_assert_uint_eq(shares[1].units, 0);
    ck_assert_double_eq(shares[1].finish_s, 0);
    ck_assert_uint_eq(shares[2].units, 10);
    ck_assert_uint_eq(split.device_count, 2);
}
END_TEST

START_TEST(a_split_that_gains_little_is_not_used)
{
    const struct split_device devices[] = {device(25e9, 0), device(1e9, 0)};
    struct split_work work = {.units = 100, .flop = 1e9};
    ck_assert_int_eq(split_make(&work, devices, 2, shares, &split), SPLIT_OK);
    ck_assert(!split.is_split); /* 4 % */
    ck_assert_uint_eq(shares[0].units, 100);
    ck_assert_uint_eq(shares[1].units, 0);
    ck_assert_double_eq(split.finish_s, split.single_s);

    const struct split_device better[] = {device(16e9, 0), device(1e9, 0)};
    ck_assert_int_eq(split_make(&work, better, 2, shares, &split), SPLIT_OK);
    ck_assert(split.is_split); /* 6 % */
}
END_TEST

START_TEST(a_slow_link_bounds_a_fast_device)
{
    struct split_device devices[] = {device(1e12, 0), device(1e9, 0)};
    devices[0].link = 1e6; /* a unit's megabyte takes a second */
    const struct split_work work = {.units = 10, .flop = 1e9, .bytes = 1e6};
    ck_assert_int_eq(split_make(&work, devices, 2, shares, &split), SPLIT_OK);
    ck_assert_uint_eq(shares[0].units, 5);
    ck_assert_uint_eq(shares[1].units, 5);
    devices[0].slots = 4; /* of one link, no faster */
    ck_assert_int_eq(split_make(&work, devices, 2, shares, &split), SPLIT_OK);
    ck_assert_double_eq_tol(split.finish_s, 6, 1e-9); /* rounds of four units in 4 s */
}
END_TEST

START_TEST(equal_devices_prefer_the_cheaper_one)
{
    struct split_device devices[] = {device(1e9, 0), device(1e9, 0)};
    devices[0].price_micro = 3600000;
    devices[1].price_micro = 1800000;
    struct split_work work = {.units = 3, .flop = 1e9};
    ck_assert_int_eq(split_make(&work, devices, 2, shares, &split), SPLIT_OK);
    ck_assert_uint_eq(shares[0].units, 1);
    ck_assert_uint_eq(shares[1].units, 2);
    ck_assert_int_eq(split.cost_micro, 1000 + 2 * 500 + 1);
    work.units = 1;
    ck_assert_int_eq(split_make(&work, devices, 2, shares, &split), SPLIT_OK);
    ck_assert(!split.is_split);
    ck_assert_uint_eq(split.single, 1);
}
END_TEST

START_TEST(figures_out_of_range_are_refused)
{
    const struct split_device good = device(1e9, 0);
    const struct split_work work = {.units = 1, .flop = 1};
    struct split_device bad[] = {good, good, good, good, good, good};
    bad[0].flops = 0;
    bad[1].flops = NAN;
    bad[2].fixed_s = -1;
    bad[3].link = INFINITY;
    bad[4].slots = 0;
    bad[5].price_micro = -1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(split_make(&work, &bad[i], 1, shares, &split), SPLIT_BAD_INPUT);
    }
    ck_assert_int_eq(split_make(&work, &good, 0, shares, &split), SPLIT_BAD_INPUT);
    const struct split_work nothing = {.units = 0, .flop = 1};
    ck_assert_int_eq(split_make(&nothing, &good, 1, shares, &split), SPLIT_BAD_INPUT);
    struct split_device wide = good;
    wide.slots = SPLIT_SLOTS + 1;
    ck_assert_int_eq(split_make(&work, &wide, 1, shares, &split), SPLIT_BAD_INPUT);
}
END_TEST

/* ---------------------------------------------------------------- against a slow model */

static double slow_finish_s(const struct split_work *work, const struct split_device *devices,
                            const uint64_t *units, size_t count)
{
    double latest_s = 0;
    for (size_t i = 0; i < count; i++) {
        double slots = fmin(devices[i].slots, (double)work->units);
        double each_s = fmax(work->overhead_s + work->flop / devices[i].flops,
                             devices[i].link > 0 ? slots * work->bytes / devices[i].link : 0);
        double rounds = ceil((double)units[i] / devices[i].slots);
        latest_s = fmax(latest_s, units[i] == 0 ? 0 : devices[i].fixed_s + rounds * each_s);
    }
    return latest_s;
}

/* Every way to deal `left` units to the devices from `at` on. */
static double brute_force_s(const struct split_work *work, const struct split_device *devices,
                            uint64_t *units, size_t count, size_t at, uint64_t left)
{
    if (at + 1 == count) {
        units[at] = left;
        return slow_finish_s(work, devices, units, count);
    }
    double best_s = INFINITY;
    for (units[at] = 0; units[at] <= left; units[at]++) {
        best_s = fmin(best_s, brute_force_s(work, devices, units, count, at + 1, left - units[at]));
    }
    return best_s;
}

static struct random dice(void)
{
    const char *given = getenv("BOURSE_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 20261122;
    printf("seed %llu (BOURSE_SEED)\n", (unsigned long long)seed);
    return random_seeded(seed);
}

static struct split_device any_device(struct random *random)
{
    return (struct split_device){
        .flops = 1e9 * (double)(1 + random_below(random, 40)),
        .fixed_s = 0.25 * (double)random_below(random, 40),
        .link = random_below(random, 2) == 0 ? 0 : 1e6 * (double)(1 + random_below(random, 9)),
        .slots = (uint32_t)(1 + random_below(random, 3)),
        .price_micro = (int64_t)random_below(random, 3)};
}

START_TEST(no_other_way_to_deal_the_units_out_ends_earlier)
{
    struct random random = dice();
    for (int i = 0; i < SOME; i++) {
        struct split_device devices[DEVICES];
        uint64_t units[DEVICES] = {0};
        size_t count = 1 + random_below(&random, DEVICES);
        const struct split_work work = {.units = 1 + random_below(&random, 18),
                                        .flop = 1e9 * (double)(1 + random_below(&random, 20)),
                                        .bytes = 1e5 * (double)random_below(&random, 20),
                                        .overhead_s = 0.01 * (double)random_below(&random, 20)};
        for (size_t k = 0; k < count; k++) {
            devices[k] = any_device(&random);
        }
        double best_s = brute_force_s(&work, devices, units, count, 0, work.units);
        ck_assert_int_eq(split_make(&work, devices, count, shares, &split), SPLIT_OK);
        uint64_t sum = 0;
        for (size_t k = 0; k < count; k++) {
            sum += shares[k].units;
            units[k] = shares[k].units;
        }
        ck_assert_uint_eq(sum, work.units);
        ck_assert_double_eq_tol(split.finish_s, slow_finish_s(&work, devices, units, count), 1e-9);
        if (split.is_split) {
            ck_assert_double_eq_tol(split.finish_s, best_s, 1e-9);
            ck_assert_double_le(split.finish_s, 0.95 * split.single_s + 1e-9);
        } else {
            ck_assert(count == 1 || best_s > 0.95 * split.single_s - 1e-9 ||
                      split.device_count == 1);
            ck_assert_double_eq_tol(split.finish_s, split.single_s, 1e-9);
        }
        for (size_t k = 0; k < count;
             k++) { /* no single device is better than what is called the best */
            memset(units, 0, sizeof units);
            units[k] = work.units;
            ck_assert_double_ge(slow_finish_s(&work, devices, units, count), split.single_s - 1e-9);
        }
    }
}
END_TEST

START_TEST(the_largest_market_is_split_in_time)
{
    static struct split_device devices[SPLIT_DEVICES];
    struct random random = dice();
    for (size_t i = 0; i < SPLIT_DEVICES; i++) {
        devices[i] = any_device(&random);
        devices[i].flops = 1e6 * (double)(1 + random_below(&random, 1000000));
        devices[i].slots = 1 + (uint32_t)random_below(&random, 16);
    }
    const struct split_work work = {.units = 10000000, .flop = 1e9};
    ck_assert_int_eq(split_make(&work, devices, SPLIT_DEVICES, shares, &split), SPLIT_OK);
    uint64_t sum = 0;
    for (size_t i = 0; i < SPLIT_DEVICES; i++) {
        sum += shares[i].units;
    }
    ck_assert_uint_eq(sum, work.units);
}
END_TEST

/* ---------------------------------------------------------------- tiles */

static const struct split_product square = {.rows = 4096,
                                            .inner = 4096,
                                            .columns = 4096,
                                            .element_bytes = 4,
                                            .tile_s = 0.005,
                                            .staging = 1e9};
static struct split_grid grid;

START_TEST(blocks_cover_a_side_and_differ_by_one_at_most)
{
    ck_assert_uint_eq(split_edge(10, 4, 0), 0);
    ck_assert_uint_eq(split_edge(10, 4, 1), 3);
    ck_assert_uint_eq(split_edge(10, 4, 2), 6);
    ck_assert_uint_eq(split_edge(10, 4, 3), 8);
    ck_assert_uint_eq(split_edge(10, 4, 4), 10);
    ck_assert_uint_eq(split_edge(UINT64_MAX, 64, 64), UINT64_MAX);
}
END_TEST

START_TEST(alike_devices_get_a_tile_each_where_more_would_be_overhead)
{
    const struct split_device devices[] = {device(1e11, 0), device(1e11, 0)};
    ck_assert_int_eq(split_product(&square, devices, 2, NULL, &grid, shares, &split), SPLIT_OK);
    ck_assert(split.is_split);
    ck_assert_uint_eq(grid.rows, 2);
    ck_assert_uint_eq(grid.columns, 1);
    ck_assert_uint_eq(shares[0].units, 1);
    ck_assert_uint_eq(shares[1].units, 1);
}
END_TEST

START_TEST(lanes_get_several_tiles_each_where_these_cost_little)
{
    struct split_product large = square;
    large.rows = large.inner = large.columns = 16384;
    struct split_device devices[] = {device(1e11, 0), device(1e11, 0)};
    devices[0].tile_bytes = devices[1].tile_bytes = UINT64_C(1) << 34;
    ck_assert_int_eq(split_product(&large, devices, 2, NULL, &grid, shares, &split), SPLIT_OK);
    ck_assert(split.is_split);
    uint32_t tiles = grid.rows * grid.columns;
    ck_assert_uint_ge(tiles, 16);
    ck_assert_uint_le(tiles, 64);
    ck_assert_uint_eq(shares[0].units + shares[1].units, tiles);
}
END_TEST

START_TEST(unlike_devices_get_tiles_small_enough_for_their_speeds)
{
    const struct split_device devices[] = {device(1e11, 0), device(0.5e11, 0)};
    ck_assert_int_eq(split_product(&square, devices, 2, NULL, &grid, shares, &split), SPLIT_OK);
    ck_assert(split.is_split);
    ck_assert_uint_ge(grid.rows * grid.columns, 3);
    ck_assert_uint_gt(shares[0].units, shares[1].units);
    ck_assert_double_eq_tol(shares[0].finish_s, shares[1].finish_s, 0.15 * split.finish_s);
}
END_TEST

/* Two devices that halve 4 s gain 2 s. */
START_TEST(what_gains_less_than_the_margin_stays_whole)
{
    const struct split_device devices[] = {device(1e9, 0), device(1e9, 0)};
    struct split_work work = {.units = 4, .flop = 1e9, .margin_s = 2};
    ck_assert_int_eq(split_make(&work, devices, 2, shares, &split), SPLIT_OK);
    ck_assert(split.is_split);
    work.margin_s = 2.001;
    ck_assert_int_eq(split_make(&work, devices, 2, shares, &split), SPLIT_OK);
    ck_assert(!split.is_split && shares[0].units == 4);
    work.margin_s = -1;
    ck_assert_int_eq(split_make(&work, devices, 2, shares, &split), SPLIT_BAD_INPUT);
}
END_TEST

START_TEST(a_small_product_stays_whole)
{
    struct split_product small = square;
    small.rows = small.inner = small.columns = 100;
    const struct split_device devices[] = {device(1e11, 0), device(1e11, 0)};
    ck_assert_int_eq(split_product(&small, devices, 2, NULL, &grid, shares, &split), SPLIT_OK);
    ck_assert(!split.is_split);
    ck_assert_uint_eq(grid.rows * grid.columns, 1);
}
END_TEST

START_TEST(tiles_keep_to_the_memory_of_a_slot)
{
    struct split_product large = square;
    struct split_device one = device(1e11, 0);
    one.tile_bytes = 40 << 20;
    ck_assert_int_eq(split_product(&large, &one, 1, NULL, &grid, shares, &split), SPLIT_OK);
    uint64_t rows = split_edge(large.rows, grid.rows, 1);
    uint64_t columns = split_edge(large.columns, grid.columns, 1);
    ck_assert_uint_le(4 * (rows * large.inner + large.inner * columns + rows * columns),
                      one.tile_bytes);
    large.inner = UINT64_C(1) << 40;
    ck_assert_int_eq(split_product(&large, &one, 1, NULL, &grid, shares, &split), SPLIT_BAD_INPUT);
}
END_TEST

START_TEST(a_grid_that_is_given_is_kept)
{
    const struct split_device devices[] = {device(1e11, 0), device(1e11, 0)};
    const struct split_grid given = {3, 5};
    ck_assert_int_eq(split_product(&square, devices, 2, &given, &grid, shares, &split), SPLIT_OK);
    ck_assert_uint_eq(grid.rows, 3);
    ck_assert_uint_eq(grid.columns, 5);
    ck_assert_uint_eq(shares[0].units + shares[1].units, 15);
    const struct split_grid too_many = {4097, 1};
    ck_assert_int_eq(split_product(&square, devices, 2, &too_many, &grid, shares, &split),
                     SPLIT_BAD_INPUT);
}
END_TEST

static uint64_t tile_bytes(const struct split_product *product)
{
    uint64_t rows = split_edge(product->rows, grid.rows, 1);
    uint64_t columns = split_edge(product->columns, grid.columns, 1);
    return 4 * (rows * product->inner + product->inner * columns + rows * columns);
}

/* A grid of one's own may make a split look good that is no better than a single device with the
 * best grid. */
START_TEST(a_split_gains_over_the_best_single_device_with_its_own_best_grid)
{
    struct random random = dice();
    for (int i = 0; i < SOME; i++) {
        struct split_device devices[DEVICES];
        size_t count = 1 + random_below(&random, DEVICES);
        struct split_product product = square;
        product.rows = 1 + random_below(&random, 6000);
        product.inner = 1 + random_below(&random, 6000);
        product.columns = 1 + random_below(&random, 6000);
        double single_s = INFINITY;
        double alone_s[DEVICES];
        for (size_t k = 0; k < count; k++) {
            devices[k] = any_device(&random);
            devices[k].link *= 100;
            devices[k].fixed_s /= 10;
            devices[k].tile_bytes = UINT64_C(1) << (20 + random_below(&random, 12));
            bool fits =
                split_product(&product, &devices[k], 1, NULL, &grid, shares, &split) == SPLIT_OK;
            alone_s[k] = fits ? split.finish_s : INFINITY;
            single_s = fmin(single_s, alone_s[k]);
        }
        if (split_product(&product, devices, count, NULL, &grid, shares, &split) != SPLIT_OK) {
            ck_assert(isinf(single_s));
            continue;
        }
        for (size_t k = 0; k < count; k++) {
            ck_assert(shares[k].units == 0 || tile_bytes(&product) <= devices[k].tile_bytes);
        }
        if (split.is_split) {
            ck_assert_double_le(split.finish_s, 0.95 * single_s + 1e-9);
        } else {
            ck_assert_double_eq(split.finish_s, alone_s[split.single]);
            ck_assert_uint_eq(shares[split.single].units, grid.rows * grid.columns);
        }
    }
}
END_TEST

/* One that can hold small tiles only would make them small for all. */
START_TEST(a_device_of_little_memory_makes_no_product_slower)
{
    struct split_device devices[] = {device(1e11, 0), device(1e11, 0), device(1e11, 0)};
    ck_assert_int_eq(split_product(&square, devices, 2, NULL, &grid, shares, &split), SPLIT_OK);
    const double without_s = split.finish_s;
    devices[2].tile_bytes = 18 << 20;
    ck_assert_int_eq(split_product(&square, devices, 3, NULL, &grid, shares, &split), SPLIT_OK);
    ck_assert_double_le(split.finish_s, without_s);
    ck_assert_uint_eq(shares[2].units, 0);
    devices[2].flops = 1e13; /* worth small tiles */
    ck_assert_int_eq(split_product(&square, devices, 3, NULL, &grid, shares, &split), SPLIT_OK);
    ck_assert_uint_gt(shares[2].units, 0);
    ck_assert_uint_le(tile_bytes(&square), devices[2].tile_bytes);
}
END_TEST

START_TEST(what_is_given_keeps_to_devices_that_can_hold_it)
{
    struct split_device devices[] = {device(2e11, 0), device(1e11, 0)};
    const struct split_grid whole = {1, 1};
    devices[0].tile_bytes = 18 << 20;
    ck_assert_int_eq(split_product(&square, devices, 2, &whole, &grid, shares, &split), SPLIT_OK);
    ck_assert_uint_eq(shares[0].units, 0);
    ck_assert_uint_eq(shares[1].units, 1);
    devices[1].tile_bytes = 18 << 20;
    ck_assert_int_eq(split_product(&square, devices, 2, &whole, &grid, shares, &split),
                     SPLIT_BAD_INPUT);
}
END_TEST

START_TEST(of_few_slots_none_is_taken_by_who_cannot_hold_a_tile)
{
    struct split_device devices[] = {device(1e11, 0), device(1e11, 0), device(1e11, 0)};
    struct split_product one = square;
    one.slots = 1;
    devices[0].tile_bytes = 18 << 20;
    ck_assert_int_eq(split_product(&one, devices, 3, NULL, &grid, shares, &split), SPLIT_OK);
    ck_assert_uint_eq(shares[1].units, grid.rows * grid.columns);
    ck_assert_uint_eq(split.device_count, 1);
}
END_TEST

START_TEST(the_best_single_device_has_its_own_best_grid)
{
    struct split_device devices[] = {device(1e11, 0), device(1e11, 0)};
    ck_assert_int_eq(split_product(&square, devices, 1, NULL, &grid, shares, &split), SPLIT_OK);
    const double alone_s = split.finish_s;
    const struct split_grid fine = {32, 32};
    ck_assert_int_eq(split_product(&square, devices, 2, &fine, &grid, shares, &split), SPLIT_OK);
    ck_assert(split.is_split);
    ck_assert_double_le(split.single_s, alone_s);
    ck_assert_int_eq(split_product(&square, devices, 2, NULL, &grid, shares, &split), SPLIT_OK);
    ck_assert_double_le(split.single_s, alone_s);
}
END_TEST

START_TEST(who_is_dear_has_to_gain_more_than_a_little)
{
    struct split_device devices[] = {device(1e11, 0), device(1e11, 0), device(1e11, 0)};
    struct split_product fine = square;
    fine.tile_s = 0;
    fine.staging = 1e12;
    for (size_t i = 0; i < 3; i++) {
        devices[i].slots = 16;
        devices[i].price_micro = 100000;
    }
    devices[2].slots = 1; /* a thirty-third of them all */
    devices[2].price_micro = 5000000;
    ck_assert_int_eq(split_product(&fine, devices, 3, NULL, &grid, shares, &split), SPLIT_OK);
    ck_assert_uint_eq(shares[2].units, 0);
    ck_assert(split.is_split && shares[0].units > 0 && shares[1].units > 0);
    devices[2].slots = 16;
    ck_assert_int_eq(split_product(&fine, devices, 3, NULL, &grid, shares, &split), SPLIT_OK);
    ck_assert_uint_gt(shares[2].units, 0);
}
END_TEST

SUITE("split", NULL, NULL, TEST(four_times_the_speed_gets_four_times_the_work),
      TEST(a_fixed_cost_is_made_up_for_by_less_work),
      TEST(who_would_start_after_the_end_gets_nothing), TEST(a_split_that_gains_little_is_not_used),
      TEST(a_slow_link_bounds_a_fast_device), TEST(equal_devices_prefer_the_cheaper_one),
      TEST(figures_out_of_range_are_refused), TEST(no_other_way_to_deal_the_units_out_ends_earlier),
      TEST(the_largest_market_is_split_in_time),
      TEST(blocks_cover_a_side_and_differ_by_one_at_most),
      TEST(alike_devices_get_a_tile_each_where_more_would_be_overhead),
      TEST(lanes_get_several_tiles_each_where_these_cost_little),
      TEST(unlike_devices_get_tiles_small_enough_for_their_speeds),
      TEST(what_gains_less_than_the_margin_stays_whole), TEST(a_small_product_stays_whole),
      TEST(tiles_keep_to_the_memory_of_a_slot), TEST(a_grid_that_is_given_is_kept),
      TEST(a_split_gains_over_the_best_single_device_with_its_own_best_grid),
      TEST(a_device_of_little_memory_makes_no_product_slower),
      TEST(what_is_given_keeps_to_devices_that_can_hold_it),
      TEST(of_few_slots_none_is_taken_by_who_cannot_hold_a_tile),
      TEST(the_best_single_device_has_its_own_best_grid),
      TEST(who_is_dear_has_to_gain_more_than_a_little))
