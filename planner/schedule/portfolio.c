#include "planner/schedule/portfolio.h"

#include "planner/schedule/bound.h"
#include "planner/schedule/contention.h"

#include <assert.h>
#include <stdlib.h>

/* Clustering takes ten times as long as a list scheduler. Graphs with more tasks use it only if
 * transfers take longer than computing. */
enum { ALWAYS_CLUSTERED = 1000, FEW_FIRST = 2, WARM_STEPS = 1000000 };

static const double rounding = 1e-9; /* differences below it do not count */

const char *portfolio_name(enum portfolio_method method)
{
    static const char *const names[PORTFOLIO_METHODS] = {
        [PORTFOLIO_HEFT] = "heft",         [PORTFOLIO_PEFT] = "peft",
        [PORTFOLIO_CPOP] = "cpop",         [PORTFOLIO_HEFT_BEST] = "heft-best",
        [PORTFOLIO_HEFT_FEW] = "heft-few", [PORTFOLIO_SINGLE] = "single",
        [PORTFOLIO_ALL_BEST] = "all-best", [PORTFOLIO_CLUSTER] = "cluster",
        [PORTFOLIO_IMPROVE] = "improve",   [PORTFOLIO_EXACT] = "exact",
    };
    assert(method < PORTFOLIO_METHODS);
    return names[method];
}

struct portfolio_options portfolio_defaults(void)
{
    return (struct portfolio_options){
        .exact_steps = PORTFOLIO_EXACT_STEPS, .improve_steps = PORTFOLIO_IMPROVE_STEPS, .seed = 1};
}

/* ---------------------------------------------------------------- HEFT on few processors */

struct speed {
    double time;
    uint32_t processor;
};

static int by_time(const void *left, const void *right)
{
    const struct speed *a = left;
    const struct speed *b = right;
    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    return a->processor < b->processor ? -1 : a->processor > b->processor;
}

/* Returns the time of all tasks on one processor. A task that it cannot run counts with its slowest
 * time elsewhere. */
static double time_on_single(const struct workload *graph, uint32_t processor)
{
    double sum = 0;
    for (uint32_t t = 0; t < graph->task_count; t++) {
        double most = 0;
        for (uint32_t p = 0; !workload_can_run(graph, t, processor) && p < graph->processor_count;
             p++) {
            most = workload_can_run(graph, t, p) ? fmax(most, workload_cost(graph, t, p)) : most;
        }
        sum += workload_can_run(graph, t, processor) ? workload_cost(graph, t, processor) : most;
    }
    return sum;
}

static enum scheduler_status heft_few(const struct workload *graph, struct schedule *schedule)
{
    uint32_t count = graph->processor_count;
    struct speed *speeds = malloc(count * sizeof *speeds);
    bool *may_use = calloc(count, sizeof *may_use);
    struct schedule *now = schedule_create(graph->task_count);
    enum scheduler_status status = SCHEDULER_NO_MEMORY;
    if (speeds != NULL && may_use != NULL && now != NULL) {
        status = SCHEDULER_NOWHERE;
        for (uint32_t p = 0; p < count; p++) {
            speeds[p] = (struct speed){time_on_single(graph, p), p};
        }
        qsort(speeds, count, sizeof *speeds, by_time);
        uint32_t used = 0;
        for (uint32_t few = FEW_FIRST; few < count; few *= 2) {
            for (; used < few; used++) {
                may_use[speeds[used].processor] = true;
            }
            if (heft_subset_schedule(graph, may_use, now) == SCHEDULER_OK &&
                (status != SCHEDULER_OK || now->makespan < schedule->makespan)) {
                schedule_copy(schedule, now);
                status = SCHEDULER_OK;
            }
        }
    }
    free(speeds);
    free(may_use);
    schedule_destroy(&now);
    return status;
}

/* ---------------------------------------------------------------- methods */

