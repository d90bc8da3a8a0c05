#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/schedule/workload.h"
#include "tests/support/suite.h"

/* Three tasks in a row on two processors, with links both ways. */
struct sample {
    double costs[6];
    struct workload_link links[2];
    struct workload_edge edges[3];
    struct workload_input input;
};

static struct sample *sample(void)
{
    static struct sample made;
    made = (struct sample){.costs = {1, 2, 3, 4, 5, 6},
                           .links = {{0, 1, 1, 2}, {1, 0, 3, 4}},
                           .edges = {{2, 1, 8}, {1, 0, 4}, {2, 0, 1}}};
    made.input = (struct workload_input){.task_count = 3,
                                         .processor_count = 2,
                                         .link_count = 2,
                                         .edge_count = 3,
                                         .costs = made.costs,
                                         .links = made.links,
                                         .edges = made.edges};
    return &made;
}

static struct workload_fault refuse(const struct workload_input *input,
                                    enum workload_status expected)
{
    struct workload *graph = NULL;
    struct workload_fault fault;
    ck_assert_int_eq(workload_create(input, &graph, &fault), expected);
    ck_assert_ptr_null(graph);
    return fault;
}

START_TEST(tasks_stand_in_topological_order_and_edges_in_rows)
{
    CLEANUP(workload_destroy) struct workload *graph = NULL;
    struct workload_fault fault;
    ck_assert_int_eq(workload_create(&sample()->input, &graph, &fault), WORKLOAD_OK);

    static const uint32_t order[] = {2, 1, 0};
    ck_assert_mem_eq(graph->order, order, sizeof order);
    ck_assert_uint_eq(graph->position[2], 0);
    ck_assert_uint_eq(graph->out_first[3] - graph->out_first[2], 2);
    ck_assert_uint_eq(graph->out[graph->out_first[2]].task, 1);
    ck_assert_uint_eq(graph->out[graph->out_first[2] + 1].task, 0);
    ck_assert_uint_eq(graph->in_first[1] - graph->in_first[0], 2);
    ck_assert_uint_eq(graph->in[graph->in_first[0]].task, 2); /* first in order */
    ck_assert_double_eq(graph->in[graph->in_first[0] + 1].bytes, 4);
}
END_TEST

START_TEST(of_tasks_that_could_be_next_the_lowest_comes_first)
{
    CLEANUP(workload_destroy) struct workload *graph = NULL;
    struct workload_fault fault;
    struct sample *given = sample();
    given->edges[0] = (struct workload_edge){1, 0, 0};
    given->input.edge_count = 1;
    ck_assert_int_eq(workload_create(&given->input, &graph, &fault), WORKLOAD_OK);
    static const uint32_t order[] = {1, 0, 2};
    ck_assert_mem_eq(graph->order, order, sizeof order);
}
END_TEST

START_TEST(a_transfer_takes_latency_and_bytes_over_bandwidth)
{
    CLEANUP(workload_destroy) struct workload *graph = NULL;
    struct workload_fault fault;
    struct sample *given = sample();
    ck_assert_int_eq(workload_create(&given->input, &graph, &fault), WORKLOAD_OK);
    ck_assert_double_eq(workload_transfer(graph, 8, 0, 1), 5);
    ck_assert_double_eq(workload_transfer(graph, 8, 1, 0), 5);
    ck_assert_double_eq(workload_transfer(graph, 8, 1, 1), 0);
    ck_assert_double_eq(workload_mean_transfer(graph, 8), 2 + 8 * 0.375);
    ck_assert_double_eq(workload_mean_cost(graph, 2), 5.5);
    ck_assert_double_eq(workload_least_cost(graph, 2), 5);
    ck_assert(graph->is_linked);
    workload_destroy(&graph);

    given->input.link_count = 1;
    ck_assert_int_eq(workload_create(&given->input, &graph, &fault), WORKLOAD_OK);
    ck_assert(!graph->is_linked);
    ck_assert(isinf(workload_transfer(graph, 0, 1, 0)));
}
END_TEST

START_TEST(a_cost_that_is_none_is_refused_by_task_and_processor)
{
    const double bad[] = {0, -1, NAN, -INFINITY, 1e16, 1e-13};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sample *given = sample();
        given->costs[3] = bad[i];
        struct workload_fault fault = refuse(&given->input, WORKLOAD_BAD_COST);
        ck_assert_uint_eq(fault.task, 1);
        ck_assert_uint_eq(fault.processor, 1);
    }
}
END_TEST

START_TEST(a_task_that_can_run_nowhere_is_refused)
{
    struct sample *given = sample();
    given->costs[2] = WORKLOAD_CANNOT;
    given->costs[3] = WORKLOAD_CANNOT;
    ck_assert_uint_eq(refuse(&given->input, WORKLOAD_NOWHERE).task, 1);
}
END_TEST

START_TEST(links_and_bytes_that_make_no_sense_are_refused)
{
    const struct workload_link bad[] = {{1, 0, -1, 1},       {1, 0, NAN, 1}, {1, 0, 0, 0},
                                        {1, 0, 0, -1},       {1, 0, 0, NAN}, {1, 0, INFINITY, 1},
                                        {1, 0, 0, INFINITY}, {1, 1, 0, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sample *given = sample();
        given->links[1] = bad[i];
        ck_assert_uint_eq(refuse(&given->input, WORKLOAD_BAD_LINK).link, 1);
    }
    const double bytes[] = {-1, NAN, INFINITY, 1e19};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        struct sample *given = sample();
        given->edges[1].bytes = bytes[i];
        ck_assert_uint_eq(refuse(&given->input, WORKLOAD_BAD_BYTES).edge, 1);
    }
}
END_TEST

