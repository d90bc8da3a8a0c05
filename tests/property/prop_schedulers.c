/* Every scheduler on random graphs, of every density of links and transfers: schedules are sound,
 * no bound is beaten, the portfolio is never behind HEFT or a single processor, HEFT is what its
 * definition says, and the exact search finds what looking at every schedule finds. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/schedule/portfolio.h"
#include "planner/schedule/rank.h"
#include "tests/support/sample_graph.h"
#include "tests/support/suite.h"

enum { GRAPHS = 1500, SMALL = 300, TINY = 250, SLOW = 300, LINKLESS = 300 };

static const struct sample_shape shapes[] = {
    {30, 4, 10, 100, 100, false},  {30, 4, 100, 100, 100, false}, {30, 4, 1000, 100, 100, false},
    {60, 3, 3000, 100, 100, true}, {20, 6, 300, 100, 60, false},  {40, 8, 50, 100, 30, true},
    {8, 3, 200, 100, 100, false},  {1, 1, 0, 100, 100, false},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static struct workload *draw(uint64_t seed, struct sample_shape shape)
{
    struct random dice = random_seeded(seed);
    shape.tasks = 1 + (uint32_t)random_below(&dice, shape.tasks);
    shape.processors = 1 + (uint32_t)random_below(&dice, shape.processors);
    return sample_random(&dice, &shape);
}

static struct portfolio_options small_budget(void)
{
    struct portfolio_options options = portfolio_defaults();
    options.improve_steps = 3000;
    options.exact_steps = 20000;
    return options;
}

START_TEST(the_portfolio_is_never_behind_heft_or_a_single_processor)
{
    const struct portfolio_options options = small_budget();
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        CLEANUP(workload_destroy) struct workload *graph = draw(seed, shapes[seed % SHAPES]);
        CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(graph->task_count);
        CLEANUP(schedule_destroy) struct schedule *heft = schedule_create(graph->task_count);
        struct portfolio portfolio;
        ck_assert_int_eq(portfolio_schedule(graph, &options, schedule, &portfolio), SCHEDULER_OK);
        ck_assert_int_eq(heft_schedule(graph, heft), SCHEDULER_OK);
        sample_check(graph, schedule);
        ck_assert_msg(schedule->makespan <= heft->makespan, "seed %llu", (unsigned long long)seed);
        for (uint32_t p = 0; p < graph->processor_count; p++) {
            ck_assert_msg(schedule->makespan <= single_time(graph, p), "seed %llu",
                          (unsigned long long)seed);
        }
        ck_assert(portfolio.bound <= schedule->makespan && portfolio.bound > 0);
        ck_assert(!portfolio.is_proved || portfolio.bound == schedule->makespan);
    }
}
END_TEST

START_TEST(every_scheduler_makes_sound_schedules_and_the_same_again)
{
    const struct portfolio_options options = small_budget();
    for (uint64_t seed = 0; seed < GRAPHS / 5; seed++) {
        CLEANUP(workload_destroy) struct workload *graph = draw(seed, shapes[seed % SHAPES]);
        CLEANUP(schedule_destroy) struct schedule *first = schedule_create(graph->task_count);
        CLEANUP(schedule_destroy) struct schedule *again = schedule_create(graph->task_count);
        for (int i = 0; i < PORTFOLIO_METHODS; i++) {
            struct portfolio portfolio;
            enum portfolio_method method = (enum portfolio_method)i;
            enum scheduler_status status =
                portfolio_single_method(graph, method, &options, first, &portfolio);
            ck_assert_int_eq(portfolio_single_method(graph, method, &options, again, &portfolio),
                             status);
            if (status == SCHEDULER_OK) {
                sample_check(graph, first);
                ck_assert_double_le(portfolio.bound, first->makespan);
                ck_assert_mem_eq(first->processor, again->processor,
                                 graph->task_count * sizeof *first->processor);
                ck_assert_mem_eq(first->start, again->start,
                                 graph->task_count * sizeof *first->start);
            }
        }
    }
}
END_TEST

/* ---------------------------------------------------------------- HEFT as it is defined */

/* The first start not before `ready` at which nothing on the processor is in the way: 0, or where
 * something ends. */