static enum scheduler_status list_method(const struct workload *graph, enum portfolio_method method,
                                         struct schedule *schedule)
{
    switch (method) {
    case PORTFOLIO_HEFT:
        return heft_schedule(graph, schedule);
    case PORTFOLIO_PEFT:
        return peft_schedule(graph, schedule);
    case PORTFOLIO_CPOP:
        return cpop_schedule(graph, schedule);
    case PORTFOLIO_HEFT_BEST:
        return heft_best_schedule(graph, schedule);
    case PORTFOLIO_HEFT_FEW:
        return heft_few(graph, schedule);
    case PORTFOLIO_SINGLE:
        return single_schedule(graph, schedule);
    case PORTFOLIO_ALL_BEST:
        return all_best_schedule(graph, schedule);
    case PORTFOLIO_CLUSTER:
        return cluster_schedule(graph, schedule);
    case PORTFOLIO_IMPROVE:
    case PORTFOLIO_EXACT:
    case PORTFOLIO_METHODS:
        break;
    }
    return SCHEDULER_NOWHERE;
}

/* Replaces the times of `schedule` by those with links that carry one transfer at a time. */
static enum scheduler_status contend(const struct workload *graph, struct schedule *schedule)
{
    struct contention *contention = contention_create(graph);
    struct schedule *timed = schedule_create(graph->task_count);
    uint32_t *sequence = malloc(graph->task_count * sizeof *sequence);
    bool ok = contention != NULL && timed != NULL && sequence != NULL &&
              schedule_sequence(graph, schedule, sequence);
    if (ok) {
        bool is_sound = contention_time(contention, sequence, schedule->processor, timed);
        assert(is_sound);
        schedule_copy(schedule, timed);
    }
    contention_destroy(&contention);
    schedule_destroy(&timed);
    free(sequence);
    return ok ? SCHEDULER_OK : SCHEDULER_NO_MEMORY;
}

static enum scheduler_status run_method(const struct workload *graph, enum portfolio_method method,
                                        const struct portfolio_options *options,
                                        struct schedule *schedule)
{
    enum scheduler_status status = list_method(graph, method, schedule);
    return status == SCHEDULER_OK && options->is_contended ? contend(graph, schedule) : status;
}

static bool is_worth_clustering(const struct workload *graph)
{
    double costs = 0;
    double transfers = 0;
    for (uint32_t t = 0; t < graph->task_count; t++) {
        costs += workload_mean_cost(graph, t);
    }
    for (uint32_t i = 0; i < graph->edge_count; i++) {
        transfers += workload_mean_transfer(graph, graph->out[i].bytes);
    }
    return graph->edge_count > 0 && (graph->task_count <= ALWAYS_CLUSTERED || transfers > costs);
}

static bool is_at_bound(const struct schedule *schedule, const struct portfolio *portfolio)
{
    return schedule->makespan <= portfolio->bound * (1 + rounding);
}

static void take_if_better(struct schedule *best, const struct schedule *now,
                           enum portfolio_method method, struct portfolio *portfolio)
{
    portfolio->makespans[method] = now->makespan;
    if (now->makespan < best->makespan) {
        schedule_copy(best, now);
        portfolio->found_by = method;
    }
}

/* Runs every method except the searches. */
static enum scheduler_status run_lists(const struct workload *graph,
                                       const struct portfolio_options *options,
                                       struct schedule *best, struct portfolio *portfolio)
{
    struct schedule *now = schedule_create(graph->task_count);
    enum scheduler_status status = now == NULL ? SCHEDULER_NO_MEMORY : SCHEDULER_NOWHERE;
    for (int i = 0; i < PORTFOLIO_IMPROVE && status != SCHEDULER_NO_MEMORY; i++) {
        enum portfolio_method method = (enum portfolio_method)i;
        if (method == PORTFOLIO_CLUSTER && !is_worth_clustering(graph)) {
            continue;
        }
        enum scheduler_status one = run_method(graph, method, options, now);
        if (one == SCHEDULER_OK) {
            take_if_better(best, now, method, portfolio);
        }
        status = one == SCHEDULER_NO_MEMORY || status != SCHEDULER_OK ? one : status;
    }
    schedule_destroy(&now);
    return status == SCHEDULER_NO_MEMORY ? status
           : best->makespan < INFINITY   ? SCHEDULER_OK
                                         : SCHEDULER_NOWHERE;
}

static enum scheduler_status run_improve(const struct workload *graph,
                                         const struct portfolio_options *options, uint64_t steps,
                                         struct schedule *best, struct portfolio *portfolio)
{
    const struct search_budget budget = {steps, options->stop, options->context};
    if (steps == 0 || is_at_bound(best, portfolio)) {
        return SCHEDULER_OK;
    }
    double before = best->makespan;
    enum scheduler_status status =
        improve_schedule(graph, &budget, options->seed, portfolio->bound * (1 + rounding),
                         options->is_contended, best);
    if (best->makespan < before) {
        portfolio->found_by = PORTFOLIO_IMPROVE;
        portfolio->makespans[PORTFOLIO_IMPROVE] = best->makespan;
    }
    return status;
}

