#include "bench/planner_reality/measure.h"

#include "bench/give_up.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct wire_speed measure_speed = {.latency_s = 1e-3, .bytes_per_s = 20e6};

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Sorts them. */
json_t *measure_spread(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    double median = (values[(count - 1) / 2] + values[count / 2]) / 2;
    return json_pack("{s:f, s:[f, f]}", "median", median, "spread", values[0], values[count - 1]);
}

double measure_seconds(const struct bench *bench, uint32_t core, struct piece piece)
{
    return calibration_seconds(&bench->calibration, core, piece);
}

double measure_off(double predicted, double measured)
{
    return fabs(predicted - measured) / measured;
}

/* ---------------------------------------------------------------- graphs */

struct workload *measure_make_graph(size_t tasks, const double *costs,
                                    const struct workload_edge *edges, size_t edge_count)
{
    const struct workload_link links[] = {
        {0, 1, measure_speed.latency_s, measure_speed.bytes_per_s},
        {1, 0, measure_speed.latency_s, measure_speed.bytes_per_s}};
    struct workload *graph = NULL;
    struct workload_fault fault;
    const struct workload_input input = {.task_count = tasks,
                                         .processor_count = CORES,
                                         .link_count = 2,
                                         .edge_count = edge_count,
                                         .costs = costs,
                                         .links = links,
                                         .edges = edges};
    if (workload_create(&input, &graph, &fault) != WORKLOAD_OK) {
        die("the graph cannot be planned");
    }
    return graph;
}

/* Runs the plan, and checks that the run kept to the plan and that its output is `right`. */
void measure_run(struct bench *bench, struct run *run, const struct hash32 *right, uint32_t *kept,
                 uint32_t *good)
{
    run_once(run, bench->cores, bench->scratch, measure_speed);
    struct hash32 output = run_output(run);
    bool is_kept = run_kept(run, measure_speed);
    bool is_good = memcmp(&output, right, sizeof output) == 0;
    *kept += is_kept;
    *good += is_good;
    bench->is_wrong |= !is_kept || !is_good;
}

/* Runs the same tasks on one core alone, in the same order. */
struct run *measure_alone(const struct plan *plan, uint32_t core, uint32_t **ret_processor)
{
    struct plan single = *plan;
    *ret_processor = memory(plan->graph->task_count, sizeof **ret_processor);
    for (uint32_t t = 0; t < plan->graph->task_count; t++) {
        (*ret_processor)[t] = core;
    }
    single.processor = *ret_processor;
    return run_create(&single);
}

/* The two ways are measured in turns; the prediction is there already. */
json_t *measure_with_one(struct bench *bench, const struct plan *plan, uint32_t core,
                         double predicted_s, double single_s)
{
    double both[RUNS_MOST];
    double one[RUNS_MOST];
    double ratio[RUNS_MOST];
    double error[RUNS_MOST];
    uint32_t kept = 0;
    uint32_t good = 0;
    uint32_t *processor;
    struct run *run = run_create(plan);
    struct run *single = measure_alone(plan, core, &processor);
    run_once(single, bench->cores, bench->scratch, measure_speed); /* a first time, to warm up */
    struct hash32 right = run_output(single);
    for (uint32_t i = 0; i < bench->runs; i++) {
        measure_run(bench, run, &right, &kept, &good);
        run_once(single, bench->cores, bench->scratch, measure_speed);
        both[i] = run->makespan;
        one[i] = single->makespan;
        ratio[i] = one[i] / both[i];
        error[i] = measure_off(predicted_s, both[i]);
    }
    run_destroy(&single);
    run_destroy(&run);
    free(processor);
    return json_pack("{s:f, s:o, s:o, s:f, s:o, s:f, s:o, s:f, s:i, s:i}", "predicted_s",
                     predicted_s, "measured_s", measure_spread(both, bench->runs), "error",
                     measure_spread(error, bench->runs), "one_core_predicted_s", single_s,
                     "one_core_measured_s", measure_spread(one, bench->runs), "speedup_predicted",
                     single_s / predicted_s, "speedup_measured", measure_spread(ratio, bench->runs),
                     "speedup_ceiling", (double)CORES, "runs_kept", (int)kept, "runs_right",
                     (int)good);
}
