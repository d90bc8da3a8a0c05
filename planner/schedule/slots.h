/* planner/schedule/slots.h - when a processor is idle: gaps between what was put on it, and the
 * first that is long enough.
 *
 *     |####|  gap  |######|gap|##|  gap without end ...
 *
 * The gaps stand in a treap (Seidel and Aragon, "Randomized search trees", Algorithmica 16, 1996)
 * by their start; each node knows the longest gap below it, so that the first one that fits is
 * found in the logarithm of their number, however many there are. Priorities come of a counter, so
 * the same calls give the same tree. Pure. */
#ifndef BOURSE_PLANNER_SCHEDULE_SLOTS_H
#define BOURSE_PLANNER_SCHEDULE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

struct slots;

/* For `processor_count` processors and at most `task_count` tasks, all idle. NULL without
 * memory. */
struct slots *slots_create(uint32_t processor_count, uint32_t task_count);
void slots_destroy(struct slots **self);
void slots_clear(struct slots *slots); /* all idle again */

/* The earliest start >= `ready` of something that takes `length` > 0. */
double slots_find(const struct slots *slots, uint32_t processor, double ready, double length);
/* Takes `start` to `start + length`, which slots_find has just said. */
void slots_take(struct slots *slots, uint32_t processor, double start, double length);
/* When the last thing on it ends; 0 without any. */
double slots_end(const struct slots *slots, uint32_t processor);

#endif
