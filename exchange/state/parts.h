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
/* Returns true for the last part of a job with checks. */
bool part_is_checks(const struct part *part);
/* Returns true when no subtask waits or runs; only a refuted result could change that. */
bool part_is_over(const struct part *part);
/* Queues the end of the part's idle leases in this step when the part is over. */
void part_look_if_over(struct exchange *exchange, struct part *part);

#endif
