#include <check.h>
#include <math.h>

#include "base/cleanup.h"
#include "planner/schedule/bound.h"
#include "planner/schedule/portfolio.h"
#include "tests/support/sample_graph.h"
#include "tests/support/suite.h"

static double makespan_of(const struct workload *graph, enum portfolio_method method,
                          struct portfolio *ret_portfolio)
{
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(graph->task_count);
    struct portfolio_options options = portfolio_defaults();
    options.improve_steps = 400000;
    ck_assert_int_eq(portfolio_single_method(graph, method, &options, schedule, ret_portfolio),
                     SCHEDULER_OK);
    sample_check(graph, schedule);
    ck_assert_double_le(ret_portfolio->bound, schedule->makespan);
    return schedule->makespan;
}

/* ---------------------------------------------------------------- the papers */

START_TEST(the_example_of_heft_comes_out_as_in_the_paper)
{
    CLEANUP(workload_destroy) struct workload *graph = sample_of_heft();
    struct portfolio portfolio;
    ck_assert_double_eq(makespan_of(graph, PORTFOLIO_HEFT, &portfolio), 80);
    ck_assert(!portfolio.is_proved);
    ck_assert_double_eq(makespan_of(graph, PORTFOLIO_CPOP, &portfolio), 86);
    ck_assert_double_eq(makespan_of(graph, PORTFOLIO_EXACT, &portfolio), 73);
    ck_assert(portfolio.is_proved);
    ck_assert_double_eq(portfolio.bound, 73);
}
END_TEST

START_TEST(heft_puts_each_task_where_the_paper_does)
{
    static const uint32_t processors[] = {2, 0, 2, 1, 2, 1, 2, 0, 1, 1};
    static const double starts[] = {0, 27, 9, 18, 28, 26, 38, 57, 56, 73};
    CLEANUP(workload_destroy) struct workload *graph = sample_of_heft();
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(10);
    ck_assert_int_eq(heft_schedule(graph, schedule), SCHEDULER_OK);
    for (int i = 0; i < 10; i++) {
        ck_assert_uint_eq(schedule->processor[i], processors[i]);
        ck_assert_double_eq(schedule->start[i], starts[i]);
    }
}
END_TEST

START_TEST(the_example_of_peft_comes_out_as_in_the_paper)
{
    CLEANUP(workload_destroy) struct workload *graph = sample_of_peft();
    struct portfolio portfolio;
    ck_assert_double_eq(makespan_of(graph, PORTFOLIO_PEFT, &portfolio), 122);
    ck_assert_double_eq(makespan_of(graph, PORTFOLIO_HEFT, &portfolio), 133);
    ck_assert_double_eq(makespan_of(graph, PORTFOLIO_EXACT, &portfolio), 113);
    ck_assert(portfolio.is_proved);
}
END_TEST

START_TEST(local_search_finds_what_is_best_in_both)
{
    CLEANUP(workload_destroy) struct workload *heft = sample_of_heft();
    CLEANUP(workload_destroy) struct workload *peft = sample_of_peft();
    struct portfolio portfolio;
    ck_assert_double_eq(makespan_of(heft, PORTFOLIO_IMPROVE, &portfolio), 73);
    ck_assert_double_eq(makespan_of(peft, PORTFOLIO_IMPROVE, &portfolio), 113);
    ck_assert(!portfolio.is_proved);
}
END_TEST

/* ---------------------------------------------------------------- small graphs */

START_TEST(one_task_goes_where_it_takes_least)
{
    const double costs[] = {3, 2, 5};
    CLEANUP(workload_destroy) struct workload *graph = sample_linked(1, 3, costs, 0, NULL);
    for (int i = 0; i < PORTFOLIO_METHODS; i++) {
        struct portfolio portfolio;
        enum portfolio_method method = (enum portfolio_method)i;
        ck_assert_double_eq(makespan_of(graph, method, &portfolio), 2);
        ck_assert(portfolio.is_proved);
    }
}
END_TEST

START_TEST(equal_finishes_go_to_the_lowest_processor)
{
    const double costs[] = {4, 4, 4, 4, 4, 4};
    CLEANUP(workload_destroy) struct workload *graph = sample_linked(2, 3, costs, 0, NULL);
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(2);
    ck_assert_int_eq(heft_schedule(graph, schedule), SCHEDULER_OK);
    ck_assert_uint_eq(schedule->processor[0], 0); /* equal ranks: the first in order is put first */
    ck_assert_uint_eq(schedule->processor[1], 1);
}
END_TEST

