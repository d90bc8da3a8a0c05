/* The bound is a time that no schedule of the graph can beat. It is the largest of these
 * relaxations:
 *
 *    critical path   Tasks never wait for a processor, and each runs where successors end first.
 *                    Transfers count as the links say. With more than BOUND_PAIRS edges x pairs of
 *                    processors, transfers count at their least.
 *    work            Tasks wait for nothing, and may be divided over processors. For weights w that
 *                    sum to 1, the bound is the sum over t of min over p of w(p) cost(t, p), by
 *                    duality. A number of iterations improve the weights.
 *
 * The linear program that the second relaxation bounds from below is in Lenstra, Shmoys, Tardos,
 * "Approximation algorithms for scheduling unrelated parallel machines", Mathematical Programming
 * 46, 1990. */
#ifndef BOURSE_PLANNER_SCHEDULE_BOUND_H
#define BOURSE_PLANNER_SCHEDULE_BOUND_H

#include "planner/schedule/workload.h"

#define BOUND_PAIRS (UINT64_C(1) << 28)

/* Computes the bound. Rounding may have added far less than a billionth of it. Returns false when
 * memory is short. */
bool bound_make(const struct workload *graph, double *ret_bound);

/* Computes the second relaxation alone. It also holds for divided work, as long as a part of a task
 * takes no less than its share of the task's time. Returns false when memory is short. */
bool bound_work(const struct workload *graph, double *ret_bound);

/* Computes the least time from the start of `task` on each processor to the end of all its
 * successors, as in the critical path above. The time is infinite where the task cannot run.
 * `ret_tails` has tasks x processors entries. */
void bound_tails(const struct workload *graph, double *ret_tails);

#endif
