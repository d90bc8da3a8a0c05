/* A part of a job is a range of its subtasks with one requirement and one bid. */
#ifndef BOURSE_EXCHANGE_STATE_PARTS_H
#define BOURSE_EXCHANGE_STATE_PARTS_H

#include "exchange/state/records.h"

/* Sets what a part has from its birth; it has no bid. */
void part_init(struct part *part, struct job *job, uint32_t number);
/* Returns the lanes that the subtasks can use at a time. */
uint32_t part_lanes_most(uint32_t subtasks, uint32_t at_most, uint32_t width);
/* Returns the part of the subtask. */
struct part *part_of(const struct job *job, uint32_t index);
/* Returns true when a subtask may take longer than a term. Its lease is then renewed while it
 * runs. */
bool part_outlasts_term(const struct part *part);
/* Returns the time that a lease must have left before it gets one more subtask. */
int64_t part_needs_ns(const struct part *part);
/* Returns the shortest term that is proposed for work of this limit and this term. */
int64_t part_least_term_ns(int64_t limit_ns, int64_t term_ns);
/* Returns true for the last part of a job with checks. */
bool part_is_checks(const struct part *part);
/* Returns true when no subtask waits or runs; only a refuted result could change that. */
bool part_is_over(const struct part *part);
/* Queues the end of the part's idle leases in this step when the part is over. */
void part_look_if_over(struct exchange *exchange, struct part *part);

#endif
