/* The measured times of works on classes of devices and on single ones, and what follows from them
 * for one work: on all devices, on a class, and on a device that is unlike its class. */
#include "planner/cost/measured_times.h"

#include "base/cleanup.h"
#include "planner/cost/history.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>

enum { SIZE = 97 };

static struct measured_row row_of(const char *device_class, const char *device, uint32_t samples,
                                  int64_t median_ns, int64_t p90_ns)
{
    struct measured_row row = {
        .size = SIZE, .samples = samples, .median_ns = median_ns, .p90_ns = p90_ns};
    (void)snprintf(row.place.device_class, sizeof row.place.device_class, "%s", device_class);
    (void)snprintf(row.place.device, sizeof row.place.device, "%s", device);
    (void)snprintf(row.place.account, sizeof row.place.account, "%s",
                   device[0] != '\0' ? "owner" : "");
    return row;
}

static void measure(struct measured_times *times, uint32_t work, struct measured_row row)
{
    row.work = work;
    ck_assert(measured_times_add(times, &row));
}

static void slow_down(struct measured_times *times, const char *device_class, const char *device,
                      uint32_t thousandths)
{
    const struct measured_row row = row_of(device_class, device, 1, 1, 1);
    ck_assert(measured_times_add_pace(times, &(struct measured_pace){row.place, thousandths}));
}

START_TEST(classes_count_by_their_samples)
{
    CLEANUP(measured_times_destroy) struct measured_times *times = measured_times_create();
    struct measured_time time;
    measure(times, 3, row_of("nvidia.a", "", 12, 1000, 1200));
    measure(times, 3, row_of("cpu.x", "", 4, 9000, 9900));
    measure(times, 3, row_of("nvidia.a", "slow", 5, 1700, 1800)); /* among the 12 */
    ck_assert(measured_times_of_all(times, 3, SIZE, false, &time));
    ck_assert_int_eq(time.median_ns, (12 * 1000 + 4 * 9000) / 16);
    ck_assert_int_eq(time.p90_ns, 9900);
    ck_assert_uint_eq(time.samples, 16);
    ck_assert(!measured_times_of_all(times, 3, SIZE + 1, false, &time)); /* other inputs */
    ck_assert(!measured_times_of_all(times, 2, SIZE, false, &time));     /* other work */
}
END_TEST

START_TEST(one_class_with_few_samples_leaves_the_p90_unknown)
{
    CLEANUP(measured_times_destroy) struct measured_times *times = measured_times_create();
    struct measured_time time;
    measure(times, 0, row_of("nvidia.a", "", 12, 1000, 1200));
    measure(times, 0, row_of("cpu.x", "", 1, 9000, -1));
    ck_assert(measured_times_of_all(times, 0, SIZE, false, &time));
    ck_assert_int_eq(time.p90_ns, -1);
}
END_TEST

START_TEST(models_count_for_simulated_devices_alone)
{
    CLEANUP(measured_times_destroy) struct measured_times *times = measured_times_create();
    struct measured_time time;
    measure(times, 0, row_of("sim.a", "", 6, 500, 600));
    ck_assert(!measured_times_of_all(times, 0, SIZE, false, &time));
    ck_assert(measured_times_of_all(times, 0, SIZE, true, &time));
    ck_assert_int_eq(time.median_ns, 500);
}
END_TEST

START_TEST(the_p90_of_all_is_that_of_the_slowest_device)
{
    CLEANUP(measured_times_destroy) struct measured_times *times = measured_times_create();
    struct measured_time time;
    measure(times, 0, row_of("nvidia.a", "", 12, 1000, 1200));
    slow_down(times, "nvidia.a", "slow", 1500);
    slow_down(times, "nvidia.a", "slower", 2500);
    slow_down(times, "cpu.x", "other", 9000);
    ck_assert(measured_times_of_all(times, 0, SIZE, false, &time));
    ck_assert_int_eq(time.median_ns, 1000);
    ck_assert_int_eq(time.p90_ns, 3000);
}
END_TEST

