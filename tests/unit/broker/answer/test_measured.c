/* The tests follow what work was measured to take, by its name, its size and the class of the
 * device. Names are in test_measured_names.c, what is read from a ledger in test_measuring.c. */
#include "base/sha256.h"
#include "broker/answer/measured.h"
#include "broker/answer/paces.h"
#include "planner/cost/pace.h"
#include "planner/schedule/list_schedule.h"
#include "tests/support/measured_rows.h"
#include "tests/support/suite.h"

#include <check.h>

static struct work work_number(uint32_t number)
{
    return (struct work){.name = sha256_of(&number, sizeof number), .size = number % 7};
}

START_TEST(rows_are_by_name_size_and_class)
{
    struct measured *measured = measured_create();
    struct work work = work_number(1);
    ck_assert(measured_add(measured, &work, "cpu", NULL, 10, 1));
    ck_assert(measured_add(measured, &work, "cpu", NULL, 20, 2));
    ck_assert(!measured_add(measured, &work, "cpu", NULL, 0, 3));
    ck_assert_uint_eq(count_rows(measured), 1);
    ck_assert_uint_eq(row_of(measured, &work).history.count, 2);
    ck_assert_int_eq(row_of(measured, &work).at_ns, 2);
    ck_assert(measured_add(measured, &work, "gpu", NULL, 10, 1));
    work.size++;
    ck_assert(measured_add(measured, &work, "gpu", NULL, 10, 1));
    ck_assert_uint_eq(count_rows(measured), 3);
    measured_destroy(&measured);
}
END_TEST

START_TEST(what_was_measured_longest_ago_makes_room)
{
    struct measured *measured = measured_create();
    const struct work first = work_number(0);
    const struct work second = work_number(1);
    for (uint32_t i = 0; i < MEASURED_ROWS; i++) {
        const struct work work = work_number(i);
        ck_assert(measured_add(measured, &work, "cpu", NULL, 10, i));
    }
    ck_assert(measured_add(measured, &first, "cpu", NULL, 10, MEASURED_ROWS)); /* now the newest */
    const struct work more = work_number(MEASURED_ROWS);
    ck_assert(measured_add(measured, &more, "cpu", NULL, 10, MEASURED_ROWS + 1));
    ck_assert_uint_eq(count_rows(measured), MEASURED_ROWS);
    ck_assert_uint_eq(row_of(measured, &first).history.count, 2);
    ck_assert_uint_eq(row_of(measured, &second).history.count, 0);
    ck_assert_uint_eq(row_of(measured, &more).history.count, 1);
    measured_destroy(&measured);
}
END_TEST

/* ---------------------------------------------------------------- devices of unlike speeds */

enum { SUBTASKS = 60, DEVICES = 3 };
#define SUBTASK_NS INT64_C(200000000)

static struct measured *classes, *devices;

static struct measured_device device_number(uint32_t number)
{
    struct measured_device device = {.device = {{1}}};
    device.device.bytes[1] = (uint8_t)number;
    return device;
}

/* Deals work to devices of one class; the first takes SUBTASK_NS, the second twice and the third
 * three times as long. */
static struct list_schedule *dealt(const int64_t takes_ns[DEVICES])
{
    static int64_t all_take_ns[DEVICES * SUBTASKS];
    const struct list_schedule_part part = {.subtasks = SUBTASKS, .slots = 1};
    struct list_schedule_device places[DEVICES];
    struct list_schedule *deal = NULL;
    for (uint32_t d = 0; d < DEVICES; d++) {
        places[d] =
            (struct list_schedule_device){.slots = 1, .price_micro = 1, .parts = 1, .of_class = d};
        for (uint32_t i = 0; i < SUBTASKS; i++) {
            all_take_ns[d * SUBTASKS + i] = takes_ns[d];
        }
    }
    const struct list_schedule_input job = {.parts = &part,
                                            .part_count = 1,
                                            .takes_ns = all_take_ns,
                                            .class_count = DEVICES,
                                            .devices = places,
                                            .device_count = DEVICES};
    ck_assert_int_eq(list_schedule_make(&job, &deal), LIST_SCHEDULE_OK);
    return deal;
}

/* Runs the work as results really come; the device where it ran is in both tables then. */
static int64_t run_once(const struct work *work)
{
    const int64_t takes_ns[DEVICES] = {SUBTASK_NS, 2 * SUBTASK_NS, 3 * SUBTASK_NS};
    struct list_schedule *deal = dealt(takes_ns);
    const int64_t makespan_ns = deal->makespan_ns;
    for (uint32_t k = 0; k < SUBTASKS; k++) {
        uint32_t next = k;
        for (uint32_t i = k + 1; i < SUBTASKS; i++) {
            next = deal->runs[i].end_ns < deal->runs[next].end_ns ? i : next;
        }
        const struct list_schedule_run run = deal->runs[next];
        const struct measured_device device = device_number(run.device);
        deal->runs[next] = deal->runs[k];
        ck_assert(measured_add(classes, work, "cpu", NULL, takes_ns[run.device], run.end_ns));
        ck_assert(measured_add(devices, work, "cpu", &device, takes_ns[run.device], run.end_ns));
    }
    list_schedule_destroy(&deal);
    return makespan_ns;
}

