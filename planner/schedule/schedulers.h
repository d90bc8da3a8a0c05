/* planner/schedule/schedulers.h - the schedulers: each makes a schedule of a graph. One file for
 * each, which names its source.
 *
 * Ties, everywhere: tasks of equal rank by topological position, processors of equal merit by
 * lowest index. The same graph, seed and number of steps give the same schedule. Pure. */
#ifndef BOURSE_PLANNER_SCHEDULE_SCHEDULERS_H
#define BOURSE_PLANNER_SCHEDULE_SCHEDULERS_H

#include "planner/schedule/schedule.h"

enum scheduler_status {
    SCHEDULER_OK,
    SCHEDULER_NOWHERE,  /* it found no processors for all tasks that the links allow */
    SCHEDULER_TOO_MANY, /* more tasks or processors than it takes */
    SCHEDULER_NO_MEMORY,
};

/* Each fills `schedule`, which has room for the graph's tasks. Any status but OK leaves it without
 * meaning. */

/* List schedulers: tasks by rank, each where its rule says, into the first gap that is long enough.
 * Time about (tasks + edges) x processors, and the logarithm of the gaps. */
enum scheduler_status heft_schedule(const struct workload *graph, struct schedule *schedule);
enum scheduler_status heft_best_schedule(const struct workload *graph, struct schedule *schedule);
enum scheduler_status peft_schedule(const struct workload *graph, struct schedule *schedule);
enum scheduler_status cpop_schedule(const struct workload *graph, struct schedule *schedule);
/* Every task where it takes least, whatever the transfers cost. */
enum scheduler_status all_best_schedule(const struct workload *graph, struct schedule *schedule);
/* HEFT with only some processors: `may_use` has one flag for each. */
enum scheduler_status heft_subset_schedule(const struct workload *graph, const bool *may_use,
                                           struct schedule *schedule);

/* All on the one processor that is done first. NOWHERE: none can run all of them. */
enum scheduler_status single_schedule(const struct workload *graph, struct schedule *schedule);
/* What that takes on each processor; infinite where one of the tasks cannot run. */
double single_time(const struct workload *graph, uint32_t processor);

/* Groups of tasks that send each other much, each group on one processor: the best of several sizes
 * of group. */
enum scheduler_status cluster_schedule(const struct workload *graph, struct schedule *schedule);

/* ---------------------------------------------------------------- search */

enum { EXACT_TASKS = 12, EXACT_PROCESSORS = 64 };

/* How long to search. A step is the time of one task worked out: some nanoseconds, up to some ten
 * in large graphs. */
struct search_budget {
    uint64_t steps;
    bool (*stop)(
        void *context); /* asked now and then; true ends the search. NULL: the steps alone do */
    void *context;
};

/* `schedule` holds a sound schedule, which is replaced by better ones; the least makespan first.
 * Proved true: none is better. False: the budget was used up first. TOO_MANY beyond EXACT_TASKS and
 * EXACT_PROCESSORS. A schedule of infinite makespan stands for none: the first that is found
 * replaces it. */
enum scheduler_status exact_schedule(const struct workload *graph,
                                     const struct search_budget *budget, struct schedule *schedule,
                                     bool *ret_proved);

/* `schedule` holds a sound schedule; it is replaced by the best one found. Stops early at `bound`,
 * below which none can be. `is_contended`: times are those of contention.h, those of `schedule`
 * too. */
enum scheduler_status improve_schedule(const struct workload *graph,
                                       const struct search_budget *budget, uint64_t seed,
                                       double bound, bool is_contended, struct schedule *schedule);

#endif
