/* This file makes task graphs for tests: those of two papers, and random ones. */
#ifndef BOURSE_TESTS_SUPPORT_SAMPLE_GRAPH_H
#define BOURSE_TESTS_SUPPORT_SAMPLE_GRAPH_H

#include "base/random.h"
#include "planner/schedule/schedule.h"

/* Makes tasks on processors that all have links of no latency and bandwidth 1 to one another. Fails
 * the test when the graph is refused. */
struct workload *sample_linked(size_t tasks, size_t processors, const double *costs, size_t edges,
                               const struct workload_edge *list);
struct workload *sample_of_heft(void); /* Topcuoglu, Hariri and Wu 2002: 10 tasks, 3 processors */
struct workload *sample_of_peft(void); /* Arabnejad and Barbosa 2014: the same */

struct sample_shape {
    uint32_t tasks, processors;
    uint32_t carrying_percent; /* a transfer's time as a part of a task's */
    uint32_t links_percent;    /* links that exist */
    uint32_t runs_percent;     /* processors that can run a task; one always can */
    bool is_uniform;           /* all processors are alike */
};

/* Costs are whole numbers, bandwidths powers of two, and transfers multiples of a power of two. So
 * sums do not round, and different ways to work something out agree to the last bit. Returns NULL
 * when the graph cannot be planned (an edge without any link). */
struct workload *sample_random(struct random *dice, const struct sample_shape *shape);

/* Fails the test unless the schedule is sound. */
void sample_check(const struct workload *graph, const struct schedule *schedule);

#endif
