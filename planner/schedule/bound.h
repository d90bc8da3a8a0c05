/* planner/schedule/bound.h - a time that no schedule of the graph can beat. The largest of these,
 * each a relaxation:
 *
 *     critical path   tasks never wait for a processor, and each is where it is best for those behind it; transfers
 *                     count as the links say (with more than BOUND_PAIRS edges x pairs of processors, at their least)
 *     work            tasks wait for nothing, and may be divided over processors: for weights w that sum to 1,
 *                     sum over t of min over p of w(p) cost(t, p), by duality; the weights are made better some times
 *
 * Lenstra, Shmoys, Tardos, "Approximation algorithms for scheduling unrelated parallel machines",
 * Mathematical Programming 46, 1990, have the linear program that the second bounds from below.
 * Pure. */
#ifndef BOURSE_PLANNER_SCHEDULE_BOUND_H
#define BOURSE_PLANNER_SCHEDULE_BOUND_H

#include "planner/schedule/workload.h"

#define BOUND_PAIRS (UINT64_C(1) << 28)

/* False without memory. What rounding may have added is far below a billionth of it. */
bool bound_make(const struct workload *graph, double *ret_bound);

/* The second alone: it holds for work that is divided, too, as long as a part of a task takes no
 * less than that part of its time. */
bool bound_work(const struct workload *graph, double *ret_bound);

/* The least time from the start of `task` on each processor to the end of all behind it, as the
 * critical path above has it: infinite where it cannot run. `ret_tails` has tasks x processors
 * entries. */
void bound_tails(const struct workload *graph, double *ret_tails);

#endif
