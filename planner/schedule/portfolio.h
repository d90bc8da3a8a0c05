/* The portfolio takes the best schedule of all schedulers. It reports the largest possible distance
 * from the optimum, and the time of the single best processor. The result is never worse than HEFT
 * or any single processor. */
#ifndef BOURSE_PLANNER_SCHEDULE_PORTFOLIO_H
#define BOURSE_PLANNER_SCHEDULE_PORTFOLIO_H

#include "planner/schedule/schedulers.h"

enum portfolio_method {
    PORTFOLIO_HEFT,
    PORTFOLIO_PEFT,
    PORTFOLIO_CPOP,
    PORTFOLIO_HEFT_BEST, /* HEFT with best-case ranks */
    PORTFOLIO_HEFT_FEW,  /* HEFT on the fastest 2, 4, 8 ... processors */
    PORTFOLIO_SINGLE,
    PORTFOLIO_ALL_BEST,
    PORTFOLIO_CLUSTER,
    PORTFOLIO_IMPROVE, /* local search from the best of the above */
    PORTFOLIO_EXACT,
    PORTFOLIO_METHODS,
};

/* Returns the name of a method, such as "heft-best". */
const char *portfolio_name(enum portfolio_method method);

#define PORTFOLIO_EXACT_STEPS UINT64_C(100000000)
#define PORTFOLIO_PROOF_STEPS UINT64_C(4000000000) /* steps for callers that want a proof */
#define PORTFOLIO_IMPROVE_STEPS UINT64_C(10000000)

struct portfolio_options {
    bool no_exact;
    /* Links carry one transfer at a time (contention.h). The schedulers ignore this; the best of
     * their schedules under contention is kept. There is no exact search. */
    bool is_contended;
    uint64_t exact_steps, improve_steps; /* see struct search_budget; 0: none */
    uint64_t seed;
    bool (*stop)(void *context); /* ends the searches; NULL: the steps alone do */
    void *context;
};

/* Returns the defaults of the command line and of tests. */
struct portfolio_options portfolio_defaults(void);

struct portfolio {
    enum portfolio_method found_by;
    double makespans[PORTFOLIO_METHODS]; /* infinite: not tried, or nothing found */
    double bound;                        /* at most the makespan */
    bool is_proved;                      /* bound and makespan are the same, so none is better */
};

/* Computes the best schedule; `schedule` has room for the graph's tasks. NOWHERE means that no
 * scheduler found a processor for every task. The gap is makespan / bound - 1. */
enum scheduler_status portfolio_schedule(const struct workload *graph,
                                         const struct portfolio_options *options,
                                         struct schedule *schedule,
                                         struct portfolio *ret_portfolio);

/* Computes the schedule of one method alone, with the same bound. EXACT and IMPROVE begin with the
 * best of the others. */
enum scheduler_status portfolio_single_method(const struct workload *graph,
                                              enum portfolio_method method,
                                              const struct portfolio_options *options,
                                              struct schedule *schedule,
                                              struct portfolio *ret_portfolio);

#endif
