/* The estimate says what a job of equal subtasks should cost and take, before money moves.
 *
 * The market offers levels: a number of slots at a price. A lane is `width` slots of one level, and
 * runs one subtask at a time. The cheapest lanes are taken first, as many as the job may use.
 * Subtasks are assigned round by round, cheapest lane first, so lanes differ by one subtask at
 * most.
 *
 *     level 0.02   lane 1 |####|####|####|        7 subtasks, 3 lanes: 3 rounds
 *     level 0.02   lane 2 |####|####|
 *     level 0.05   lane 3 |####|####|
 *
 * Rounding: lanes = floor(slots / width) per level. The cost of each level is rounded up to 1
 * micro-credit. The broker rounds down, so the sum is never below what the broker charges for the
 * same time. A level is taken to be one device. When a level is several devices, there may be fewer
 * lanes than computed here. All figures are integers. */
#ifndef BOURSE_PLANNER_COST_ESTIMATE_H
#define BOURSE_PLANNER_COST_ESTIMATE_H

#include <stddef.h>
#include <stdint.h>

struct estimate_level {
    int64_t price_micro; /* per slot-hour, >= 0 */
    uint32_t slots;
};

struct estimate_job {
    uint64_t subtasks; /* >= 1 */
    uint32_t width;    /* slots of one subtask, >= 1 */
    uint32_t at_most;  /* slots at a time; 0: no bound */
    int64_t cap_micro; /* highest price; negative: none */
    int64_t expect_ns; /* time of one subtask, >= 1 */
};

struct estimate_row {   /* the part of the job on one level */
    uint32_t lanes;     /* used */
    uint64_t subtasks;  /* run there */
    int64_t busy_ns;    /* sum over its lanes */
    int64_t cost_micro; /* rounded up */
};

struct estimate {
    uint64_t lanes;
    uint64_t rounds;        /* ceil(subtasks / lanes) */
    int64_t makespan_ns;    /* rounds x expect_ns, from the first start */
    int64_t lower_bound_ns; /* ceil(subtasks x expect_ns / lanes), at least expect_ns */
    int64_t busy_ns;        /* sum over all lanes */
    int64_t cost_micro;     /* sum of the rows */
};

enum estimate_status {
    ESTIMATE_OK,
    ESTIMATE_BAD_INPUT, /* a zero, a negative price, or prices that do not rise */
    ESTIMATE_NO_LANE,   /* no level under the cap is wide enough, or at_most < width */
    ESTIMATE_OVERFLOW,  /* more time or money than int64 holds */
};

/* Computes the estimate. `levels` stand by rising price, and `ret_rows` has room for as many rows.
 * Any status but OK leaves both outputs without meaning. */
enum estimate_status estimate_make(const struct estimate_job *job,
                                   const struct estimate_level *levels, size_t level_count,
                                   struct estimate_row *ret_rows, struct estimate *ret_estimate);

#endif
