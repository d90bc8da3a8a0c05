/* bench/planner_reality/mixed_graph.h draws a random graph of unlike tasks, has it planned by the
 * schedulers, and measures its runs. */
#ifndef BOURSE_BENCH_PLANNER_REALITY_MIXED_GRAPH_H
#define BOURSE_BENCH_PLANNER_REALITY_MIXED_GRAPH_H

#include "bench/planner_reality/measure.h"

/* Draws a graph of bench->tasks tasks by bench->seed, and runs its plan bench->runs times. The
 * caller owns the JSON. */
json_t *mixed_graph_measure(struct bench *bench);

#endif
