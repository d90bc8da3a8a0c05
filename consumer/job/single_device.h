/* consumer/job/single_device.h finds a single device that would finish a job sooner than the slots
 * that the market gives, which go by price and time. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_SINGLE_DEVICE_H
#define BOURSE_CONSUMER_JOB_SINGLE_DEVICE_H

#include "consumer/job/supply.h"
#include "planner/plan/plan_make.h"

/* Looks at the best single device of a plan on the places as the market gives them. Writes
 * *ret_alone when the device is sooner by 5 % at least, within cap and budget, and has a unique
 * label among fitting devices. Returns false when the broker does not answer or memory is short. */
bool single_device_find(struct bourse *bourse, const struct bourse_job *job,
                        const struct supply *supply, const struct plan *plan,
                        struct bourse_alone *ret_alone, struct bourse_error *error);

#endif
