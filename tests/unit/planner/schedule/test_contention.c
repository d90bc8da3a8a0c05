#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "planner/schedule/contention.h"
#include "planner/schedule/portfolio.h"
#include "tests/support/sample_graph.h"
#include "tests/support/suite.h"

enum { GRAPHS = 300, PROCESSORS = 3 };

/* a and b on p0 send 5 and 4 to c and d on p1, by one link. */
static struct workload *picture(void)
{
    static const double costs[] = {2, 9, 1, 9, 9, 3, 9, 1};
    static const struct workload_edge edges[] = {{0, 2, 5}, {1, 3, 4}};
    return sample_linked(4, 2, costs, 2, edges);
}

START_TEST(transfers_by_one_link_come_one_after_the_other)
{
    CLEANUP(workload_destroy) struct workload *graph = picture();
    CLEANUP(contention_destroy) struct contention *contention = contention_create(graph);
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(4);
    const uint32_t sequence[] = {0, 1, 2, 3};
    const uint32_t processors[] = {0, 0, 1, 1};
    double free_from[2];
    ck_assert(schedule_time(graph, sequence, processors, free_from, schedule));
    ck_assert_double_eq(schedule->start[3], 10);

    ck_assert(contention_time(contention, sequence, processors, schedule));
    ck_assert_double_eq(schedule->finish[1], 3);
    ck_assert_double_eq(schedule->start[2], 7);
    ck_assert_double_eq(schedule->start[3], 11);
    ck_assert_double_eq(schedule->makespan, 12);
    sample_check(graph, schedule);
}
END_TEST

START_TEST(two_directions_are_two_links)
{
    const double costs[] = {2, 2, 2, 2, 1, 1, 1, 1};
    const struct workload_edge edges[] = {{0, 2, 5}, {1, 3, 5}};
    CLEANUP(workload_destroy) struct workload *graph = sample_linked(4, 2, costs, 2, edges);
    CLEANUP(contention_destroy) struct contention *contention = contention_create(graph);
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(4);
    const uint32_t sequence[] = {0, 1, 2, 3};
    const uint32_t processors[] = {0, 1, 1, 0};
    ck_assert(contention_time(contention, sequence, processors, schedule));
    ck_assert_double_eq(schedule->makespan, 8);
}
END_TEST

START_TEST(what_no_link_carries_has_no_time)
{
    const double costs[] = {1, 1, 1, 1};
    const struct workload_edge edge = {0, 1, 0};
    const struct workload_input input = {2, 2, 0, 1, costs, NULL, &edge};
    CLEANUP(workload_destroy) struct workload *graph = NULL;
    struct workload_fault fault;
    ck_assert_int_eq(workload_create(&input, &graph, &fault), WORKLOAD_OK);
    CLEANUP(contention_destroy) struct contention *contention = contention_create(graph);
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(2);
    const uint32_t sequence[] = {0, 1};
    const uint32_t apart[] = {0, 1};
    const uint32_t together[] = {1, 1};
    ck_assert(!contention_time(contention, sequence, apart, schedule));
    ck_assert(contention_time(contention, sequence, together, schedule));
    ck_assert_double_eq(schedule->makespan, 2);
}
END_TEST

struct transfer {
    double ready, begin, end;
    uint32_t link;
    uint32_t from, task;
};

static const struct workload *sorted_graph; /* the graph of the transfers being sorted */

static int by_turn(const void *a, const void *b)
{
    const struct transfer *left = a;
    const struct transfer *right = b;
    const uint32_t *position = sorted_graph->position;
    if (left->ready != right->ready) {
        return left->ready < right->ready ? -1 : 1;
    }
    if (left->from != right->from) {
        return position[left->from] < position[right->from] ? -1 : 1;
    }
    return position[left->task] < position[right->task] ? -1 : 1;
}

/* Serves the transfers of a schedule one by one, first come, first served. Senders that end at once
 * go by their position, and so do the receivers of one sender. */
