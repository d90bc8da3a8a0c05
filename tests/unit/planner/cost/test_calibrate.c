/* A device that is a formula: what is measured on it is known, so what a calibration makes of it
 * can be compared. */
#include "planner/cost/calibrate.h"
#include "planner/cost/catalogue.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 60 };

static const struct cost_calibration truth = {.samples = 1,
                                              .launch_s = 6e-6,
                                              .compute_efficiency = 0.75,
                                              .bandwidth_efficiency = 0.9,
                                              .half = {160, 96, 220},
                                              .p90 = 1};

static const struct device_profile *h100(void)
{
    return &catalogue_find("nvidia-h100-sxm5")->profile;
}

static struct operation product(int64_t m, int64_t n, int64_t k)
{
    struct operation operation = operation_of(OPERATION_MATMUL, DTYPE_BF16);
    operation.shape.product.m = m;
    operation.shape.product.n = n;
    operation.shape.product.k = k;
    return operation;
}

static struct operation any_product(struct random *random)
{
    int64_t sizes[3];
    for (int i = 0; i < 3; i++) {
        sizes[i] = (INT64_C(1) << random_below(random, 13)) + (int64_t)random_below(random, 64);
    }
    return product(sizes[0], sizes[1], sizes[2]);
}

static double predicted(const struct cost_calibration *calibration,
                        const struct operation *operation)
{
    struct cost_calibration all[OPERATION_CLASSES] = {{.samples = 0}};
    enum operation_class class = operation_class_of(operation->kind);
    all[class] = *calibration;
    const struct cost_device device = {.profile = h100(), .calibrations = all};
    struct cost cost;
    ck_assert_int_eq(cost_predict(&device, operation, &cost), COST_OK);
    return cost.time_s.value;
}

static int by_size(const void *a, const void *b)
{
    double first = *(const double *)a;
    double second = *(const double *)b;
    return (first > second) - (first < second);
}

/* Returns how far nine of ten shapes that the calibration has not seen are off at most. */
static double error_of(const struct cost_calibration *found)
{
    enum { SHAPES = 200 };
    struct random random = random_seeded(99);
    double errors[SHAPES];
    for (int i = 0; i < SHAPES; i++) {
        struct operation operation = any_product(&random);
        errors[i] = fabs(predicted(found, &operation) / predicted(&truth, &operation) - 1);
    }
    qsort(errors, SHAPES, sizeof errors[0], by_size);
    return errors[SHAPES * 9 / 10];
}

static void measure(struct calibrate_sample *samples, size_t count, uint64_t seed, double noise)
{
    struct random random = random_seeded(seed);
    for (size_t i = 0; i < count; i++) {
        bool is_thin = i % 6 == 5; /* bound by bandwidth */
        samples[i].operation = is_thin
                                   ? product(1 + (int64_t)(i % 4), 8192, 4096 + 512 * (int64_t)i)
                                   : any_product(&random);
        double dice = (double)random_below(&random, 2001) / 1000 - 1;
        samples[i].seconds = predicted(&truth, &samples[i].operation) * (1 + noise * dice);
    }
}

START_TEST(a_device_is_found_again_from_its_times)
{
    struct calibrate_sample samples[SAMPLES];
    struct cost_calibration found;
    measure(samples, SAMPLES, (uint64_t)_i + 1, 0);
    ck_assert_int_eq(calibrate(h100(), OPERATION_MATRIX, samples, SAMPLES, &found, NULL),
                     CALIBRATE_OK);
    ck_assert_msg(error_of(&found) < 0.02, "%g off", error_of(&found));
    ck_assert_double_eq_tol(found.launch_s, truth.launch_s, 0.02 * truth.launch_s);
    ck_assert_double_eq_tol(found.compute_efficiency, truth.compute_efficiency, 0.02);
    ck_assert_double_eq_tol(found.bandwidth_efficiency, truth.bandwidth_efficiency, 0.05);
    for (int i = 0; i < OPERATION_EXTENTS; i++) {
        ck_assert_double_eq_tol(found.half[i], truth.half[i], 0.1 * truth.half[i]);
    }
    ck_assert(found.p90 >= 1 && found.p90 < 1.01);
    ck_assert_uint_eq(found.samples, SAMPLES);
}
END_TEST