START_TEST(what_stands_twice_is_refused)
{
    struct sample *given = sample();
    given->links[1] = given->links[0];
    ck_assert_uint_eq(refuse(&given->input, WORKLOAD_DUPLICATE).link, 1);
    given = sample();
    given->edges[2] = given->edges[1];
    struct workload_fault fault = refuse(&given->input, WORKLOAD_DUPLICATE);
    ck_assert_uint_eq(fault.edge, 1);
    ck_assert_uint_eq(fault.link, WORKLOAD_NONE);
}
END_TEST

START_TEST(a_cycle_is_told_along_its_edges)
{
    struct sample *given = sample();
    given->edges[2] = (struct workload_edge){0, 2, 1}; /* 2 -> 1 -> 0 -> 2 */
    struct workload_fault fault = refuse(&given->input, WORKLOAD_CYCLE);
    ck_assert_uint_eq(fault.cycle_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        bool has_edge = false;
        for (size_t j = 0; j < 3; j++) {
            has_edge = has_edge || (given->edges[j].from == fault.cycle[i] &&
                                    given->edges[j].to == fault.cycle[(i + 1) % 3]);
        }
        ck_assert(has_edge);
    }
    given = sample();
    given->edges[0].from = 1;
    fault = refuse(&given->input, WORKLOAD_CYCLE);
    ck_assert_uint_eq(fault.cycle_count, 1);
    ck_assert_uint_eq(fault.cycle[0], 1);
}
END_TEST

START_TEST(tasks_behind_a_cycle_are_not_said_to_be_in_it)
{
    static double costs[20];
    static struct workload_edge edges[20];
    for (uint32_t i = 0; i < 20; i++) {
        costs[i] = 1;
        edges[i] = (struct workload_edge){i, i + 1, 0};
    }
    edges[19] = (struct workload_edge){15, 4, 0}; /* 4 to 15 are a cycle; 16 to 19 wait for it */
    struct workload_input input = {
        .task_count = 20, .processor_count = 1, .edge_count = 20, .costs = costs, .edges = edges};
    struct workload_fault fault = refuse(&input, WORKLOAD_CYCLE);
    ck_assert_uint_eq(fault.cycle_count, 12);
    for (uint32_t i = 0; i < WORKLOAD_CYCLE_SHOWN; i++) {
        ck_assert_uint_ge(fault.cycle[i], 4);
        ck_assert_uint_le(fault.cycle[i], 15);
    }
}
END_TEST

START_TEST(an_edge_that_no_link_can_carry_is_refused)
{
    struct sample *given = sample();
    given->input.link_count = 1;       /* 0 to 1 alone */
    given->costs[2] = WORKLOAD_CANNOT; /* task 1 on processor 1 only, task 0 on 0 only */
    given->costs[1] = WORKLOAD_CANNOT;
    ck_assert_uint_eq(refuse(&given->input, WORKLOAD_NO_LINK).edge, 1);
}
END_TEST

START_TEST(a_cost_that_rounding_would_lose_is_refused)
{
    struct sample *given = sample();
    given->costs[0] = 1e-11;
    given->costs[5] = 1e10;
    ck_assert_uint_eq(refuse(&given->input, WORKLOAD_SPREAD).task, 0);
}
END_TEST

START_TEST(sizes_have_bounds)
{
    struct sample *given = sample();
    given->input.task_count = 0;
    (void)refuse(&given->input, WORKLOAD_TOO_LARGE);
    given->input.task_count = WORKLOAD_TASKS + (size_t)1;
    (void)refuse(&given->input, WORKLOAD_TOO_LARGE);
    given->input.task_count = 3;
    given->input.processor_count = WORKLOAD_PROCESSORS + 1;
    (void)refuse(&given->input, WORKLOAD_TOO_LARGE);
    given->input.processor_count = 2;
    given->input.edge_count = WORKLOAD_EDGES + (size_t)1;
    (void)refuse(&given->input, WORKLOAD_TOO_LARGE);
    given->input.edge_count = 0;
    given->input.task_count = WORKLOAD_TASKS;
    given->input.processor_count = WORKLOAD_PROCESSORS;
    (void)refuse(&given->input, WORKLOAD_TOO_LARGE); /* each is allowed, both together are not */
}
END_TEST

SUITE("workload", NULL, NULL, TEST(tasks_stand_in_topological_order_and_edges_in_rows),
      TEST(of_tasks_that_could_be_next_the_lowest_comes_first),
      TEST(a_transfer_takes_latency_and_bytes_over_bandwidth),
      TEST(a_cost_that_is_none_is_refused_by_task_and_processor),
      TEST(a_task_that_can_run_nowhere_is_refused),
      TEST(links_and_bytes_that_make_no_sense_are_refused), TEST(what_stands_twice_is_refused),
      TEST(a_cycle_is_told_along_its_edges), TEST(tasks_behind_a_cycle_are_not_said_to_be_in_it),
      TEST(an_edge_that_no_link_can_carry_is_refused),
      TEST(a_cost_that_rounding_would_lose_is_refused), TEST(sizes_have_bounds))
