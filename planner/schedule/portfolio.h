/* planner/schedule/portfolio.h - the best of all schedulers, how far from the best possible it can
 * be at most, and what the single best processor would have taken. It is never worse than HEFT or
 * any single processor. Pure. */
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
    PORTFOLIO_IMPROVE, /* local search from the best of those */
    PORTFOLIO_EXACT,
    PORTFOLIO_METHODS,
};

/* "heft-best" */
const char *portfolio_name(enum portfolio_method method);

#define PORTFOLIO_EXACT_STEPS UINT64_C(100000000)
#define PORTFOLIO_PROOF_STEPS UINT64_C(4000000000) /* where a proof is what is asked for */
#define PORTFOLIO_IMPROVE_STEPS UINT64_C(10000000)

struct portfolio_options {
    bool no_exact;
    bool is_contended; /* links carry one transfer at a time (contention.h): of what the schedulers
                         make, which know nothing of that, the best then is kept; no exact search */
    uint64_t exact_steps, improve_steps; /* see struct search_budget; 0: none of it */
    uint64_t seed;
    bool (*stop)(void *context); /* ends the searches; NULL: the steps alone do */
    void *context;
};

/* What the command line and tests begin with. */
struct portfolio_options portfolio_defaults(void);

struct portfolio {
    enum portfolio_method found_by;
    double makespans[PORTFOLIO_METHODS]; /* infinite: not tried, or found nothing */
    double bound;                        /* at most the makespan */
    bool is_proved;                      /* none is better: bound and makespan are the same */
};

/* The gap is makespan / bound - 1. */

/* `schedule` has room for the graph's tasks. NOWHERE: no scheduler found a processor for all of
 * them. */
enum scheduler_status portfolio_schedule(const struct workload *graph,
                                         const struct portfolio_options *options,
                                         struct schedule *schedule,
                                         struct portfolio *ret_portfolio);

/* The same by one method alone, with the same bound. EXACT and IMPROVE begin with the best of the
 * others. */
enum scheduler_status portfolio_single_method(const struct workload *graph,
                                              enum portfolio_method method,
                                              const struct portfolio_options *options,
                                              struct schedule *schedule,
                                              struct portfolio *ret_portfolio);

#endif
