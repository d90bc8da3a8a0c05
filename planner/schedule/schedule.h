/* planner/schedule/schedule.h - a schedule: for each task of a graph a processor, a start and a
 * finish.
 *
 * Tasks run to their end once started, one at a time on each processor. The makespan is the last
 * finish; time begins at 0. Pure. */
#ifndef BOURSE_PLANNER_SCHEDULE_SCHEDULE_H
#define BOURSE_PLANNER_SCHEDULE_SCHEDULE_H

#include "planner/schedule/workload.h"

struct schedule {
    uint32_t task_count;
    uint32_t *processor; /* of each task, as all below */
    double *start, *finish;
    double makespan;
};

/* Room for `task_count` tasks. NULL without memory. */
struct schedule *schedule_create(uint32_t task_count);
void schedule_destroy(struct schedule **self);
void schedule_copy(struct schedule *to, const struct schedule *from); /* of as many tasks */

enum schedule_flaw {
    SCHEDULE_SOUND,
    SCHEDULE_WRONG_PROCESSOR, /* there is none such, or it cannot run the task */
    SCHEDULE_WRONG_TIME,      /* starts before 0, or finish is not start + cost */
    SCHEDULE_TOO_EARLY, /* starts before an edge has brought its bytes, or none could bring them */
    SCHEDULE_OVERLAP,   /* two at a time on one processor */
    SCHEDULE_WRONG_MAKESPAN,
    SCHEDULE_UNCHECKED, /* no memory to check it */
};

/* Whether it keeps to everything that the graph says, to the last bit. `ret_task`: the first in
 * topological order that does not; WORKLOAD_NONE where it is none in particular. */
enum schedule_flaw schedule_verify(const struct workload *graph, const struct schedule *schedule,
                                   uint32_t *ret_task);

/* The tasks by start, then by topological position: an order in which each could be put after what
 * was put before it. `ret_sequence` has room for all. False without memory. */
bool schedule_sequence(const struct workload *graph, const struct schedule *schedule,
                       uint32_t *ret_sequence);

/* The earliest times for tasks that are put, in the order of `sequence` (a topological one), each
 * behind what its processor has already: `processor` says where. `free_from` is scratch of a number
 * for each processor. False when an edge has no link to go by, or a task runs where it cannot; the
 * schedule is without meaning then. */
bool schedule_time(const struct workload *graph, const uint32_t *sequence,
                   const uint32_t *processor, double *free_from, struct schedule *ret_schedule);

#endif
