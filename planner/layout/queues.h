/* Queues say what the rows of a plan wait for, and how long.
 *
 *    h100 1  |= embed =|....|= decode =|     . device: other steps go first
 *    tpu 1       |= prefill =|~~~~           ~ link: another transfer holds a port
 *
 * They apply to plans in which each row is one step. In shares and stages, a started row waits for
 * rows and links at once (plan_wait), and these cannot be told apart. */
#ifndef BOURSE_PLANNER_LAYOUT_QUEUES_H
#define BOURSE_PLANNER_LAYOUT_QUEUES_H

#include "planner/layout/plan.h"

enum queue_for { QUEUE_DEVICE, QUEUE_LINK, QUEUE_OTHERS };

struct queue {
    enum queue_for what;
    uint32_t row; /* the waiting row; link: the row whose result waits */
    uint32_t to;  /* link: the receiving row; else PLAN_ANYWHERE */
    double from_s, until_s;
};

const char *queue_name(enum queue_for what); /* "device" */

/* Lists the queues of a plan, by row and then by time. `steps` are those of the plan. The caller
 * frees the list. Returns false when memory is short. */
bool queues_of(const struct plan *plan, const struct steps *steps, struct queue **ret_queues,
               size_t *ret_count);

#endif
