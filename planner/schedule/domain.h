/* planner/schedule/domain.h - on which processors each task may still run, where links are missing:
 * see place.h. Pure. */
#ifndef BOURSE_PLANNER_SCHEDULE_DOMAIN_H
#define BOURSE_PLANNER_SCHEDULE_DOMAIN_H

#include "planner/schedule/workload.h"

struct domain;

/* For `graph`, which must outlive it. NULL without memory. */
struct domain *domain_create(const struct workload *graph);
void domain_destroy(struct domain **self);

/* All that the links allow from the start. False: some task has nowhere to go. */
bool domain_reset(struct domain *domain);
bool domain_has(const struct domain *domain, uint32_t task, uint32_t processor);
/* `task` runs there. False: that leaves some task nowhere to go; then it does not run there, and
 * that is all that has changed. All calls between two resets together take edges x processors steps
 * at most, for each 64 processors. */
bool domain_choose(struct domain *domain, uint32_t task, uint32_t processor);

#endif