static struct paces *paces;

/* Takes a row for a device by its class, at its pace. */
static bool take_paced(void *context, const struct measured_row *row)
{
    int64_t *takes_ns = context;
    const struct measured_row all = row_of(classes, &row->work);
    takes_ns[row->device.device.bytes[1]] =
        pace_takes_ns(paces_summarise(paces, devices, &all).median, paces_of(paces, row));
    return true;
}

/* Takes a row that is told beside the class and goes before it. */
static bool take_told(void *context, const struct measured_row *row,
                      const struct history_summary *took)
{
    int64_t *takes_ns = context;
    if (!id128_is_zero(&row->device.device)) {
        takes_ns[row->device.device.bytes[1]] = took->median;
    }
    return true;
}

static int64_t planned_ns(const struct work *work)
{
    int64_t takes_ns[DEVICES] = {0};
    paces = paces_create(devices);
    (void)measured_each(devices, &work->name, take_paced, takes_ns);
    ck_assert(paces_tell(paces, classes, devices, &work->name, take_told, takes_ns));
    paces_destroy(&paces);
    struct list_schedule *deal = dealt(takes_ns);
    const int64_t makespan_ns = deal->makespan_ns;
    list_schedule_destroy(&deal);
    return makespan_ns;
}

START_TEST(a_plan_learns_that_devices_of_a_class_are_of_unlike_speeds)
{
    const struct work work = work_number(1);
    classes = measured_create();
    devices = measured_create();
    for (int run = 0; run < 4; run++) {
        const int64_t took_ns = run_once(&work);
        const int64_t plan_ns = planned_ns(&work);
        ck_assert_int_ge(plan_ns, took_ns / 100 * 80);
        ck_assert_int_le(plan_ns, took_ns / 100 * 120);
    }
    ck_assert_uint_eq(count_rows(classes), 1);
    ck_assert_uint_eq(count_rows(devices), DEVICES);
    measured_destroy(&classes);
    measured_destroy(&devices);
}
END_TEST

static void measure(const struct work *work, uint32_t number, int64_t took_ns)
{
    const struct measured_device device = device_number(number);
    ck_assert(measured_add(classes, work, "cpu", NULL, took_ns, 1));
    ck_assert(measured_add(devices, work, "cpu", &device, took_ns, 1));
}

static int64_t of_class(const struct work *work)
{
    const struct measured_row row = row_of(classes, work);
    return paces_summarise(paces, devices, &row).median;
}

/* Two devices, of which the second takes three times as long at all that both did. What only the
 * second did takes a third of that on the first; what each did once takes what it took on the
 * first. */
START_TEST(one_sample_on_a_slow_device_says_what_its_class_takes)
{
    const struct work slow = work_number(50);
    const struct work both = work_number(51);
    const struct work fast = work_number(52);
    classes = measured_create();
    devices = measured_create();
    for (uint32_t i = 0; i < 8; i++) {
        const struct work work = work_number(i);
        measure(&work, 0, 1000 * (i + 1));
        measure(&work, 1, 3000 * (i + 1));
    }
    measure(&slow, 1, 900);
    measure(&both, 1, 603);
    measure(&both, 0, 201);
    measure(&fast, 0, 400);
    measure(&fast, 0, 400);
    paces = NULL;
    ck_assert_int_eq(of_class(&slow), 900); /* nothing is known of their speeds */
    paces = paces_create(devices);
    ck_assert_int_eq(of_class(&slow), 300);
    ck_assert_int_eq(of_class(&both), 201);
    ck_assert_int_eq(of_class(&fast), 400);
    const struct measured_row there = {.device_class = "cpu", .device = device_number(1)};
    ck_assert_uint_eq(paces_of(paces, &there), 3 * PACE_ONE);
    const struct measured_row other = {.device_class = "gpu", .device = device_number(1)};
    ck_assert_uint_eq(paces_of(paces, &other), PACE_ONE);
    paces_destroy(&paces);
    measured_destroy(&classes);
    measured_destroy(&devices);
}
END_TEST

/* A work that took twice as long on its device as ever is an outlier. Other devices' times do not
 * matter: they are no mode of their own. */