/* A chain over both processors leaves a gap on the second, in which a short task fits. */
START_TEST(a_gap_is_used)
{
    const struct workload_edge edges[] = {{0, 1, 0}};
    const struct workload_link links[] = {{0, 1, 5, 1}, {1, 0, 5, 1}};
    const double costs[] = {10, WORKLOAD_CANNOT, WORKLOAD_CANNOT, 10, WORKLOAD_CANNOT, 2};
    const struct workload_input input = {3, 2, 2, 1, costs, links, edges};
    CLEANUP(workload_destroy) struct workload *graph = NULL;
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(3);
    struct workload_fault fault;
    ck_assert_int_eq(workload_create(&input, &graph, &fault), WORKLOAD_OK);
    ck_assert_int_eq(heft_schedule(graph, schedule), SCHEDULER_OK);
    ck_assert_double_eq(schedule->start[1], 15);
    ck_assert_double_eq(schedule->start[2], 0); /* put last, run first */
    ck_assert_double_eq(schedule->makespan, 25);
}
END_TEST

START_TEST(a_task_that_can_run_in_one_place_goes_there)
{
    const double costs[] = {WORKLOAD_CANNOT, 9, 1, WORKLOAD_CANNOT, 1, WORKLOAD_CANNOT};
    const struct workload_edge edges[] = {{0, 1, 100}, {1, 2, 1}};
    CLEANUP(workload_destroy) struct workload *graph = sample_linked(3, 2, costs, 2, edges);
    for (int i = 0; i < PORTFOLIO_METHODS; i++) {
        struct portfolio portfolio;
        enum portfolio_method method = (enum portfolio_method)i;
        if (method != PORTFOLIO_SINGLE && method != PORTFOLIO_HEFT_FEW) {
            ck_assert_double_eq(makespan_of(graph, method, &portfolio), 111);
        }
    }
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(3);
    ck_assert_int_eq(single_schedule(graph, schedule), SCHEDULER_NOWHERE);
    ck_assert(isinf(single_time(graph, 0)));
}
END_TEST

/* Two tasks that wait for nothing and one that waits for both; no links. Whoever put the first two
 * apart could not put the third. */
START_TEST(without_links_all_that_belongs_together_stays_together)
{
    const double costs[] = {5, 1, 1, 5, 3, 3};
    const struct workload_edge edges[] = {{0, 2, 0}, {1, 2, 0}};
    const struct workload_input input = {3, 2, 0, 2, costs, NULL, edges};
    CLEANUP(workload_destroy) struct workload *graph = NULL;
    struct workload_fault fault;
    ck_assert_int_eq(workload_create(&input, &graph, &fault), WORKLOAD_OK);
    for (int i = 0; i < PORTFOLIO_METHODS; i++) {
        struct portfolio portfolio;
        if (i != PORTFOLIO_HEFT_FEW) {
            ck_assert_double_eq(makespan_of(graph, (enum portfolio_method)i, &portfolio), 9);
        }
    }
}
END_TEST

/* Each edge could be carried, both together cannot: the third task would have to be in two
 * places. */
START_TEST(a_graph_that_no_choice_fits_is_said_to_be_such)
{
    const double costs[] = {1, WORKLOAD_CANNOT, WORKLOAD_CANNOT, 1, 1, 1};
    const struct workload_edge edges[] = {{0, 2, 1}, {1, 2, 1}};
    const struct workload_input input = {3, 2, 0, 2, costs, NULL, edges};
    CLEANUP(workload_destroy) struct workload *graph = NULL;
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(3);
    struct workload_fault fault;
    struct portfolio portfolio;
    const struct portfolio_options options = portfolio_defaults();
    ck_assert_int_eq(workload_create(&input, &graph, &fault), WORKLOAD_OK);
    ck_assert_int_eq(portfolio_schedule(graph, &options, schedule, &portfolio), SCHEDULER_NOWHERE);
    ck_assert_int_eq(heft_schedule(graph, schedule), SCHEDULER_NOWHERE);
    ck_assert_int_eq(cluster_schedule(graph, schedule), SCHEDULER_NOWHERE);
}
END_TEST

/* Two chains whose links are slow: HEFT alone would send, clusters keep each chain together. */
START_TEST(clusters_keep_together_what_sends_much)
{
    enum { CHAINS = 4, LONG = 10, TASKS = CHAINS * LONG };
    static double costs[TASKS * CHAINS];
    static struct workload_edge edges[TASKS];
    size_t count = 0;
    for (uint32_t t = 0; t < TASKS; t++) {
        for (uint32_t p = 0; p < CHAINS; p++) {
            costs[t * CHAINS + p] = 2 + (t + p) % 2; /* every step is faster elsewhere */
        }
        if (t >= CHAINS) {
            edges[count++] = (struct workload_edge){t - CHAINS, t, 50};
        }
    }
    CLEANUP(workload_destroy)
    struct workload *graph = sample_linked(TASKS, CHAINS, costs, count, edges);
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(TASKS);
    ck_assert_int_eq(cluster_schedule(graph, schedule), SCHEDULER_OK);
    sample_check(graph, schedule);
    for (uint32_t t = CHAINS; t < TASKS; t++) {
        ck_assert_uint_eq(schedule->processor[t], schedule->processor[t - CHAINS]);
    }
    ck_assert_double_le(schedule->makespan, 30);
}
END_TEST

