/* planner/schedule/place.h - what list schedulers have in common: tasks are put one after the
 * other, each once all that it waits for has been put, into the first gap of a processor that is
 * long enough (insertion; Topcuoglu, Hariri and Wu 2002).
 *
 * Where links are missing, or tasks cannot run everywhere, a choice made now may leave a task of
 * later nowhere to go. So for each task the processors are kept that still agree with all choices
 * made: those from which and to which some processor of each neighbour can be reached (arc
 * consistency; Mackworth, "Consistency in networks of relations", Artificial Intelligence 8, 1977).
 * A choice that would leave a task without any is not made. That is no search: rarely, all choices
 * for a task are such, and then the scheduler has found nothing. Pure. */
#ifndef BOURSE_PLANNER_SCHEDULE_PLACE_H
#define BOURSE_PLANNER_SCHEDULE_PLACE_H

#include "planner/schedule/schedule.h"

struct place;

/* For `graph`, which must outlive it. NULL without memory. */
struct place *place_create(const struct workload *graph);
void place_destroy(struct place **self);

/* Begins anew, into `schedule`, which the caller keeps. False: some task has nowhere to go from the
 * start. */
bool place_begin(struct place *place, struct schedule *schedule);

/* What it would be to put `task` now: its finish on each processor, infinite where it may not go.
 * Good until the next call; the caller may write into it. */
double *place_finishes(struct place *place, uint32_t task);

/* Puts `task`, for which place_finishes was called last, on the processor with the least score
 * (ties: the lowest index) that leaves all others somewhere to go. Infinite scores are not taken.
 * False: there is none. */
bool place_put(struct place *place, uint32_t task, double *scores);

#endif
