/* Slots hold the idle gaps of each processor, and find the first gap that is long enough.
 *
 *     |####|  gap  |######|gap|##|  gap without end ...
 *
 * The gaps stand in a treap by their start (Seidel and Aragon, "Randomized search trees",
 * Algorithmica 16, 1996). Each node knows the longest gap below it. So the first gap that fits is
 * found in the logarithm of their number. Priorities come from a counter, so the same calls give
 * the same tree. */
#ifndef BOURSE_PLANNER_SCHEDULE_SLOTS_H
#define BOURSE_PLANNER_SCHEDULE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

struct slots;

/* Creates slots for `processor_count` idle processors and at most `task_count` tasks. Returns NULL
 * when memory is short. */
struct slots *slots_create(uint32_t processor_count, uint32_t task_count);
void slots_destroy(struct slots **self);
void slots_clear(struct slots *slots); /* Makes all processors idle again. */

/* Returns the earliest start >= `ready` of something that takes `length` > 0. */
double slots_find(const struct slots *slots, uint32_t processor, double ready, double length);
/* Takes the time from `start` to `start + length`, which slots_find has just returned. */
void slots_take(struct slots *slots, uint32_t processor, double start, double length);

#endif
