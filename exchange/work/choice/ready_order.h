/* The order of a part's ready subtasks by their expected times finds what still fits before a
 * deadline. A tree has the ready subtask of the highest rank of each range of the order:
 *
 *     order      3      0      2      1       by expected time, then by index; never changes
 *     tree    [ of 3, 0 ]   [ of 2, 1 ]
 *             [  3 ] [   ]  [ 2 ] [ 1 ]       subtask 0 is not ready
 *
 * An answer takes the logarithm of the number of subtasks, whatever is ready. The memory is at most
 * 28 bytes a subtask. Where a subtask stands in the heap of ready.h is noted here, too. */
#ifndef BOURSE_EXCHANGE_WORK_CHOICE_READY_ORDER_H
#define BOURSE_EXCHANGE_WORK_CHOICE_READY_ORDER_H

#include "exchange/state/records.h"
#include "planner/schedule/online.h"

/* Makes the order of each part of a job with a deadline and expectations of single subtasks, with
 * what is ready now, unless it is there. Returns false when memory is short. */
bool ready_order_create(struct exchange *exchange, struct job *job);
void ready_order_destroy(struct ready_order **self);

/* Adds a subtask that became ready, or takes one out. */
void ready_order_add(struct ready_order *order, uint32_t index);
void ready_order_remove(struct ready_order *order, uint32_t index);
/* Notes and returns the place of a ready subtask in the heap. */
void ready_order_note(struct ready_order *order, uint32_t index, uint32_t heap_place);
uint32_t ready_order_place(const struct ready_order *order, uint32_t index);

/* Returns the ready subtask of the highest rank that takes at most `most_ns` at this pace, or
 * NO_SUBTASK. Adds the steps of the search. */
uint32_t ready_order_first(const struct ready_order *order, struct online_pace pace,
                           int64_t most_ns, uint64_t *steps);
/* Returns the ready subtask with the shortest expected time, or NO_SUBTASK. Adds the steps of the
 * search. */
uint32_t ready_order_shortest(const struct ready_order *order, uint64_t *steps);

#endif
