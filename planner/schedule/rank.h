/* The rank says how urgent each task is. It is the longest path from the task to the end. */
#ifndef BOURSE_PLANNER_SCHEDULE_RANK_H
#define BOURSE_PLANNER_SCHEDULE_RANK_H

#include "planner/schedule/workload.h"

enum rank_kind {
    /* Costs and transfers count at their mean over processors and links: HEFT's upward rank. */
    RANK_MEAN,
    RANK_BEST, /* costs and transfers at their least */
};

/* Computes upward ranks: cost(t) + max over successors of transfer + rank. A rank is at least the
 * task's own cost. */
void rank_upward(const struct workload *graph, enum rank_kind kind, double *ret_ranks);
/* Computes downward ranks from means: max over predecessors of rank + cost + transfer. The rank is
 * 0 for a task that waits for nothing. */
void rank_downward(const struct workload *graph, double *ret_ranks);

/* Sorts the tasks by falling rank, ties by topological position. For upward ranks this is a
 * topological order: a rank is above its successors' ranks, or equal by rounding. Returns false
 * when memory is short. */
bool rank_sequence(const struct workload *graph, const double *ranks, uint32_t *ret_sequence);

/* A heap of the tasks that may be placed next, the highest rank first. */
struct rank_ready {
    const struct workload *graph;
    const double *ranks;
    uint32_t *heap;
    uint32_t count;
    uint32_t *missing; /* unplaced predecessors of each task */
};
bool rank_ready_init(struct rank_ready *ready, const struct workload *graph, const double *ranks);
void rank_ready_fini(struct rank_ready *ready);
/* Removes and returns the first task; its successors without other predecessors become ready.
 * Returns WORKLOAD_NONE when there is none. */
uint32_t rank_ready_next(struct rank_ready *ready);

#endif
