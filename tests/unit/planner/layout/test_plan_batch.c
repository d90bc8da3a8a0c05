/* Batches are dealt out to few devices, against figures worked out by hand. */
#include "base/cleanup.h"
#include "planner/layout/plan.h"
#include "tests/support/plan_room.h"
#include "tests/support/sample_work.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

/* Makes for each item a unit of fp32 and then a unit of bf16, with 100 bytes between them. */
static enum steps_status make_batch(const int64_t *values, struct steps **ret_steps,
                                    struct problem *ret_problem)
{
    (void)ret_problem;
    struct steps *steps = sample_steps(2);
    sample_units(steps, 0, values[0] + values[1], 0);
    sample_units(steps, 1, 0, values[0]);
    sample_edge(steps, 0, 1, 100 * values[0]);
    steps->steps[1].held_bytes = values[0] * values[2];
    *ret_steps = steps;
    return STEPS_OK;
}

static const struct template_parameter batch_parameters[] = {
    {.name = "batch", .meaning = "items", .usual = 1, .least = 1, .most = 1000, .is_batch = true},
    {.name = "fixed", .meaning = "units before the first", .usual = 0, .least = 0, .most = 1000},
    {.name = "held", .meaning = "bytes of an item", .usual = 0, .least = 0, .most = 1 << 30},
    {.name = NULL},
};
static const struct template batch_template = {
    .name = "batch", .meaning = "a batch", .parameters = batch_parameters, .make = make_batch};

static void bring_batch(struct room *room, struct steps **steps, const int64_t *values,
                        const struct topology *topology)
{
    ck_assert_int_eq(template_create(&batch_template, values, steps, NULL), STEPS_OK);
    furnish(room, *steps, 2, topology);
    room->input.template = &batch_template;
    room->input.values = values;
}

START_TEST(a_batch_is_dealt_out_by_speed)
{
    const int64_t values[] = {6, 0, 0};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e9);
    struct room room;
    bring_batch(&room, &steps, values, topology);
    sample_device(&room.devices[0], 1, 1); /* 2 s an item */
    sample_device(&room.devices[1], 2, 2);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_uint_eq(plan->row_count, 2);
    ck_assert_int_eq(plan->rows[0].items, 4);
    ck_assert_int_eq(plan->rows[1].items, 2);
    assert_near(plan->total.makespan_s.value, 8);
    assert_near(plan->forms[PLAN_SINGLE].makespan_s.value, 12);
    assert_near(plan->time_bound_s, 8); /* 12 items of 1 s at 1.5 a second */
    ck_assert_int_eq(plan->forms[PLAN_PIPELINE].status, PLAN_INDIVISIBLE);
    ck_assert_ptr_nonnull(strstr(plan->forms[PLAN_PIPELINE].problem.text, "no layers"));
    assert_near((double)plan->total.price_micro, 16e6);
}
END_TEST

START_TEST(a_batch_is_not_dealt_out_where_beginning_takes_longer)
{
    const int64_t values[] = {6, 100, 0};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e9);
    struct room room;
    bring_batch(&room, &steps, values, topology);
    sample_device(&room.devices[0], 1, 1);
    sample_device(&room.devices[1], 2, 2); /* begins to work when the other is done */
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SINGLE);
    assert_near(plan->total.makespan_s.value, 112);
    ck_assert_int_eq(plan->forms[PLAN_SPLIT].status, PLAN_NO_GAIN);
}
END_TEST

START_TEST(shares_fit_the_memory_of_their_devices)
{
    const int64_t values[] = {6, 0, 6000000};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e9);
    struct room room;
    bring_batch(&room, &steps, values, topology);
    sample_device(&room.devices[0], 1, 1);
    sample_device(&room.devices[1], 2, 2);
    sample_memory(
        &room.devices[0],
        20e6); /* three items at once: the four that are its share are made in two parts */
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_int_eq(plan->rows[0].items, 4);
    ck_assert_int_eq(plan->rows[0].rounds, 2);
    ck_assert_int_eq(plan->rows[1].items, 2);
    ck_assert_int_eq(plan->rows[1].rounds, 1);
    assert_near(plan->uses[0].memory_bytes, 12e6);
    assert_near(plan->total.makespan_s.value, 8);
    assert_near(plan->forms[PLAN_SINGLE].makespan_s.value, 12); /* in two parts, too */
    ck_assert_uint_eq(plan->single, 0);
    assert_near(plan->time_bound_s, 8); /* which knows no memory */
}
END_TEST

