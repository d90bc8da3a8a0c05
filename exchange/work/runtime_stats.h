/* The statistics of runtime tell how long subtasks of a part have taken so far. */
#ifndef BOURSE_EXCHANGE_WORK_RUNTIME_STATS_H
#define BOURSE_EXCHANGE_WORK_RUNTIME_STATS_H

#include "exchange/state/records.h"
#include "planner/schedule/online.h"

/* Time that subtasks of the part have taken so far. */
struct runtime_stats {
    int64_t mean_ns; /* over accepted results of its leases */
    uint64_t samples;
    struct online_pace pace; /* pace of subtasks with an expectation of their own */
    int64_t expect_ns;       /* expected by its job; 0: unknown */
};

/* Returns the pace of the subtasks of one lease that have an expectation of their own. */
struct online_pace runtime_stats_pace(const struct lease *lease);
struct runtime_stats runtime_stats_of_part(const struct part *part);
/* These functions put a lease's results into the sums of its part, and take them out. Whoever
 * changes a mean or the count of a lease in a list takes the lease out before and puts it in
 * after. */
void runtime_stats_put(const struct lease *lease);
void runtime_stats_take(const struct lease *lease);
/* Counts one more accepted result of the lease. */
void runtime_stats_accept(struct lease *lease);
/* Returns the expected time of the subtask `index` on the lease; 0: unknown. */
int64_t runtime_stats_subtask_ns(const struct lease *lease, uint32_t index,
                                 const struct runtime_stats *usual);
/* Returns the time of a subtask on the lease: measured there, else over the part, else expected; 0:
 * unknown. Where subtasks differ, it is for one of the mean expectation of those done, so a lease
 * with long subtasks does not seem slow. */
int64_t runtime_stats_lease_ns(const struct lease *lease, const struct runtime_stats *usual);

#endif