/* ---------------------------------------------------------------- bounds and budgets */

START_TEST(the_bound_counts_transfers_that_cannot_be_avoided)
{
    const double costs[] = {4, WORKLOAD_CANNOT, WORKLOAD_CANNOT, 6};
    const struct workload_edge edges[] = {{0, 1, 10}};
    CLEANUP(workload_destroy) struct workload *graph = sample_linked(2, 2, costs, 1, edges);
    double bound = 0;
    ck_assert(bound_make(graph, &bound));
    ck_assert_double_eq(bound, 20);
}
END_TEST

START_TEST(the_bound_counts_work)
{
    static double costs[30 * 3];
    for (int i = 0; i < 90; i++) {
        costs[i] = i % 3 == 0 ? 1 : 2; /* 30 tasks; together the processors do 2 in each 1 */
    }
    CLEANUP(workload_destroy) struct workload *graph = sample_linked(30, 3, costs, 0, NULL);
    double bound = 0;
    ck_assert(bound_make(graph, &bound));
    ck_assert_double_gt(bound, 14.5);
    ck_assert_double_le(bound, 15 * (1 + 1e-9));
}
END_TEST

START_TEST(exact_says_when_it_has_not_proved_anything)
{
    struct random dice = random_seeded(5);
    const struct sample_shape shape = {12, 4, 100, 100, 100, false};
    CLEANUP(workload_destroy) struct workload *graph = sample_random(&dice, &shape);
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(12);
    const struct search_budget budget = {.steps = 1000};
    bool is_proved = true;
    ck_assert_int_eq(heft_schedule(graph, schedule), SCHEDULER_OK);
    double before = schedule->makespan;
    ck_assert_int_eq(exact_schedule(graph, &budget, schedule, &is_proved), SCHEDULER_OK);
    ck_assert(!is_proved);
    ck_assert_double_le(schedule->makespan, before);
    sample_check(graph, schedule);
}
END_TEST

static bool count_down(void *context)
{
    int *left = context;
    return (*left)-- == 0;
}

START_TEST(a_search_ends_when_it_is_told_to)
{
    CLEANUP(workload_destroy) struct workload *graph = sample_of_heft();
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(10);
    int left = 3;
    const struct search_budget budget = {UINT64_MAX, count_down, &left};
    ck_assert_int_eq(heft_schedule(graph, schedule), SCHEDULER_OK);
    ck_assert_int_eq(improve_schedule(graph, &budget, 1, 0, false, schedule), SCHEDULER_OK);
    ck_assert_int_eq(left, -1);
    sample_check(graph, schedule);
}
END_TEST

START_TEST(exact_refuses_what_is_too_large)
{
    struct random dice = random_seeded(1);
    const struct sample_shape shape = {EXACT_TASKS + 1, 2, 0, 100, 100, false};
    CLEANUP(workload_destroy) struct workload *graph = sample_random(&dice, &shape);
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(EXACT_TASKS + 1);
    const struct portfolio_options options = portfolio_defaults();
    struct portfolio portfolio;
    ck_assert_int_eq(
        portfolio_single_method(graph, PORTFOLIO_EXACT, &options, schedule, &portfolio),
        SCHEDULER_TOO_MANY);
}
END_TEST

SUITE("schedulers", NULL, NULL, TEST(the_example_of_heft_comes_out_as_in_the_paper),
      TEST(heft_puts_each_task_where_the_paper_does),
      TEST(the_example_of_peft_comes_out_as_in_the_paper),
      TEST(local_search_finds_what_is_best_in_both), TEST(one_task_goes_where_it_takes_least),
      TEST(equal_finishes_go_to_the_lowest_processor), TEST(a_gap_is_used),
      TEST(a_task_that_can_run_in_one_place_goes_there),
      TEST(without_links_all_that_belongs_together_stays_together),
      TEST(a_graph_that_no_choice_fits_is_said_to_be_such),
      TEST(clusters_keep_together_what_sends_much),
      TEST(the_bound_counts_transfers_that_cannot_be_avoided), TEST(the_bound_counts_work),
      TEST(exact_says_when_it_has_not_proved_anything), TEST(a_search_ends_when_it_is_told_to),
      TEST(exact_refuses_what_is_too_large))