static double slow_start(const struct workload *graph, const struct schedule *schedule,
                         const bool *is_put, uint32_t p, double ready, double cost)
{
    double best = INFINITY;
    for (uint32_t candidate = 0; candidate <= graph->task_count; candidate++) {
        double start = ready;
        if (candidate < graph->task_count) {
            if (!is_put[candidate] || schedule->processor[candidate] != p) {
                continue;
            }
            start = fmax(ready, schedule->finish[candidate]);
        }
        bool is_free = true;
        for (uint32_t t = 0; t < graph->task_count; t++) {
            is_free =
                is_free && (!is_put[t] || schedule->processor[t] != p ||
                            start + cost <= schedule->start[t] || start >= schedule->finish[t]);
        }
        best = is_free ? fmin(best, start) : best;
    }
    return best;
}

static void slow_heft(const struct workload *graph, struct schedule *schedule)
{
    static double ranks[256];
    static bool is_put[256];
    memset(is_put, 0, sizeof is_put);
    rank_upward(graph, RANK_MEAN, ranks);
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t task = WORKLOAD_NONE;
        for (uint32_t j = 0; j < graph->task_count; j++) {
            uint32_t other = graph->order[j];
            task = !is_put[other] && (task == WORKLOAD_NONE || ranks[other] > ranks[task]) ? other
                                                                                           : task;
        }
        double earliest = INFINITY;
        for (uint32_t p = 0; p < graph->processor_count; p++) {
            double ready = 0;
            for (uint32_t j = graph->in_first[task]; j < graph->in_first[task + 1]; j++) {
                uint32_t from = graph->in[j].task;
                ready = fmax(ready, schedule->finish[from] +
                                        workload_transfer(graph, graph->in[j].bytes,
                                                          schedule->processor[from], p));
            }
            double cost = workload_cost(graph, task, p);
            if (cost < WORKLOAD_CANNOT) {
                double start = slow_start(graph, schedule, is_put, p, ready, cost);
                if (start + cost < earliest) {
                    earliest = start + cost;
                    schedule->processor[task] = p;
                    schedule->start[task] = start;
                }
            }
        }
        schedule->finish[task] = earliest;
        is_put[task] = true;
    }
}

START_TEST(heft_does_what_its_definition_says)
{
    for (uint64_t seed = 0; seed < SLOW; seed++) {
        CLEANUP(workload_destroy)
        struct workload *graph = draw(seed + 10000, shapes[seed % SHAPES]);
        CLEANUP(schedule_destroy) struct schedule *fast = schedule_create(graph->task_count);
        CLEANUP(schedule_destroy) struct schedule *slow = schedule_create(graph->task_count);
        ck_assert_int_eq(heft_schedule(graph, fast), SCHEDULER_OK);
        slow_heft(graph, slow);
        for (uint32_t t = 0; t < graph->task_count; t++) {
            ck_assert_msg(fast->processor[t] == slow->processor[t] &&
                              fast->start[t] == slow->start[t],
                          "seed %llu, task %u", (unsigned long long)seed, t);
        }
    }
}
END_TEST

/* ---------------------------------------------------------------- every schedule there is */

struct brute {
    const struct workload *graph;
    struct schedule *schedule;
    uint32_t sequence[8], processor[8];
    double free_from[8];
    double best;
};

static void try_all(struct brute *brute, uint32_t count, uint32_t used)
{
    const struct workload *graph = brute->graph;
    if (count == graph->task_count) {
        if (schedule_time(graph, brute->sequence, brute->processor, brute->free_from,
                          brute->schedule)) {
            brute->best = fmin(brute->best, brute->schedule->makespan);
        }
        return;
    }
    for (uint32_t t = 0; t < graph->task_count; t++) {
        bool is_ready = (used >> t & 1) == 0;
        for (uint32_t i = graph->in_first[t]; i < graph->in_first[t + 1]; i++) {
            is_ready = is_ready && (used >> graph->in[i].task & 1) != 0;
        }
        for (uint32_t p = 0; is_ready && p < graph->processor_count; p++) {
            brute->sequence[count] = t;
            brute->processor[t] = p;
            try_all(brute, count + 1, used | 1u << t);
        }
    }
}

static double best_of_all(const struct workload *graph)
{
    CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(graph->task_count);
    struct brute brute = {.graph = graph, .schedule = schedule, .best = INFINITY};
    try_all(&brute, 0, 0);
    return brute.best;
}