static enum scheduler_status run_exact(const struct workload *graph,
                                       const struct portfolio_options *options,
                                       struct schedule *best, struct portfolio *portfolio)
{
    const struct search_budget budget = {options->exact_steps, options->stop, options->context};
    if (options->exact_steps == 0 || is_at_bound(best, portfolio)) {
        return SCHEDULER_OK;
    }
    double before = best->makespan;
    enum scheduler_status status = exact_schedule(graph, &budget, best, &portfolio->is_proved);
    if (best->makespan < before) {
        portfolio->found_by = PORTFOLIO_EXACT;
    }
    if (status == SCHEDULER_OK) {
        portfolio->makespans[PORTFOLIO_EXACT] = best->makespan;
    }
    return status;
}

static bool is_small(const struct workload *graph)
{
    return graph->task_count <= EXACT_TASKS && graph->processor_count <= EXACT_PROCESSORS;
}

static bool begin(const struct workload *graph, struct schedule *schedule,
                  struct portfolio *portfolio)
{
    assert(schedule->task_count == graph->task_count);
    *portfolio = (struct portfolio){.found_by = PORTFOLIO_METHODS};
    for (int i = 0; i < PORTFOLIO_METHODS; i++) {
        portfolio->makespans[i] = INFINITY;
    }
    schedule->makespan = INFINITY;
    return bound_make(graph, &portfolio->bound);
}

/* A schedule at the bound is optimal. Rounding may even put the bound above it. */
static void finish(const struct schedule *schedule, struct portfolio *portfolio)
{
    portfolio->is_proved = portfolio->is_proved || is_at_bound(schedule, portfolio);
    if (portfolio->is_proved) {
        portfolio->bound = schedule->makespan;
    }
}

enum scheduler_status portfolio_schedule(const struct workload *graph,
                                         const struct portfolio_options *options,
                                         struct schedule *schedule, struct portfolio *ret_portfolio)
{
    struct portfolio portfolio;
    if (!begin(graph, schedule, &portfolio)) {
        return SCHEDULER_NO_MEMORY;
    }
    bool exact =
        is_small(graph) && !options->no_exact && !options->is_contended && options->exact_steps > 0;
    enum scheduler_status status = run_lists(graph, options, schedule, &portfolio);
    uint64_t warm =
        exact && options->improve_steps > WARM_STEPS ? WARM_STEPS : options->improve_steps;
    if (status == SCHEDULER_OK) {
        status = run_improve(graph, options, warm, schedule, &portfolio);
    }
    if (exact && status != SCHEDULER_NO_MEMORY) { /* exact search even without a schedule so far */
        status = run_exact(graph, options, schedule, &portfolio);
        if (status == SCHEDULER_OK && !(schedule->makespan < INFINITY)) {
            status = SCHEDULER_NOWHERE;
        }
    }
    if (status == SCHEDULER_OK) {
        finish(schedule, &portfolio);
        *ret_portfolio = portfolio;
    }
    return status;
}

enum scheduler_status portfolio_single_method(const struct workload *graph,
                                              enum portfolio_method method,
                                              const struct portfolio_options *options,
                                              struct schedule *schedule,
                                              struct portfolio *ret_portfolio)
{
    struct portfolio portfolio;
    if (method == PORTFOLIO_EXACT && !is_small(graph)) {
        return SCHEDULER_TOO_MANY;
    }
    if (method == PORTFOLIO_EXACT || method == PORTFOLIO_IMPROVE) {
        struct portfolio_options all = *options;
        all.no_exact = method == PORTFOLIO_IMPROVE;
        return portfolio_schedule(graph, &all, schedule, ret_portfolio);
    }
    if (!begin(graph, schedule, &portfolio)) {
        return SCHEDULER_NO_MEMORY;
    }
    enum scheduler_status status = run_method(graph, method, options, schedule);
    if (status == SCHEDULER_OK) {
        portfolio.found_by = method;
        portfolio.makespans[method] = schedule->makespan;
        finish(schedule, &portfolio);
        *ret_portfolio = portfolio;
    }
    return status;
}