START_TEST(noise_of_a_tenth_leaves_predictions_within_a_tenth)
{
    struct calibrate_sample samples[SAMPLES];
    struct cost_calibration found;
    measure(samples, SAMPLES, (uint64_t)_i + 1, 0.1);
    ck_assert_int_eq(calibrate(h100(), OPERATION_MATRIX, samples, SAMPLES, &found, NULL),
                     CALIBRATE_OK);
    ck_assert_msg(error_of(&found) < 0.1, "%g off", error_of(&found));
    ck_assert(found.p90 > 1.03 && found.p90 < 1.12); /* of dice between -0.1 and 0.1: about 1.08 */
}
END_TEST

/* A probe has these: one after the other twice as large, all cubes. */
START_TEST(five_cubes_are_enough_for_cubes)
{
    struct calibrate_sample samples[5];
    struct cost_calibration found;
    for (int i = 0; i < 5; i++) {
        int64_t side = INT64_C(256) << i;
        samples[i].operation = product(side, side, side);
        samples[i].seconds = predicted(&truth, &samples[i].operation);
    }
    ck_assert_int_eq(calibrate(h100(), OPERATION_MATRIX, samples, 5, &found, NULL), CALIBRATE_OK);
    for (int64_t side = 200; side < 6000; side += 333) {
        struct operation cube = product(side, side, side);
        double ratio = predicted(&found, &cube) / predicted(&truth, &cube);
        ck_assert_msg(ratio > 0.93 && ratio < 1.07, "%lld: %g", (long long)side, ratio);
    }
    ck_assert(found.half[0] == found.half[1] && found.half[1] == found.half[2]);
}
END_TEST

/* Copies show launch and bandwidth. No half is made up, nor an efficiency of what was not used. */
START_TEST(what_is_not_seen_is_not_guessed)
{
    struct calibrate_sample samples[4];
    struct cost_calibration found;
    for (int i = 0; i < 4; i++) {
        struct operation copy = operation_of(OPERATION_COPY, DTYPE_FP32);
        copy.shape.elements.elements = INT64_C(100000) << (3 * i);
        samples[i].operation = copy;
        samples[i].seconds =
            4e-6 + 8 * (double)copy.shape.elements.elements / (0.8 * 3350e9); /* in and out */
    }
    ck_assert_int_eq(calibrate(h100(), OPERATION_MOVING, samples, 4, &found, NULL), CALIBRATE_OK);
    ck_assert_double_eq_tol(found.launch_s, 4e-6, 0.1e-6);
    ck_assert_double_eq_tol(found.bandwidth_efficiency, 0.8, 0.01);
    ck_assert(found.compute_efficiency == 1);
    for (int i = 0; i < OPERATION_EXTENTS; i++) {
        ck_assert(found.half[i] == 0);
    }
    for (int i = 0; i < 4; i++) { /* large products: nothing of the bandwidth shows */
        samples[i].operation = product(8192 + 1024 * i, 8192, 8192);
        samples[i].seconds = 1.5 * predicted(&truth, &samples[i].operation);
    }
    ck_assert_int_eq(calibrate(h100(), OPERATION_MATRIX, samples, 4, &found, NULL), CALIBRATE_OK);
    ck_assert(found.bandwidth_efficiency == 1);
    ck_assert(found.compute_efficiency < 0.75);
}
END_TEST

/* A peak that was declared too low: no efficiency is above 1, and nothing is below the bound. */
START_TEST(nothing_is_said_to_be_faster_than_the_roofline)
{
    struct calibrate_sample samples[5];
    struct cost_calibration found;
    for (int i = 0; i < 5; i++) {
        samples[i].operation = product(1024 + 512 * i, 2048, 2048);
        samples[i].seconds = 2.0 * 1024 * 2048 * 2048 / 989.4e12 / 2;
    }
    ck_assert_int_eq(calibrate(h100(), OPERATION_MATRIX, samples, 5, &found, NULL), CALIBRATE_OK);
    ck_assert(found.compute_efficiency <= 1 && found.bandwidth_efficiency <= 1);
    ck_assert(found.launch_s >= 0 && found.p90 == 1);
}
END_TEST

