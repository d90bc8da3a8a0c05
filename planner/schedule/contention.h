/* planner/schedule/contention.h - the times of a schedule when links are resources: each carries
 * one transfer at a time, for all of latency + bytes / bandwidth, first come first served.
 *
 * Who runs where, and after whom, is given; when, is found by going from the end of one task to the
 * next: what the task sends stands behind what its links have already, and each task starts when
 * its processor is free and the last of its transfers is there.
 *
 *     p0  |  a  |  b  |
 *     p0 -> p1  |a to c|b to d   |         both have to go by the same link
 *     p1               |  c   |..|  d  |
 *
 * Of transfers that become ready at one moment, the one whose sender comes first in topological
 * order goes first, of one sender's that whose receiver does. One direction of a pair of processors
 * is one link. Pure. */
#ifndef BOURSE_PLANNER_SCHEDULE_CONTENTION_H
#define BOURSE_PLANNER_SCHEDULE_CONTENTION_H

#include "planner/schedule/schedule.h"

struct contention;

/* For `graph`, which must outlive it. NULL without memory. */
struct contention *contention_create(const struct workload *graph);
void contention_destroy(struct contention **self);

/* As schedule_time, whose schedule is never longer: the tasks of each processor run in the order of
 * `sequence`, a topological one. False when an edge has no link to go by, or a task runs where it
 * cannot. Time n log n. */
bool contention_time(struct contention *contention, const uint32_t *sequence,
                     const uint32_t *processor, struct schedule *ret_schedule);

/* Of the last times found: when the transfer of `graph->in[arc]` begins. Without meaning for what
 * stays on a processor. */
double contention_begin(const struct contention *contention, uint32_t arc);

#endif
