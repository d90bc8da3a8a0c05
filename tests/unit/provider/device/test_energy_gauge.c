/* Readings of a device that come from time to time say what an attempt between them used. */
#include "provider/device/energy_gauge.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>

#define S NS_PER_S

/* A device at 100 W, with a counter or with its power alone. */
static void read_at(struct energy_gauges *gauges, int64_t second, bool has_counter)
{
    energy_gauge_read(gauges, "gpu", second * S, has_counter ? 7000 + second * 100000 : -1, 100000);
}

START_TEST(readings_inside_an_attempt_measure_it)
{
    for (int has_counter = 0; has_counter < 2; has_counter++) {
        CLEANUP(energy_gauge_destroy) struct energy_gauges *gauges = energy_gauge_create();
        struct energy_span span;
        struct energy_span other;
        read_at(gauges, 1, has_counter != 0);
        energy_gauge_begin(gauges, "gpu", 5 * S, &span);
        energy_gauge_begin(gauges, "else", 5 * S, &other);
        for (int64_t second = 10; second <= 30; second += 5) {
            read_at(gauges, second, has_counter != 0);
        }
        ck_assert_int_eq(energy_gauge_end(gauges, &span, 33 * S), INT64_C(2800000000));
        ck_assert_int_eq(energy_gauge_end(gauges, &other, 33 * S), -1);
    }
}
END_TEST

START_TEST(the_greatest_power_inside_a_span_is_kept)
{
    CLEANUP(energy_gauge_destroy) struct energy_gauges *gauges = energy_gauge_create();
    struct energy_span span;
    struct energy_span counted;
    energy_gauge_read(gauges, "gpu", 1 * S, -1, 900000);
    energy_gauge_begin(gauges, "gpu", 2 * S, &span);
    ck_assert_int_eq(span.peak_mw, -1);
    energy_gauge_read(gauges, "gpu", 3 * S, -1, 100000);
    energy_gauge_read(gauges, "gpu", 4 * S, -1, 250000);
    energy_gauge_read(gauges, "gpu", 5 * S, -1, 120000);
    ck_assert_int_eq(span.peak_mw, 250000);
    (void)energy_gauge_end(gauges, &span, 6 * S);
    energy_gauge_begin(gauges, "gpu", 6 * S, &counted);
    energy_gauge_read(gauges, "gpu", 7 * S, 5000, -1); /* a counter says no power */
    ck_assert_int_eq(counted.peak_mw, -1);
    (void)energy_gauge_end(gauges, &counted, 8 * S);
}
END_TEST

START_TEST(readings_of_less_than_half_measure_nothing)
{
    CLEANUP(energy_gauge_destroy) struct energy_gauges *gauges = energy_gauge_create();
    struct energy_span spans[3];
    energy_gauge_begin(gauges, "gpu", 0, &spans[0]);
    read_at(gauges, 5, true);
    energy_gauge_begin(gauges, "gpu", 6 * S, &spans[1]);
    ck_assert_int_eq(energy_gauge_end(gauges, &spans[1], 8 * S), -1); /* no reading at all */
    energy_gauge_begin(gauges, "gpu", 8 * S, &spans[1]);
    read_at(gauges, 10, true);
    ck_assert_int_eq(energy_gauge_end(gauges, &spans[1], 11 * S), -1); /* one reading */
    ck_assert_int_eq(energy_gauge_end(gauges, &spans[0], 11 * S), -1); /* 5 of 11 seconds */
    energy_gauge_begin(gauges, "gpu", 10 * S, &spans[2]);
    read_at(gauges, 11, true);
    read_at(gauges, 16, true);
    ck_assert_int_eq(energy_gauge_end(gauges, &spans[2], 20 * S), INT64_C(1000000000));
}
END_TEST

/* A counter that goes back, a device that does not answer, or a long gap: what was before is
 * forgotten. */
START_TEST(after_a_gap_the_measurement_begins_anew)
{
    for (int way = 0; way < 3; way++) {
        CLEANUP(energy_gauge_destroy) struct energy_gauges *gauges = energy_gauge_create();
        struct energy_span span;
        const int64_t gap = way == 2 ? 100 : 5;
        energy_gauge_begin(gauges, "gpu", 0, &span);
        energy_gauge_read(gauges, "gpu", 0, 900000000, -1);
        if (way == 1) {
            energy_gauge_read(gauges, "gpu", 2 * S, -1, -1);
        }
        energy_gauge_read(gauges, "gpu", gap * S, way == 0 ? 0 : 950000000, -1);
        energy_gauge_read(gauges, "gpu", (gap + 20) * S, way == 0 ? 3000 : 950003000, -1);
        ck_assert_int_eq(span.first_ns, gap * S);
        ck_assert_int_eq(span.last_uj - span.first_uj, 3000000);
        (void)energy_gauge_end(gauges, &span, (gap + 20) * S);
    }
}
END_TEST

/* No device works without energy. */
START_TEST(a_counter_that_stands_still_measures_nothing)
{
    CLEANUP(energy_gauge_destroy) struct energy_gauges *gauges = energy_gauge_create();
    struct energy_span span;
    energy_gauge_begin(gauges, "gpu", 0, &span);
    energy_gauge_read(gauges, "gpu", 0, 7, -1);
    energy_gauge_read(gauges, "gpu", 10 * S, 7, -1);
    ck_assert_int_eq(energy_gauge_end(gauges, &span, 10 * S), -1);
}
END_TEST

START_TEST(devices_beyond_the_most_are_not_measured)
{
    CLEANUP(energy_gauge_destroy) struct energy_gauges *gauges = energy_gauge_create();
    for (int i = 0; i <= ENERGY_GAUGES_MAX; i++) {
        struct energy_span span;
        char label[16];
        (void)snprintf(label, sizeof label, "gpu%d", i);
        energy_gauge_begin(gauges, label, 0, &span);
        energy_gauge_read(gauges, label, 0, -1, 1000);
        energy_gauge_read(gauges, label, S, -1, 1000);
        ck_assert_int_eq(energy_gauge_end(gauges, &span, S), i < ENERGY_GAUGES_MAX ? 1000000 : -1);
    }
}
END_TEST

SUITE("energy gauge", NULL, NULL, TEST(readings_inside_an_attempt_measure_it),
      TEST(the_greatest_power_inside_a_span_is_kept),
      TEST(readings_of_less_than_half_measure_nothing),
      TEST(after_a_gap_the_measurement_begins_anew),
      TEST(a_counter_that_stands_still_measures_nothing),
      TEST(devices_beyond_the_most_are_not_measured))
