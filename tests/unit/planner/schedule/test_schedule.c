#include <check.h>
#include <math.h>

#include "base/cleanup.h"
#include "planner/schedule/schedule.h"
#include "tests/support/sample_graph.h"
#include "tests/support/schedule_verify.h"
#include "tests/support/suite.h"

/* a (2, 4) sends 3 to b (5, 1); c (2, 2) stands alone. */
static struct workload *three(void)
{
    static const double costs[] = {2, 4, 5, 1, 2, 2};
    static const struct workload_edge edges[] = {{0, 1, 3}};
    return sample_linked(3, 2, costs, 1, edges);
}

/* p0: a to 2, c to 4; p1: b from 5 to 6. */
static struct schedule *sound(void)
{
    struct schedule *schedule = schedule_create(3);
    ck_assert_ptr_nonnull(schedule);
    const uint32_t processors[] = {0, 1, 0};
    const double starts[] = {0, 5, 2};
    const double finishes[] = {2, 6, 4};
    for (int i = 0; i < 3; i++) {
        schedule->processor[i] = processors[i];
        schedule->start[i] = starts[i];
        schedule->finish[i] = finishes[i];
    }
    schedule->makespan = 6;
    return schedule;
}

static void expect(const struct schedule *schedule, enum schedule_flaw flaw, uint32_t task)
{
    CLEANUP(workload_destroy) struct workload *graph = three();
    uint32_t found = 77;
    ck_assert_int_eq(schedule_verify(graph, schedule, &found), flaw);
    ck_assert_uint_eq(found, task);
}

START_TEST(a_schedule_that_keeps_to_the_graph_is_sound)
{
    CLEANUP(schedule_destroy) struct schedule *schedule = sound();
    expect(schedule, SCHEDULE_SOUND, WORKLOAD_NONE);
    schedule->start[2] = 100; /* nobody said that it has to be early */
    schedule->finish[2] = 102;
    schedule->makespan = 102;
    expect(schedule, SCHEDULE_SOUND, WORKLOAD_NONE);
}
END_TEST

START_TEST(every_flaw_is_found)
{
    CLEANUP(schedule_destroy) struct schedule *schedule = sound();
    schedule->processor[1] = 2;
    expect(schedule, SCHEDULE_WRONG_PROCESSOR, 1);
    schedule_destroy(&schedule);

    schedule = sound();
    schedule->finish[1] = 7;
    expect(schedule, SCHEDULE_WRONG_TIME, 1);
    schedule->start[1] = NAN;
    expect(schedule, SCHEDULE_WRONG_TIME, 1);
    schedule_destroy(&schedule);

    schedule = sound();
    schedule->start[1] = 4.5;
    schedule->finish[1] = 5.5;
    expect(schedule, SCHEDULE_TOO_EARLY, 1);
    schedule_destroy(&schedule);

    schedule = sound();
    schedule->start[2] = 1;
    schedule->finish[2] = 3;
    expect(schedule, SCHEDULE_OVERLAP, 2);
    schedule_destroy(&schedule);

    schedule = sound();
    schedule->makespan = 7;
    expect(schedule, SCHEDULE_WRONG_MAKESPAN, WORKLOAD_NONE);
}
END_TEST

START_TEST(times_are_the_earliest_in_a_given_order)
{
    CLEANUP(workload_destroy) struct workload *graph = three();
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(3);
    const uint32_t sequence[] = {2, 0, 1};
    const uint32_t processors[] = {0, 1, 0};
    double free_from[2];
    ck_assert(schedule_time(graph, sequence, processors, free_from, schedule));
    ck_assert_double_eq(schedule->start[2], 0);
    ck_assert_double_eq(schedule->start[0], 2);
    ck_assert_double_eq(schedule->start[1], 7);
    ck_assert_double_eq(schedule->makespan, 8);
    expect(schedule, SCHEDULE_SOUND, WORKLOAD_NONE);

    uint32_t again[3];
    ck_assert(schedule_sequence(graph, schedule, again));
    ck_assert_mem_eq(again, sequence, sizeof again);
}
END_TEST

START_TEST(what_no_link_carries_has_no_time)
{
    const double costs[] = {1, 1, 1, 1};
    const struct workload_edge edge = {0, 1, 0};
    const struct workload_link link = {0, 1, 0, 1};
    const struct workload_input input = {2, 2, 1, 1, costs, &link, &edge};
    CLEANUP(workload_destroy) struct workload *graph = NULL;
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(2);
    struct workload_fault fault;
    ck_assert_int_eq(workload_create(&input, &graph, &fault), WORKLOAD_OK);
    const uint32_t sequence[] = {0, 1};
    const uint32_t there[] = {0, 1};
    const uint32_t back[] = {1, 0};
    double free_from[2];
    ck_assert(schedule_time(graph, sequence, there, free_from, schedule));
    ck_assert_double_eq(schedule->makespan, 2);
    ck_assert(!schedule_time(graph, sequence, back, free_from, schedule));
}
END_TEST

SUITE("schedule", NULL, NULL, TEST(a_schedule_that_keeps_to_the_graph_is_sound),
      TEST(every_flaw_is_found), TEST(times_are_the_earliest_in_a_given_order),
      TEST(what_no_link_carries_has_no_time))