/* Twelve of one operation and one that took ten times as long, beside others: as without it. */
START_TEST(outliers_among_samples_of_one_operation_do_not_count)
{
    enum { SAME = 12, OTHERS = 3 };
    struct calibrate_sample samples[SAME + OTHERS + 1];
    struct cost_calibration clean;
    struct cost_calibration found;
    for (int i = 0; i < SAME + OTHERS; i++) {
        int64_t side = i < SAME ? 3000 : INT64_C(1024) << (i - SAME);
        samples[i].operation = product(side, side, side);
        samples[i].seconds = predicted(&truth, &samples[i].operation) * (1 + 0.01 * (i % 5));
    }
    samples[SAME + OTHERS].operation = product(3000, 3000, 3000);
    samples[SAME + OTHERS].seconds = samples[0].seconds * 10;
    ck_assert_int_eq(calibrate(h100(), OPERATION_MATRIX, samples, SAME + OTHERS, &clean, NULL),
                     CALIBRATE_OK);
    ck_assert_int_eq(calibrate(h100(), OPERATION_MATRIX, samples, SAME + OTHERS + 1, &found, NULL),
                     CALIBRATE_OK);
    ck_assert_uint_eq(found.samples, SAME + OTHERS);
    ck_assert_uint_eq(found.outliers, 1);
    ck_assert_uint_eq(clean.outliers, 0);
    struct operation shown = product(4000, 4000, 4000);
    ck_assert(predicted(&found, &shown) == predicted(&clean, &shown));
    ck_assert(found.p90 == clean.p90);
}
END_TEST

START_TEST(bad_samples_are_named)
{
    struct calibrate_sample samples[4];
    struct cost_calibration found = {.samples = 77};
    size_t bad = 99;
    measure(samples, 4, 1, 0);
    ck_assert_int_eq(calibrate(h100(), OPERATION_MATRIX, samples, 2, &found, &bad), CALIBRATE_FEW);
    ck_assert_int_eq(calibrate(h100(), OPERATION_MATRIX, samples, CALIBRATE_MOST + 1, &found, &bad),
                     CALIBRATE_FEW);
    const double times[] = {0, -1, NAN, INFINITY};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        measure(samples, 4, 1, 0);
        samples[2].seconds = times[i];
        ck_assert_int_eq(calibrate(h100(), OPERATION_MATRIX, samples, 4, &found, &bad),
                         CALIBRATE_BAD_SAMPLE);
        ck_assert_uint_eq(bad, 2);
    }
    measure(samples, 4, 1, 0);
    samples[3].operation = operation_of(OPERATION_COPY, DTYPE_FP32); /* of another class */
    ck_assert_int_eq(calibrate(h100(), OPERATION_MATRIX, samples, 4, &found, &bad),
                     CALIBRATE_BAD_SAMPLE);
    samples[3].operation = operation_of(OPERATION_MATMUL, DTYPE_INT4); /* no such mode */
    ck_assert_int_eq(calibrate(h100(), OPERATION_MATRIX, samples, 4, &found, &bad),
                     CALIBRATE_BAD_SAMPLE);
    samples[3].operation = product(0, 1, 1);
    ck_assert_int_eq(calibrate(h100(), OPERATION_MATRIX, samples, 4, &found, &bad),
                     CALIBRATE_BAD_SAMPLE);
    ck_assert_uint_eq(bad, 3);
    ck_assert_uint_eq(found.samples, 77);
}
END_TEST

SUITE("calibrate", NULL, NULL, LOOP(a_device_is_found_again_from_its_times, 0, 3),
      LOOP(noise_of_a_tenth_leaves_predictions_within_a_tenth, 0, 3),
      TEST(five_cubes_are_enough_for_cubes), TEST(what_is_not_seen_is_not_guessed),
      TEST(nothing_is_said_to_be_faster_than_the_roofline),
      TEST(outliers_among_samples_of_one_operation_do_not_count), TEST(bad_samples_are_named))
