/* provider/session/fault_rule.h decides when a device that fails again and again is withheld, and
 * when it is tried again.
 *
 *     OFFERED -> WITHHELD       FAULT_RULE_MOST failures in a row, all of the device's own
 *     WITHHELD -> TRYING        the wait is over
 *     TRYING -> OFFERED         the trial passed
 *     TRYING -> WITHHELD        the trial failed, and the wait is twice as long
 *
 * A failure of the job's program is none of the device's: it neither counts nor ends a row. Work
 * that was done ends the row. A device may pass its trial and fail the next work. So the wait stays
 * as long as it was until the device has done work. The time is an argument; this file reads no
 * clock. */
#ifndef BOURSE_PROVIDER_SESSION_FAULT_RULE_H
#define BOURSE_PROVIDER_SESSION_FAULT_RULE_H

#include "provider/session/device_fault.h"

#include <stdbool.h>
#include <stdint.h>

enum { FAULT_RULE_MOST = 3, FAULT_RULE_CAUSE_SIZE = 256 };
/* The wait before the first trial, and the longest one. */
#define FAULT_RULE_FIRST_NS INT64_C(60000000000)
#define FAULT_RULE_LONGEST_NS INT64_C(3600000000000)

/* The rule of one device; all zeros at the start. */
struct fault_rule {
    uint32_t failures; /* in a row */
    bool is_withheld, is_trying;
    int64_t wait_ns;  /* the last wait; 0: none since the device has done work */
    int64_t trial_ns; /* of a withheld device: when the next trial begins */
    uint32_t trials;  /* that failed since the device is withheld */
    enum device_fault fault;
    char cause[FAULT_RULE_CAUSE_SIZE]; /* the text of the last failure, or of the last trial */
};

/* The device failed, by its own fault (not DEVICE_FAULT_NONE). Returns true when the device is
 * withheld from now on. Failures of a withheld device are those of work that ran on; they do not
 * count. */
bool fault_rule_fail(struct fault_rule *rule, int64_t now_ns, enum device_fault fault,
                     const char *cause);
/* The device did its work. */
void fault_rule_work(struct fault_rule *rule);

/* Returns the time at which a trial is due, INT64_MAX when none is. */
int64_t fault_rule_due_ns(const struct fault_rule *rule);
/* The trial begins, which is due. */
void fault_rule_try(struct fault_rule *rule);
/* The trial ended: it passed, or failed by `cause`. Returns true when the device is offered again.
 */
bool fault_rule_tried(struct fault_rule *rule, int64_t now_ns, bool has_passed, const char *cause);

/* Returns the word of a fault for a machine, such as "lost", and what its owner can do, as a clause
 * without a full stop. */
const char *fault_rule_word(enum device_fault fault);
const char *fault_rule_advice(enum device_fault fault);

#endif
