/* This module makes every plan. Steps get the best layout (layout/plan.h). The parts of a job get
 * the schedule that follows from the rules of the exchange (list_schedule.h). */
#ifndef BOURSE_PLANNER_PLAN_PLAN_MAKE_H
#define BOURSE_PLANNER_PLAN_PLAN_MAKE_H

#include "planner/layout/plan.h"
#include "planner/schedule/list_schedule.h"

/* A job as the exchange would run it. No objective and no limit changes that. */
struct plan_parts {
    struct list_schedule_input schedule; /* the parts, their times and graph, and the devices */
    /* Times that nine of ten runs take at most, like `schedule.takes_ns`; NULL: unknown. */
    const int64_t *p90_ns;
    const struct figure *slot_w; /* watts of a slot at full load, by device; NULL: unknown */
    /* Slots of one device, where a device of the schedule is a place of several. They count for the
     * best single device only; 0: unknown. NULL: each place is one device. */
    const uint32_t *single_slots;
    bool finds_single; /* the best single device is asked for, which costs a few schedules more */
};

/* The caller keeps the work; the plan keeps nothing of it. */
struct plan_work { /* one of the two; the other is NULL */
    const struct plan_input *steps;
    const struct plan_parts *parts;
};

/* Makes a plan, which the caller owns. Any status but OK gives none, and `ret_fault` says why. A
 * job that takes or costs more than int64 holds is BAD_INPUT. */
enum plan_status plan_make(const struct plan_work *work, struct plan **ret_plan,
                           struct plan_fault *ret_fault);

/* Times of a job are whole nanoseconds. These return them, exact in plans of up to 26 days. */
int64_t plan_ns(double seconds);                 /* `seconds` is not negative */
int64_t plan_row_ns(const struct plan_row *row); /* from start to finish */
int64_t plan_busy_ns(const struct plan *plan);   /* the sum of all rows */
int64_t plan_makespan_ns(const struct plan *plan);
/* Returns plan_busy_ns as a share of all lanes for all of the time, in millionths. */
int64_t plan_share_ppm(const struct plan *plan);
/* Returns the share of a device in whole percent, rounded down. */
int plan_use_percent(const struct plan_use *use);

#endif
