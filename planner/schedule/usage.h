/* planner/schedule/usage.h - what a schedule uses: how busy each processor is, and what goes from
 * one to another. Pure. */
#ifndef BOURSE_PLANNER_SCHEDULE_USAGE_H
#define BOURSE_PLANNER_SCHEDULE_USAGE_H

#include "planner/schedule/schedule.h"

struct usage_processor {
    uint32_t tasks;
    double busy; /* sum of their costs */
};

struct usage_link { /* one that carries something */
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
    double
        *ready; /* by task: when all that it waits for would be with it if links carried any number
                   at once; from then to its start it waits for its processor, or for links */
};

/* The caller owns it. NULL without memory. */
struct usage *usage_create(const struct workload *graph, const struct schedule *schedule);
void usage_destroy(struct usage **self);

#endif
