/* Contention computes the times of a schedule when links are resources. Each link carries one
 * transfer at a time, for all of latency + bytes / bandwidth, first come first served.
 *
 * The caller gives the processor of each task and the order on each processor. The times follow by
 * going from the end of one task to the next. A task's output queues behind what its links already
 * carry. Each task starts when its processor is free and the last of its transfers has arrived.
 *
 *     p0  |  a  |  b  |
 *     p0 -> p1  |a to c|b to d   |         both have to go by the same link
 *     p1               |  c   |..|  d  |
 *
 * Among transfers that become ready at one moment, the sender that comes first in topological order
 * goes first. Among transfers of one sender, the first receiver goes first. One direction of a pair
 * of processors is one link. */
#ifndef BOURSE_PLANNER_SCHEDULE_CONTENTION_H
#define BOURSE_PLANNER_SCHEDULE_CONTENTION_H

#include "planner/schedule/schedule.h"

struct contention;

/* Creates the state for `graph`, which must outlive it. Returns NULL when memory is short. */
struct contention *contention_create(const struct workload *graph);
void contention_destroy(struct contention **self);

/* Computes the times as schedule_time does, whose schedule is never longer. The tasks of each
 * processor run in the order of `sequence`, a topological one. Returns false when an edge has no
 * link, or a task runs where it cannot. Time n log n. */
bool contention_time(struct contention *contention, const uint32_t *sequence,
                     const uint32_t *processor, struct schedule *ret_schedule);

#endif
