#include "bench/planner_reality/mixed_graph.h"

#include "base/random.h"
#include "bench/give_up.h"
#include "planner/schedule/contention.h"
#include "planner/schedule/portfolio.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH_MOST = 12,   /* tasks in a layer of the graph */
    INPUTS_MOST = 3,   /* inputs for a task */
    EDGE_LEAST = 4096, /* bytes */
    EDGE_MOST = 196608,
};

static size_t draw_edges(struct random *dice, uint32_t tasks, struct workload_edge *edges)
{
    size_t count = 0;
    uint32_t before = 0; /* the layer before begins there */
    uint32_t begin = 0;
    while (begin < tasks) {
        uint32_t end = begin + 4 + (uint32_t)random_below(dice, WIDTH_MOST - 3);
        end = end < tasks ? end : tasks;
        for (uint32_t t = begin; t < end && begin > 0; t++) {
            uint32_t width = begin - before;
            uint32_t first = (uint32_t)random_below(dice, width);
            uint32_t inputs = 1 + (uint32_t)random_below(dice, INPUTS_MOST);
            for (uint32_t i = 0; i < inputs && i < width; i++) {
                uint64_t bytes = EDGE_LEAST + random_below(dice, EDGE_MOST - EDGE_LEAST);
                edges[count++] =
                    (struct workload_edge){before + (first + i) % width, t, (double)bytes};
            }
        }
        before = begin;
        begin = end;
    }
    return count;
}

/* Predicts each task on each core: its work, its inputs, and the longest message that it sends. */
static void predict(const struct bench *bench, const struct piece *pieces,
                    const struct workload_edge *edges, size_t edge_count, double *ret_costs)
{
    double *sent = memory(bench->tasks, sizeof *sent);
    double *taken = memory(bench->tasks, sizeof *taken);
    for (size_t i = 0; i < edge_count; i++) {
        sent[edges[i].from] = fmax(sent[edges[i].from], edges[i].bytes);
        taken[edges[i].to] += edges[i].bytes;
    }
    for (uint32_t t = 0; t < bench->tasks; t++) {
        for (uint32_t c = 0; c < CORES; c++) {
            ret_costs[t * CORES + c] = measure_seconds(bench, c, pieces[t]) +
                                       taken[t] * bench->calibration.input_s_per_byte[c] +
                                       sent[t] * bench->calibration.output_s_per_byte[c];
        }
    }
    free(sent);
    free(taken);
}

static struct workload *draw_graph(const struct bench *bench, struct piece *pieces)
{
    struct random dice = random_seeded(bench->seed);
    double *costs = memory((size_t)bench->tasks * CORES, sizeof *costs);
    struct workload_edge *edges = memory((size_t)bench->tasks * INPUTS_MOST, sizeof *edges);
    for (uint32_t t = 0; t < bench->tasks; t++) {
        enum kind kind = (enum kind)random_below(&dice, KINDS);
        uint32_t least = kind_least(kind);
        pieces[t] = (struct piece){
            kind, least + (uint32_t)random_below(&dice, kind_most(kind) - least + 1)};
    }
    size_t edge_count = draw_edges(&dice, bench->tasks, edges);
    predict(bench, pieces, edges, edge_count, costs);
    struct workload *graph = measure_make_graph(bench->tasks, costs, edges, edge_count);
    free(costs);
    free(edges);
    return graph;
}

/* Gives the median and the 90th percentile of each kind and of all, over all tasks and runs. */
static json_t *task_errors(double *const *errors, const size_t *counts)
{
    json_t *all = json_object();
    for (int kind = 0; kind <= KINDS; kind++) {
        if (counts[kind] > 0) {
            json_t *row = measure_spread(errors[kind], counts[kind]);
            (void)json_object_del(row, "spread");
            (void)json_object_set_new(row, "p90",
                                      json_real(errors[kind][(counts[kind] - 1) * 9 / 10]));
            (void)json_object_set_new(all, kind < KINDS ? kind_name((enum kind)kind) : "all", row);
        }
    }
    return all;
}

static json_t *trace(const struct run *run, const struct schedule *schedule)
{
    const struct workload *graph = run->plan.graph;
    json_t *tasks = json_array();
    json_t *edges = json_array();
    for (uint32_t i = 0; i < graph->task_count; i++) {
        uint32_t t = run->plan.sequence[i];
        (void)json_array_append_new(
            tasks, json_pack("{s:i, s:i, s:f, s:f, s:f, s:f}", "task", (int)t, "processor",
                             (int)run->plan.processor[t], "planned_start_s", schedule->start[t],
                             "planned_finish_s", schedule->finish[t], "start_s", run->start[t],
                             "finish_s", run->finish[t]));
        for (uint32_t in = graph->in_first[t]; in < graph->in_first[t + 1]; in++) {
            uint32_t from = graph->in[in].task;
            bool is_moved = run->plan.processor[from] != run->plan.processor[t];
            double there = (double)(run->transfers[in].end_ns - run->begin_ns) * 1e-9;
            (void)json_array_append_new(
                edges, json_pack("{s:i, s:i, s:f, s:b, s:f}", "src", (int)from, "dst", (int)t,
                                 "bytes", graph->in[in].bytes, "moved", (int)is_moved, "there_s",
                                 is_moved ? there : run->finish[from]));
        }
    }
    return json_pack("{s:o, s:o}", "tasks", tasks, "edges", edges);
}

