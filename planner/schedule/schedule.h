/* A schedule gives each task of a graph a processor, a start and a finish.
 *
 * Tasks run to their end once started, one at a time on each processor. The makespan is the last
 * finish, and time begins at 0. */
#ifndef BOURSE_PLANNER_SCHEDULE_SCHEDULE_H
#define BOURSE_PLANNER_SCHEDULE_SCHEDULE_H

#include "planner/schedule/workload.h"

struct schedule {
    uint32_t task_count;
    uint32_t *processor; /* indexed by task, as all arrays below */
    double *start, *finish;
    double makespan;
};

/* Creates a schedule with room for `task_count` tasks. Returns NULL when memory is short. */
struct schedule *schedule_create(uint32_t task_count);
void schedule_destroy(struct schedule **self);
/* Copies a schedule; both have the same number of tasks. */
void schedule_copy(struct schedule *to, const struct schedule *from);

/* Sorts the tasks by start, then by topological position. In this order each task can be placed
 * after the tasks before it. `ret_sequence` has room for all. Returns false when memory is
 * short. */
bool schedule_sequence(const struct workload *graph, const struct schedule *schedule,
                       uint32_t *ret_sequence);

/* Computes the earliest times for tasks placed in the order of `sequence`, a topological one. Each
 * task goes behind what its processor has already; `processor` names the processors. `free_from` is
 * scratch, one number for each processor. Returns false when an edge has no link, or a task runs
 * where it cannot; then the schedule has no meaning. */
bool schedule_time(const struct workload *graph, const uint32_t *sequence,
                   const uint32_t *processor, double *free_from, struct schedule *ret_schedule);

#endif
