/* The usage of a schedule says how busy each processor is, and which bytes go from one processor to
 * another. */
#ifndef BOURSE_PLANNER_SCHEDULE_USAGE_H
#define BOURSE_PLANNER_SCHEDULE_USAGE_H

#include "planner/schedule/schedule.h"

struct usage_processor {
    uint32_t tasks;
    double busy; /* sum of its tasks' costs */
};

struct usage_link { /* one link that carries something */
    uint32_t from, to;
    uint32_t transfers;
    double bytes;
    double busy; /* sum of latencies and bytes / bandwidth */
};

struct usage {
    struct usage_processor *processors; /* all, by index */
    struct usage_link *links;           /* the busiest first, then by from and to */
    size_t link_count;
    uint32_t transfers;
    double bytes;
    /* Ready time by task: its inputs would be there then if links carried any number of transfers
     * at once. From then to its start, the task waits for its processor or for links. */
    double *ready;
};

/* Computes the usage, which the caller owns. Returns NULL when memory is short. */
struct usage *usage_create(const struct workload *graph, const struct schedule *schedule);
void usage_destroy(struct usage **self);

#endif
