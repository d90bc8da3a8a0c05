/* Plans on few devices keep to what their memories hold, against figures worked out by hand. */
#include "base/cleanup.h"
#include "planner/layout/plan.h"
#include "tests/support/plan_room.h"
#include "tests/support/sample_work.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

/* Two steps in turn, with weights of 600 MB each. */
static struct steps *heavy_steps(void)
{
    struct steps *steps = sample_steps(2);
    sample_units(steps, 0, 2, 0);
    sample_units(steps, 1, 2, 0);
    sample_edge(steps, 0, 1, 100);
    sample_weights(steps, 0, 0, 1, 600000000);
    sample_weights(steps, 1, 1, 1, 600000000);
    return steps;
}

START_TEST(weights_that_do_not_fit_together_go_to_two_devices)
{
    CLEANUP(steps_destroy) struct steps *steps = heavy_steps();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 100);
    struct room room;
    furnish(&room, steps, 2, topology);
    sample_memory(&room.devices[0], 1e9);
    sample_memory(&room.devices[1], 1e9);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    assert_near(plan->total.makespan_s.value, 5);
    ck_assert_int_eq(plan->form, PLAN_GRAPH);
    ck_assert_int_eq(plan->forms[PLAN_SINGLE].status, PLAN_NO_ROOM);
    ck_assert_ptr_nonnull(strstr(plan->forms[PLAN_SINGLE].problem.text, "1.2 GB"));
    ck_assert_uint_eq(plan->single, PLAN_ANYWHERE);
    assert_near(plan->uses[0].memory_bytes, 600000100);

    room.input.device_count = 1;
    struct plan_fault fault = refused(&room.input, PLAN_NO_ROOM);
    ck_assert_ptr_nonnull(strstr(fault.problem.text, "left"));
}
END_TEST

START_TEST(weights_that_steps_share_are_there_once)
{
    CLEANUP(steps_destroy) struct steps *steps = heavy_steps();
    sample_weights(steps, 1, 0, 1, 600000000);
    struct room room;
    furnish(&room, steps, 1, NULL);
    sample_memory(&room.devices[0], 1e9);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    assert_near(plan->total.makespan_s.value, 4);
    assert_near(plan->uses[0].memory_bytes, 600000100);
}
END_TEST

/* They change, so that they have to be carried: 400 MB at 100 MB a second. */
START_TEST(weights_that_flow_take_no_more_room_than_their_sets)
{
    CLEANUP(steps_destroy) struct steps *steps = heavy_steps();
    CLEANUP(topology_destroy) struct topology *topology = sample_links(2, 0, 100e6);
    sample_weights(steps, 1, 0, 1, 600000000);
    steps->edges[0].bytes = 400000100;
    steps->edges[0].set_bytes = 400000000;
    struct room room;
    furnish(&room, steps, 2, topology);
    sample_memory(&room.devices[0], 1e9);
    sample_memory(&room.devices[1], 1e9);
    CLEANUP(plan_destroy) struct plan *together = sample_plan(&room.input);
    ck_assert_int_eq(together->form, PLAN_SINGLE);
    assert_near(together->uses[0].memory_bytes, 600000100);
    static const uint32_t apart[] = {0, 1};
    room.input.placed = apart;
    CLEANUP(plan_destroy) struct plan *two = sample_plan(&room.input);
    assert_near(two->uses[0].memory_bytes, 600000100);
    assert_near(two->uses[1].memory_bytes, 600000100);
    assert_near(two->uses[1].bytes_in, 400000100);
    assert_near(row_of(two, 1)->start_s, row_of(two, 0)->finish_s + 4.000001);
}
END_TEST

START_TEST(weights_that_do_not_fit_are_streamed_at_each_pass_where_that_is_known)
{
    CLEANUP(steps_destroy) struct steps *steps = heavy_steps();
    steps->steps[1].passes = 10;
    struct room room;
    furnish(&room, steps, 1, NULL);
    sample_memory(&room.devices[0], 1e9);
    sample_stream(&room.devices[0], 1e9);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    /* 0.6 s hide behind 2 s of work; ten times 0.6 s do not. */
    assert_near(row_of(plan, 0)->busy_s, 2);
    assert_near(row_of(plan, 1)->busy_s, 6);
    ck_assert(row_of(plan, 0)->is_streamed && row_of(plan, 1)->is_streamed);
    assert_near(plan->total.makespan_s.value, 8);
}
END_TEST

START_TEST(what_is_held_takes_room_while_it_is_held)
{
    CLEANUP(steps_destroy) struct steps *steps = heavy_steps();
    struct room room;
    sample_weights(steps, 0, 0, 1, 100000000);
    sample_weights(steps, 1, 1, 1, 100000000);
    steps->edges[0].bytes = 300000000;
    steps->steps[0].held_bytes = 300000000;    /* all of it goes to the other */
    steps->steps[1].held_bytes = 500000000;    /* 200 MB more than came */
    steps->steps[1].working_bytes = 250000000; /* while it runs: 200 weights + 500 + 250 */
    furnish(&room, steps, 1, NULL);
    sample_memory(&room.devices[0], 1e9);
    CLEANUP(plan_destroy) struct plan *plan = sample_plan(&room.input);
    assert_near(plan->uses[0].memory_bytes, 950000000);
    steps->steps[1].working_bytes = 350000000;
    (void)refused(&room.input, PLAN_NO_ROOM);
}
END_TEST

SUITE("plan: weights", NULL, NULL, TEST(weights_that_do_not_fit_together_go_to_two_devices),
      TEST(weights_that_steps_share_are_there_once),
      TEST(weights_that_flow_take_no_more_room_than_their_sets),
      TEST(weights_that_do_not_fit_are_streamed_at_each_pass_where_that_is_known),
      TEST(what_is_held_takes_room_while_it_is_held))