START_TEST(a_batch_that_fits_nowhere_at_once_is_divided)
{
    const int64_t values[] = {6, 0, 6000000};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e9);
    struct room room;
    bring_batch(&room, &steps, values, topology);
    for (size_t d = 0; d < 2; d++) {
        sample_device(&room.devices[d], 1, 1);
        sample_memory(&room.devices[d], 20e6);
    }
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_int_eq(plan->forms[PLAN_GRAPH].status, PLAN_NOWHERE);
    assert_near(plan->total.makespan_s.value, 6);
    assert_near(plan->forms[PLAN_SINGLE].makespan_s.value, 12); /* three, and three after them */
    sample_memory(&room.devices[0], 5e6);                       /* of one item */
    sample_memory(&room.devices[1], 5e6);
    struct plan_fault fault = refused(&room.input, PLAN_NOWHERE);
    ck_assert_uint_eq(fault.step, 0);
    ck_assert_ptr_nonnull(strstr(fault.problem.text, "GB of memory"));
}
END_TEST

/* Makes make_batch's steps, and where there are parts, 2 units more that all do together. */
static enum steps_status make_parts(const int64_t *values, struct steps **ret_steps,
                                    struct problem *ret_problem)
{
    (void)ret_problem;
    struct steps *steps = sample_steps(values[1] > 1 ? 3 : 2);
    sample_units(steps, 0, values[0], 0);
    sample_units(steps, 1, 0, values[0]);
    sample_edge(steps, 0, 1, 100);
    if (values[1] > 1) {
        sample_units(steps, 2, 2, 0);
        sample_edge(steps, 1, 2, 100);
    }
    *ret_steps = steps;
    return STEPS_OK;
}

START_TEST(parts_that_hear_of_one_another_wait_for_the_last)
{
    static const struct template_parameter parameters[] = {
        {.name = "batch", .usual = 1, .least = 1, .most = 100, .is_batch = true},
        {.name = "replicas", .usual = 1, .least = 1, .most = 100, .is_replicas = true},
        {.name = NULL},
    };
    static const struct template parts = {
        .name = "parts", .parameters = parameters, .make = make_parts};
    const int64_t values[] = {9, 1};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e9);
    struct room room;
    ck_assert_int_eq(template_create(&parts, values, &steps, NULL), STEPS_OK);
    furnish(&room, steps, 2, topology);
    room.input.template = &parts;
    room.input.values = values;
    sample_device(&room.devices[0], 1, 1);
    sample_device(&room.devices[1], 1, 1);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    /* Five items are done at 10, four at 8; then both do 2 s from 10 on. One device would need 18,
     * and no meeting. */
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    assert_near(plan->total.makespan_s.value, 12);
    assert_near(plan->forms[PLAN_SINGLE].makespan_s.value, 18);
    assert_near(plan->rows[0].busy_s + plan->rows[1].busy_s, 22);
    assert_near(plan->rows[0].finish_s, 12);
    assert_near(plan->rows[1].finish_s, 12);
    assert_near((double)plan->total.price_micro, 24e6);
    ck_assert_int_eq(plan->forms[PLAN_PIPELINE].status, PLAN_INDIVISIBLE);
}
END_TEST

START_TEST(rows_of_several_steps_say_the_fewest_samples)
{
    const int64_t values[] = {8, 0, 0};
    CLEANUP(steps_destroy) struct steps *steps = NULL;
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 1e9);
    struct room room;
    bring_batch(&room, &steps, values, topology);
    sample_device(&room.devices[0], 1, 1);
    sample_device(&room.devices[1], 1, 1);
    struct history_summary histories[4] = {{.count = 0}}; /* of two steps on two devices */
    for (uint32_t i = 0; i < 4; i++) {
        histories[i] = (struct history_summary){.count = 5 + i, .median = HISTORY_BOUND};
    }
    room.input.histories = histories;
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    ck_assert_int_eq(plan->form, PLAN_SPLIT);
    ck_assert_uint_eq(plan->rows[0].samples, 5); /* of 5 and 7 */
    ck_assert_uint_eq(plan->rows[1].samples, 6);
}
END_TEST

SUITE("plan: batches", NULL, NULL, TEST(a_batch_is_dealt_out_by_speed),
      TEST(a_batch_is_not_dealt_out_where_beginning_takes_longer),
      TEST(shares_fit_the_memory_of_their_devices),
      TEST(a_batch_that_fits_nowhere_at_once_is_divided),
      TEST(parts_that_hear_of_one_another_wait_for_the_last),
      TEST(rows_of_several_steps_say_the_fewest_samples))
