/* This file checks a schedule against everything that the graph says. */
#ifndef BOURSE_TESTS_SUPPORT_SCHEDULE_VERIFY_H
#define BOURSE_TESTS_SUPPORT_SCHEDULE_VERIFY_H

#include "planner/schedule/schedule.h"

enum schedule_flaw {
    SCHEDULE_SOUND,
    SCHEDULE_WRONG_PROCESSOR, /* missing processor, or one that cannot run the task */
    SCHEDULE_WRONG_TIME,      /* starts before 0, or finish is not start + cost */
    /* The task starts before an edge has brought its bytes, or no link could bring them. */
    SCHEDULE_TOO_EARLY,
    SCHEDULE_OVERLAP, /* two tasks run at a time on one processor */
    SCHEDULE_WRONG_MAKESPAN,
    SCHEDULE_UNCHECKED, /* there is no memory for the check */
};

/* Checks the schedule against everything that the graph says, to the last bit. *ret_task is the
 * first wrong task in topological order, or WORKLOAD_NONE when no task in particular is wrong. */
enum schedule_flaw schedule_verify(const struct workload *graph, const struct schedule *schedule,
                                   uint32_t *ret_task);

#endif
