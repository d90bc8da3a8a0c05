/* bench/planner/forms.h measures what each form of a plan gains (planner/layout/plan.h). */
#ifndef BOURSE_BENCH_PLANNER_FORMS_H
#define BOURSE_BENCH_PLANNER_FORMS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Plans the five workloads of docs/planner.md on several sets of devices, and `count` random ones.
 * The result says for each form how much worse the best plan without the form is. The caller owns
 * the JSON. */
json_t *forms_measure(size_t count, uint64_t seed);

#endif
