/* bench/planner_reality/measure.h runs plans, and compares their times with the predicted ones. */
#ifndef BOURSE_BENCH_PLANNER_REALITY_MEASURE_H
#define BOURSE_BENCH_PLANNER_REALITY_MEASURE_H

#include "bench/planner_reality/parts.h"

#include <jansson.h>

enum { RUNS_MOST = 100 };

extern const struct wire_speed measure_speed; /* of both links */

struct bench {
    uint32_t tasks, items, runs, rounds, seed;
    bool has_trace, is_wrong;
    int cores[CORES];
    struct scratch *scratch[CORES];
    struct calibration calibration;
};

/* Sorts the values, and returns their median and their least and largest. The caller owns the
 * JSON, here and below. */
json_t *measure_spread(double *values, size_t count);
/* Returns the expected time of a piece on a core. */
double measure_seconds(const struct bench *bench, uint32_t core, struct piece piece);
/* Returns the error of a prediction, as a share of what was measured. */
double measure_off(double predicted, double measured);

/* Makes a graph of tasks for two cores and the links between them. `costs` are by task and core. */
struct workload *measure_make_graph(size_t tasks, const double *costs,
                                    const struct workload_edge *edges, size_t edge_count);

/* Runs the plan once. Counts in `kept` and `good` a run that kept to its plan, and one whose output
 * is `right`. */
void measure_run(struct bench *bench, struct run *run, const struct hash32 *right, uint32_t *kept,
                 uint32_t *good);
/* Makes a run of the same tasks on one core alone, in the same order. The caller frees
 * *ret_processor after the run. */
struct run *measure_alone(const struct plan *plan, uint32_t core, uint32_t **ret_processor);
/* Runs a plan, and the same tasks on one core, in turns. Returns the figures of both. */
json_t *measure_with_one(struct bench *bench, const struct plan *plan, uint32_t core,
                         double predicted_s, double single_s);

#endif