static size_t transfers_of(const struct workload *graph, const struct schedule *schedule,
                           struct transfer *ret_transfers)
{
    double link_free[PROCESSORS * PROCESSORS] = {0};
    size_t count = 0;
    for (uint32_t t = 0; t < graph->task_count; t++) {
        for (uint32_t i = graph->in_first[t]; i < graph->in_first[t + 1]; i++) {
            const uint32_t from = graph->in[i].task;
            const uint32_t p = schedule->processor[from];
            const uint32_t q = schedule->processor[t];
            const double takes = workload_transfer(graph, graph->in[i].bytes, p, q);
            if (p != q) {
                ret_transfers[count++] =
                    (struct transfer){.ready = schedule->finish[from],
                                      .end = takes, /* without the begin, so far */
                                      .link = p * graph->processor_count + q,
                                      .from = from,
                                      .task = t};
            }
        }
    }
    sorted_graph = graph;
    qsort(ret_transfers, count, sizeof *ret_transfers, by_turn);
    for (size_t i = 0; i < count; i++) {
        struct transfer *one = &ret_transfers[i];
        one->begin = fmax(one->ready, link_free[one->link]);
        one->end = link_free[one->link] = one->begin + one->end;
    }
    return count;
}

/* Each task starts at once when its processor is free and all is there. */
static void check_starts(const struct workload *graph, const struct schedule *schedule,
                         const struct transfer *transfers, size_t count)
{
    for (uint32_t t = 0; t < graph->task_count; t++) {
        double reason = 0;
        for (size_t i = 0; i < count; i++) {
            reason = transfers[i].task == t ? fmax(reason, transfers[i].end) : reason;
        }
        for (uint32_t other = 0; other < graph->task_count; other++) {
            bool before = schedule->processor[other] == schedule->processor[t] &&
                          schedule->start[other] < schedule->start[t];
            reason = before ? fmax(reason, schedule->finish[other]) : reason;
        }
        ck_assert_double_eq(schedule->start[t], reason);
    }
}

START_TEST(links_serve_who_comes_first_and_never_two)
{
    const struct sample_shape shape = {20, 3, 200, 100, 100, false};
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct random dice = random_seeded(seed);
        CLEANUP(workload_destroy) struct workload *graph = sample_random(&dice, &shape);
        CLEANUP(contention_destroy) struct contention *contention = contention_create(graph);
        CLEANUP(schedule_destroy) struct schedule *free_links = schedule_create(20);
        CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(20);
        static struct transfer transfers[100];
        uint32_t processors[20];
        double free_from[3];
        for (uint32_t t = 0; t < 20; t++) {
            processors[t] = (uint32_t)random_below(&dice, 3);
        }
        ck_assert(schedule_time(graph, graph->order, processors, free_from, free_links));
        ck_assert(contention_time(contention, graph->order, processors, schedule));
        sample_check(graph, schedule);
        ck_assert_double_ge(schedule->makespan, free_links->makespan);
        const size_t count = transfers_of(graph, schedule, transfers);
        check_starts(graph, schedule, transfers, count);
    }
}
END_TEST

START_TEST(the_portfolio_keeps_what_is_best_with_links_as_they_are)
{
    const struct sample_shape shapes[] = {{30, 4, 100, 100, 100, false},
                                          {10, 3, 800, 100, 100, true}};
    for (uint64_t seed = 0; seed < GRAPHS / 3; seed++) {
        struct random dice = random_seeded(seed);
        CLEANUP(workload_destroy)
        struct workload *graph = sample_random(&dice, &shapes[seed % 2]);
        CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(graph->task_count);
        struct portfolio_options options = portfolio_defaults();
        struct portfolio portfolio;
        options.improve_steps = 5000;
        options.is_contended = true;
        ck_assert_int_eq(portfolio_schedule(graph, &options, schedule, &portfolio), SCHEDULER_OK);
        sample_check(graph, schedule);
        double best = schedule->makespan;
        ck_assert_double_le(portfolio.bound, best);
        for (uint32_t p = 0; p < graph->processor_count; p++) {
            ck_assert_double_le(best, single_time(graph, p));
        }
        ck_assert_int_eq(
            portfolio_single_method(graph, PORTFOLIO_HEFT, &options, schedule, &portfolio),
            SCHEDULER_OK);
        ck_assert_double_le(best, schedule->makespan);
    }
}
END_TEST

SUITE("contention", NULL, NULL, TEST(transfers_by_one_link_come_one_after_the_other),
      TEST(two_directions_are_two_links), TEST(what_no_link_carries_has_no_time),
      TEST(links_serve_who_comes_first_and_never_two),
      TEST(the_portfolio_keeps_what_is_best_with_links_as_they_are))
