/* A subtask is late on a device when it is known that the subtask cannot end there before the
 * deadline of its job. Such a subtask is not started there, and its job takes no slots for it.
 *
 * What is known of a subtask is the least time that it may take. Subtasks that are alike take as
 * long as the quickest result of their part took on the device, else on a device with the same
 * attributes. A subtask with an expectation of its own takes this time at the pace of the results
 * there. Where no result tells, the time that the job states counts, unless results elsewhere were
 * quicker. A guess is no statement, nor is a mean of earlier jobs. A subtask of which nothing is
 * known is never late.
 *
 * The functions read and decide nothing. */
#ifndef BOURSE_EXCHANGE_WORK_CHOICE_LATENESS_H
#define BOURSE_EXCHANGE_WORK_CHOICE_LATENESS_H

#include "exchange/state/records.h"
#include "planner/schedule/online.h"

/* The struct says what a device, or a lane, can still end before the deadline. */
struct lateness {
    const struct exchange *exchange; /* counts the steps of looks */
    bool is_bound;                   /* false: no subtask of the part is ever late */
    bool is_apart;                   /* subtasks have expectations of their own */
    int64_t left_ns;                 /* time until the deadline */
    int64_t takes_ns;                /* alike subtasks: the least time of one; 0: unknown */
    struct online_pace pace;         /* of subtasks with expectations */
};

/* Returns true when the market's rules keep late subtasks from starting. */
bool lateness_in_force(const struct exchange *exchange);
/* Returns what the device can end for the part, as a new lease there would begin. */
struct lateness lateness_on(const struct exchange *exchange, const struct part *part,
                            const struct device *device);
/* Returns what an idle lane of the lease can end. The lease's own results count first. */
struct lateness lateness_of(const struct exchange *exchange, const struct lease *lease);
/* Returns what may be given to a lane behind `in_flight` attempts. A subtask is queued only while
 * twice the time is there that it and those before it take, because nobody knows when it begins. */
struct lateness lateness_behind(struct lateness late, uint32_t in_flight);
/* Returns the least time that the subtask takes; 0: unknown. */
int64_t lateness_takes_ns(const struct lateness *late, const struct job *job, uint32_t index);
bool lateness_is_late(const struct lateness *late, const struct job *job, uint32_t index);
/* Returns the least time of a subtask of the part that waits; 0: unknown. */
int64_t lateness_least_ns(const struct lateness *late, const struct part *part);
/* Returns true when a subtask of the part waits that is not late. */
bool lateness_leaves_work(const struct lateness *late, const struct part *part);
/* Returns true when all that waits in the part would be late on the device. */
bool lateness_rules_out(const struct exchange *exchange, const struct part *part,
                        const struct device *device);

#endif