/* Counts the transfers and bytes that went over a link. */
static void count_moved(const struct run *run, uint32_t *ret_transfers, double *ret_bytes)
{
    *ret_transfers = 0;
    *ret_bytes = 0;
    for (uint32_t in = 0; in < run->plan.graph->edge_count; in++) {
        *ret_transfers += run->transfers[in].end_ns != 0;
        *ret_bytes += run->transfers[in].bytes;
    }
}

static json_t *run_graph(struct bench *bench, const struct plan *plan, const struct piece *pieces,
                         const struct schedule *schedule, uint32_t best)
{
    const struct workload *graph = plan->graph;
    size_t all = (size_t)graph->task_count * bench->runs;
    double *errors[KINDS + 1];
    size_t counts[KINDS + 1] = {0};
    for (int kind = 0; kind <= KINDS; kind++) {
        errors[kind] = memory(all, sizeof(double));
    }
    double makespans[RUNS_MOST];
    double error[RUNS_MOST];
    uint32_t kept = 0;
    uint32_t good = 0;
    uint32_t transfers = 0;
    double bytes = 0;
    uint32_t *processor;
    struct run *single = measure_alone(plan, best, &processor);
    struct run *run = run_create(plan);
    run_once(single, bench->cores, bench->scratch, measure_speed);
    struct hash32 right = run_output(single);
    for (uint32_t i = 0; i < bench->runs; i++) {
        measure_run(bench, run, &right, &kept, &good);
        makespans[i] = run->makespan;
        error[i] = measure_off(schedule->makespan, run->makespan);
        for (uint32_t t = 0; t < graph->task_count; t++) {
            double one = measure_off(schedule->finish[t] - schedule->start[t],
                                     run->finish[t] - run->start[t]);
            errors[pieces[t].kind][counts[pieces[t].kind]++] = one;
            errors[KINDS][counts[KINDS]++] = one;
        }
    }
    count_moved(run, &transfers, &bytes);
    json_t *row = json_pack(
        "{s:f, s:o, s:o, s:o, s:i, s:f, s:f, s:f, s:i, s:i}", "predicted_s", schedule->makespan,
        "measured_s", measure_spread(makespans, bench->runs), "error",
        measure_spread(error, bench->runs), "task_error", task_errors(errors, counts), "transfers",
        (int)transfers, "bytes_moved", bytes, "one_core_predicted_s", single_time(graph, best),
        "one_core_measured_s", single->makespan, "runs_kept", (int)kept, "runs_right", (int)good);
    if (bench->has_trace) {
        (void)json_object_set_new(row, "trace", trace(run, schedule));
    }
    for (int kind = 0; kind <= KINDS; kind++) {
        free(errors[kind]);
    }
    run_destroy(&single);
    run_destroy(&run);
    free(processor);
    return row;
}

json_t *mixed_graph_measure(struct bench *bench)
{
    struct piece *pieces = memory(bench->tasks, sizeof *pieces);
    struct workload *graph = draw_graph(bench, pieces);
    struct schedule *schedule = schedule_create(graph->task_count);
    uint32_t *sequence = memory(graph->task_count, sizeof *sequence);
    struct work *work = memory(graph->task_count, sizeof *work);
    struct portfolio_options options = portfolio_defaults();
    struct portfolio portfolio;
    options.is_contended = true;
    if (schedule == NULL ||
        portfolio_schedule(graph, &options, schedule, &portfolio) != SCHEDULER_OK ||
        !schedule_sequence(graph, schedule, sequence)) {
        die("no schedule");
    }
    for (uint32_t t = 0; t < graph->task_count; t++) {
        work[t] = (struct work){&pieces[t], 1};
    }
    const struct plan plan = {graph, schedule->processor, sequence, work};
    uint32_t best = single_time(graph, 1) < single_time(graph, 0) ? 1 : 0;
    json_t *row = run_graph(bench, &plan, pieces, schedule, best);
    (void)json_object_set_new(row, "tasks", json_integer(graph->task_count));
    (void)json_object_set_new(row, "edges", json_integer(graph->edge_count));
    (void)json_object_set_new(row, "found_by", json_string(portfolio_name(portfolio.found_by)));
    (void)json_object_set_new(row, "lower_bound_s", json_real(portfolio.bound));
    schedule_destroy(&schedule);
    workload_destroy(&graph);
    free(sequence);
    free(work);
    free(pieces);
    return row;
}
