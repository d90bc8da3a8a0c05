/* planner/layout/queues.h - what the rows of a plan wait for, and how long.
 *
 *     h100 1  |= embed =|....|= decode =|        . for the device: what it needs is there, and others go before it
 *     tpu 1       |= prefill =|~~~~               ~ and for the link: it is done, and another transfer holds a port
 *
 * Of plans in which each row is one step. Of shares and stages, what a row that has begun waits for
 * (plan_wait) is others and links at once: nobody can tell them apart. Pure. */
#ifndef BOURSE_PLANNER_LAYOUT_QUEUES_H
#define BOURSE_PLANNER_LAYOUT_QUEUES_H

#include "planner/layout/plan.h"

enum queue_for { QUEUE_DEVICE, QUEUE_LINK, QUEUE_OTHERS };

struct queue {
    enum queue_for what;
    uint32_t row; /* that waits; for a link the one whose result does */
    uint32_t to;  /* for a link: the row that it is for; else PLAN_ANYWHERE */
    double from_s, until_s;
};

const char *queue_name(enum queue_for what); /* "device" */

/* The caller frees the list, which is by row, and then by time. False without memory. `steps`: of
 * the plan. */
bool queues_of(const struct plan *plan, const struct steps *steps, struct queue **ret_queues,
               size_t *ret_count);

#endif
