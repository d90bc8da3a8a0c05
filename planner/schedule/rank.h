/* planner/schedule/rank.h - how urgent each task is: the longest way from it to the end. Pure. */
#ifndef BOURSE_PLANNER_SCHEDULE_RANK_H
#define BOURSE_PLANNER_SCHEDULE_RANK_H

#include "planner/schedule/workload.h"

enum rank_kind {
    RANK_MEAN, /* costs and transfers at their mean over processors and links: HEFT's upward rank */
    RANK_BEST, /* at their least */
};

/* Upward: cost(t) + max over successors of transfer + rank; at least the task's own cost. */
void rank_upward(const struct workload *graph, enum rank_kind kind, double *ret_ranks);
/* Downward: max over predecessors of rank + cost + transfer; 0 for those that wait for nothing.
 * Means. */
void rank_downward(const struct workload *graph, double *ret_ranks);

/* The tasks by falling rank, ties by topological position. False without memory. For upward ranks
 * this is a topological order: a rank is above those of its successors, or by rounding equal to
 * one. */
bool rank_sequence(const struct workload *graph, const double *ranks, uint32_t *ret_sequence);

/* Tasks that may be put next, the highest rank first; a heap. */
struct ready {
    const struct workload *graph;
    const double *ranks;
    uint32_t *heap;
    uint32_t count;
    uint32_t *missing; /* predecessors of each task that have not been put */
};
bool ready_init(struct ready *ready, const struct workload *graph, const double *ranks);
void ready_fini(struct ready *ready);
/* Removes the first; WORKLOAD_NONE when there is none. Those that waited for it alone are ready
 * then. */
uint32_t ready_next(struct ready *ready);

#endif
