/* Each scheduler makes a schedule of a graph. Each has its own file, which names its source.
 *
 * Ties are broken alike everywhere: tasks of equal rank by topological position, processors of
 * equal merit by lowest index. The same graph, seed and number of steps give the same schedule. */
#ifndef BOURSE_PLANNER_SCHEDULE_SCHEDULERS_H
#define BOURSE_PLANNER_SCHEDULE_SCHEDULERS_H

#include "planner/schedule/schedule.h"

enum scheduler_status {
    SCHEDULER_OK,
    SCHEDULER_NOWHERE,  /* no processors found for all tasks that the links allow */
    SCHEDULER_TOO_MANY, /* more tasks or processors than it takes */
    SCHEDULER_NO_MEMORY,
};

/* Each scheduler fills `schedule`, which has room for the graph's tasks. Any status but OK leaves
 * it without meaning. */

/* List schedulers take tasks by rank, and put each into the first gap that is long enough, on the
 * processor of their rule. The time is about (tasks + edges) x processors x the logarithm of the
 * gaps. */
enum scheduler_status heft_schedule(const struct workload *graph, struct schedule *schedule);
enum scheduler_status heft_best_schedule(const struct workload *graph, struct schedule *schedule);
enum scheduler_status peft_schedule(const struct workload *graph, struct schedule *schedule);
enum scheduler_status cpop_schedule(const struct workload *graph, struct schedule *schedule);
/* Runs every task where it takes least, whatever the transfers cost. */
enum scheduler_status all_best_schedule(const struct workload *graph, struct schedule *schedule);
/* Runs HEFT with some of the processors: `may_use` has one flag for each. */
enum scheduler_status heft_subset_schedule(const struct workload *graph, const bool *may_use,
                                           struct schedule *schedule);

/* Runs all tasks on the one processor that is done first. NOWHERE means that no processor can run
 * all of them. */
enum scheduler_status single_schedule(const struct workload *graph, struct schedule *schedule);
/* Returns the time of all tasks on one processor. It is infinite when one of the tasks cannot run
 * there. */
double single_time(const struct workload *graph, uint32_t processor);

/* Puts groups of tasks that send each other much on one processor each. The best of several group
 * sizes is taken. */
enum scheduler_status cluster_schedule(const struct workload *graph, struct schedule *schedule);

/* ---------------------------------------------------------------- search */

enum { EXACT_TASKS = 12, EXACT_PROCESSORS = 64 };

/* The budget says how long to search. A step is one task's time computed: some nanoseconds, in
 * large graphs some tens. */
struct search_budget {
    uint64_t steps;
    /* Asked now and then; true ends the search. NULL means that the steps alone end it. */
    bool (*stop)(void *context);
    void *context;
};

/* Searches for a schedule of the least makespan. `schedule` holds a sound schedule, which better
 * ones replace. A schedule of infinite makespan stands for none, and the first one found replaces
 * it. `ret_proved` is true when none is better, and false when the budget ran out first. TOO_MANY
 * means more than EXACT_TASKS or EXACT_PROCESSORS. */
enum scheduler_status exact_schedule(const struct workload *graph,
                                     const struct search_budget *budget, struct schedule *schedule,
                                     bool *ret_proved);

/* Improves a schedule by local search. `schedule` holds a sound schedule; the best one found
 * replaces it. The search stops early at `bound`, which no schedule can beat. With `is_contended`,
 * times are those of contention.h, for the given schedule, too. */
enum scheduler_status improve_schedule(const struct workload *graph,
                                       const struct search_budget *budget, uint64_t seed,
                                       double bound, bool is_contended, struct schedule *schedule);

#endif