START_TEST(the_exact_search_finds_what_looking_at_everything_finds)
{
    for (uint64_t seed = 0; seed < TINY; seed++) {
        struct random dice = random_seeded(seed);
        const uint32_t carrying[] = {20, 100, 500};
        const struct sample_shape shape = {
            .tasks = 2 + (uint32_t)random_below(&dice, 4),
            .processors = 1 + (uint32_t)random_below(&dice, 3),
            .carrying_percent = carrying[seed % 3],
            .links_percent = seed % 5 == 4 ? 60 : 100,
            .runs_percent = seed % 4 == 3 ? 70 : 100,
            .is_uniform = seed % 7 == 6,
        };
        CLEANUP(workload_destroy) struct workload *graph = sample_random(&dice, &shape);
        if (graph == NULL) {
            continue;
        }
        CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(graph->task_count);
        const struct search_budget budget = {.steps = UINT64_MAX};
        bool is_proved = false;
        schedule->makespan = INFINITY; /* nothing to begin with: it has to find one itself */
        ck_assert_int_eq(exact_schedule(graph, &budget, schedule, &is_proved), SCHEDULER_OK);
        ck_assert(is_proved);
        double best = best_of_all(graph);
        ck_assert_msg(schedule->makespan == best, "seed %llu: %g, not %g", (unsigned long long)seed,
                      schedule->makespan, best);
        if (best < INFINITY) {
            sample_check(graph, schedule);
        }
    }
}
END_TEST

START_TEST(without_the_exact_search_small_graphs_are_planned_nearly_as_well)
{
    double ratios = 0;
    for (uint64_t seed = 0; seed < SMALL; seed++) {
        const uint32_t carrying[] = {10, 50, 100, 200, 500, 1000};
        struct random dice = random_seeded(seed + 500);
        const struct sample_shape shape = {
            .tasks = 6 + (uint32_t)random_below(&dice, 5),
            .processors = 2 + (uint32_t)random_below(&dice, 3),
            .carrying_percent = carrying[seed % 6],
            .links_percent = 100,
            .runs_percent = seed % 5 == 4 ? 60 : 100,
            .is_uniform = seed % 4 == 3,
        };
        CLEANUP(workload_destroy) struct workload *graph = sample_random(&dice, &shape);
        CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(graph->task_count);
        struct portfolio_options options = portfolio_defaults();
        struct portfolio portfolio;
        options.no_exact = true;
        options.improve_steps = 20000;
        ck_assert_int_eq(portfolio_schedule(graph, &options, schedule, &portfolio), SCHEDULER_OK);
        double without = schedule->makespan;
        options.no_exact = false;
        ck_assert_int_eq(portfolio_schedule(graph, &options, schedule, &portfolio), SCHEDULER_OK);
        ck_assert_msg(portfolio.is_proved, "seed %llu", (unsigned long long)seed);
        ck_assert_double_le(schedule->makespan, without);
        ratios += without / schedule->makespan;
    }
    ck_assert_double_le(ratios / SMALL, 1.05);
}
END_TEST

/* ---------------------------------------------------------------- missing links */

START_TEST(where_links_are_missing_no_schedule_goes_by_them)
{
    uint32_t planned = 0;
    for (uint64_t seed = 0; seed < LINKLESS; seed++) {
        const uint32_t links[] = {0, 30, 70};
        struct sample_shape shape = {12, 5, 100, links[seed % 3], 70, false};
        CLEANUP(workload_destroy) struct workload *graph = draw(seed, shape);
        if (graph == NULL) {
            continue;
        }
        CLEANUP(schedule_destroy) struct schedule *schedule = schedule_create(graph->task_count);
        const struct portfolio_options options = small_budget();
        struct portfolio portfolio;
        enum scheduler_status status = portfolio_schedule(graph, &options, schedule, &portfolio);
        if (status == SCHEDULER_OK) {
            sample_check(graph, schedule);
            planned++;
        } else {
            ck_assert_int_eq(status, SCHEDULER_NOWHERE);
        }
    }
    ck_assert_uint_gt(planned, LINKLESS / 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedulers");
    TCase *tests = tcase_create("schedulers");
    tcase_set_timeout(tests, 300);
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, the_portfolio_is_never_behind_heft_or_a_single_processor);
    tcase_add_test(tests, every_scheduler_makes_sound_schedules_and_the_same_again);
    tcase_add_test(tests, heft_does_what_its_definition_says);
    tcase_add_test(tests, the_exact_search_finds_what_looking_at_everything_finds);
    tcase_add_test(tests, without_the_exact_search_small_graphs_are_planned_nearly_as_well);
    tcase_add_test(tests, where_links_are_missing_no_schedule_goes_by_them);
    return suite_run(suite);
}
