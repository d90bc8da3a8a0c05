/* The domain says on which processors each task may still run when links are missing; place.h
 * explains it. */
#ifndef BOURSE_PLANNER_SCHEDULE_DOMAIN_H
#define BOURSE_PLANNER_SCHEDULE_DOMAIN_H

#include "planner/schedule/workload.h"

struct domain;

/* Creates the domain of `graph`, which must outlive it. Returns NULL when memory is short. */
struct domain *domain_create(const struct workload *graph);
void domain_destroy(struct domain **self);

/* Allows all that the links allow from the start. Returns false when some task has no processor
 * left. */
bool domain_reset(struct domain *domain);
bool domain_has(const struct domain *domain, uint32_t task, uint32_t processor);
/* Puts `task` on `processor`. Returns false when some task would have no processor left; then
 * `task` may not run there, and nothing else has changed. All calls between two resets together
 * take at most edges x processors steps for each 64 processors. */
bool domain_choose(struct domain *domain, uint32_t task, uint32_t processor);

#endif
