/* Placing is what list schedulers share. Tasks are placed one after the other, each after all its
 * predecessors. A task goes into the first gap of a processor that is long enough (insertion;
 * Topcuoglu, Hariri and Wu 2002).
 *
 * When links are missing, or tasks cannot run everywhere, an early choice may leave a later task no
 * processor. So each task keeps a set of processors that agree with all choices made. From and to
 * each of them, some processor of every neighbour can be reached (arc consistency; Mackworth,
 * "Consistency in networks of relations", Artificial Intelligence 8, 1977). A choice that would
 * empty a set is not made. There is no backtracking. In rare cases every choice for a task is
 * refused, and the scheduler finds nothing. */
#ifndef BOURSE_PLANNER_SCHEDULE_PLACE_H
#define BOURSE_PLANNER_SCHEDULE_PLACE_H

#include "planner/schedule/schedule.h"

struct place;

/* Creates the state for `graph`, which must outlive it. Returns NULL when memory is short. */
struct place *place_create(const struct workload *graph);
void place_destroy(struct place **self);

/* Begins anew, into `schedule`, which the caller owns. Returns false when some task has no
 * processor from the start. */
bool place_begin(struct place *place, struct schedule *schedule);

/* Returns the finish of `task` on each processor if it were placed now, infinite where it may not
 * run. The array is valid until the next call, and the caller may write into it. */
double *place_finishes(struct place *place, uint32_t task);

/* Puts `task`, the argument of the last place_finishes, on the processor with the least score
 * (ties: the lowest index). The choice must leave every other task a processor. Infinite scores are
 * not taken. Returns false when there is no such processor. */
bool place_put(struct place *place, uint32_t task, double *scores);

#endif