START_TEST(a_device_takes_its_own_time_else_that_of_its_class_at_its_pace)
{
    CLEANUP(measured_times_destroy) struct measured_times *times = measured_times_create();
    struct measured_time time;
    measure(times, 0, row_of("nvidia.a", "", 12, 1000, 1200));
    measure(times, 0, row_of("nvidia.a", "slow", 5, 1700, 1800));
    slow_down(times, "nvidia.a", "slower", 2500);
    const struct measured_kind of_class = {"nvidia.a", "", "", 0};
    const struct measured_kind slow = {"nvidia.a", "owner", "slow", 1500};
    const struct measured_kind slower = {"nvidia.a", "owner", "slower", 2500};
    const struct measured_kind other = {"cpu.x", "", "", 0};
    ck_assert(measured_times_of_kind(times, 0, SIZE, &of_class, &time));
    ck_assert_int_eq(time.median_ns, 1000);
    ck_assert(!time.is_at_pace);
    ck_assert(measured_times_of_kind(times, 0, SIZE, &slow, &time));
    ck_assert_int_eq(time.median_ns, 1700);
    ck_assert(!time.is_at_pace);
    ck_assert(measured_times_of_kind(times, 0, SIZE, &slower, &time));
    ck_assert_int_eq(time.median_ns, 2500);
    ck_assert_int_eq(time.p90_ns, 3000);
    ck_assert_uint_eq(time.samples, 12);
    ck_assert(time.is_at_pace);
    ck_assert(!measured_times_of_kind(times, 0, SIZE, &other, &time));
}
END_TEST

START_TEST(devices_with_rows_or_a_pace_are_unlike_their_class)
{
    CLEANUP(measured_times_destroy) struct measured_times *times = measured_times_create();
    uint32_t pace = 7;
    measure(times, 0, row_of("nvidia.a", "slow", 5, 1700, 1800));
    slow_down(times, "nvidia.a", "slower", 2500);
    slow_down(times, "nvidia.a", "slower", 2600); /* told again */
    ck_assert_uint_eq(measured_times_pace_count(times), 1);
    ck_assert(measured_times_are_unlike(times, "owner", "slow", &pace));
    ck_assert_uint_eq(pace, 0);
    ck_assert(measured_times_are_unlike(times, "owner", "slower", &pace));
    ck_assert_uint_eq(pace, 2600);
    ck_assert(!measured_times_are_unlike(times, "other", "slow", &pace));
    ck_assert(!measured_times_are_unlike(times, "", "", &pace));
}
END_TEST

START_TEST(rows_stay_in_their_order_however_many)
{
    enum { ROWS = 1000 };
    CLEANUP(measured_times_destroy) struct measured_times *times = measured_times_create();
    char device_class[16];
    for (uint32_t i = 0; i < ROWS; i++) {
        (void)snprintf(device_class, sizeof device_class, "cpu.%u", i % 10);
        measure(times, i % 7, row_of(device_class, "", i + 1, i + 1, -1));
    }
    ck_assert_uint_eq(measured_times_count(times), ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        ck_assert_uint_eq(measured_times_row(times, i)->samples, i + 1);
        ck_assert_uint_eq(measured_times_row(times, i)->work, i % 7);
    }
}
END_TEST

/* (n median + 4 said) / (n + 4), as planner/cost/history.h has it. */
START_TEST(what_is_stated_weighs_as_four_samples)
{
    const struct measured_time time = {.median_ns = 1000, .p90_ns = -1, .samples = 12};
    ck_assert_int_eq(measured_time_blend(&time, 0), 1000);
    ck_assert_int_eq(measured_time_blend(&time, 2000),
                     (12 * 1000 + HISTORY_MODEL_WEIGHT * 2000) / (12 + HISTORY_MODEL_WEIGHT));
}
END_TEST

SUITE("measured_times", NULL, NULL, TEST(classes_count_by_their_samples),
      TEST(one_class_with_few_samples_leaves_the_p90_unknown),
      TEST(models_count_for_simulated_devices_alone),
      TEST(the_p90_of_all_is_that_of_the_slowest_device),
      TEST(a_device_takes_its_own_time_else_that_of_its_class_at_its_pace),
      TEST(devices_with_rows_or_a_pace_are_unlike_their_class),
      TEST(rows_stay_in_their_order_however_many), TEST(what_is_stated_weighs_as_four_samples))