START_TEST(outliers_are_looked_for_at_one_pace)
{
    const struct work work = work_number(1);
    classes = measured_create();
    devices = measured_create();
    for (uint32_t i = 0; i < 12; i++) {
        measure(&work, 0, i == 3 ? 3000 : 1000 + i);
    }
    for (uint32_t i = 0; i < 8; i++) {
        measure(&work, 1, 3000 + 3 * (i + 1));
    }
    const struct measured_row row = row_of(classes, &work);
    ck_assert_uint_eq(paces_summarise(NULL, devices, &row).outliers, 0);
    paces = paces_create(devices);
    ck_assert_uint_eq(paces_summarise(paces, devices, &row).outliers, 1);
    ck_assert_int_le(paces_summarise(paces, devices, &row).p90, 1020);
    paces_destroy(&paces);
    measured_destroy(&classes);
    measured_destroy(&devices);
}
END_TEST

START_TEST(a_device_is_unlike_its_class_by_more_than_a_fifth_in_four_samples)
{
    const struct history_summary all = {.count = 8, .median = 1000};
    ck_assert(!measured_is_unlike(&all, PACE_ONE, &(struct history_summary){3, 0, 1201, 0}));
    ck_assert(measured_is_unlike(&all, PACE_ONE, &(struct history_summary){4, 0, 1201, 0}));
    ck_assert(!measured_is_unlike(&all, PACE_ONE, &(struct history_summary){4, 0, 1200, 0}));
    /* The device is as slow as its class, for once. */
    ck_assert(measured_is_unlike(&all, 2 * PACE_ONE, &(struct history_summary){4, 0, 1200, 0}));
}
END_TEST

enum { MANY = 8192, SIZES = 8 };

struct told {
    size_t of_classes, of_devices;
};

static bool count_told(void *context, const struct measured_row *row,
                       const struct history_summary *took)
{
    struct told *told = context;
    const bool is_device = !id128_is_zero(&row->device.device);
    ck_assert(is_device || told->of_devices == 0);
    ck_assert_int_eq(took->median, is_device ? 3000 : 1000);
    told->of_devices += is_device;
    told->of_classes += !is_device;
    return true;
}

/* Every second at pace 3. With the square of the devices this takes minutes. */
START_TEST(many_devices_of_unlike_speed_are_told_in_one_look)
{
    struct told told = {0};
    struct work work = work_number(1);
    classes = measured_create();
    devices = measured_create();
    for (uint32_t i = 0; i < MANY; i++) {
        const bool is_slow = i / SIZES % 2 == 1;
        struct measured_row row = {.work = work, .device_class = "cpu"};
        row.work.size = i % SIZES;
        for (uint32_t k = 0; k < HISTORY_SAMPLES; k++) {
            ck_assert(history_add(&row.history, is_slow ? 3000 : 1000));
        }
        if (i < 2 * SIZES && is_slow) { /* the newest of its class */
            measured_put(classes, &row);
        }
        row.device.device = (struct id128){{1, (uint8_t)(i / SIZES), (uint8_t)(i / SIZES >> 8)}};
        measured_put(devices, &row);
    }
    paces = paces_create(devices);
    ck_assert(paces_tell(paces, classes, devices, &work.name, count_told, &told));
    ck_assert_uint_eq(told.of_classes, SIZES);
    ck_assert_uint_eq(told.of_devices, MANY / 2);
    paces_destroy(&paces);
    measured_destroy(&classes);
    measured_destroy(&devices);
}
END_TEST

static bool count_like(void *context, const struct measured_row *row)
{
    ck_assert_str_eq(row->device_class, "cpu");
    ck_assert_uint_eq(row->work.size, 3);
    (*(size_t *)context)++;
    return *(size_t *)context < 3;
}

START_TEST(rows_of_one_class_are_looked_at_alone)
{
    struct measured *measured = measured_create();
    struct work work = work_number(3);
    for (uint32_t i = 0; i < 5 * 4; i++) {
        const struct measured_device device = device_number(i);
        work.size = i % 4;
        ck_assert(measured_add(measured, &work, "cpu", &device, 10, 1));
        ck_assert(measured_add(measured, &work, "gpu", &device, 10, 1));
    }
    size_t count = 0;
    const struct measured_row row = {.work = work, .device_class = "cpu"};
    ck_assert(!measured_each_like(measured, &row, count_like, &count)); /* stopped */
    ck_assert_uint_eq(count, 3);
    const struct measured_row none = {.work = work, .device_class = "npu"};
    ck_assert(measured_each_like(measured, &none, count_like, &count));
    measured_destroy(&measured);
}
END_TEST

SUITE("measured", NULL, NULL, TEST(rows_are_by_name_size_and_class),
      TEST(what_was_measured_longest_ago_makes_room),
      TEST(a_plan_learns_that_devices_of_a_class_are_of_unlike_speeds),
      TEST(one_sample_on_a_slow_device_says_what_its_class_takes),
      TEST(outliers_are_looked_for_at_one_pace), TEST(rows_of_one_class_are_looked_at_alone),
      TEST(many_devices_of_unlike_speed_are_told_in_one_look),
      TEST(a_device_is_unlike_its_class_by_more_than_a_fifth_in_four_samples))
