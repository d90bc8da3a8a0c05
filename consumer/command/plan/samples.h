/* consumer/command/plan/samples.h - `devices --samples FILE`, `plan TEMPLATE --samples
 * DEVICE=FILE`: times that operations were measured to take on one device.
 *
 *     # operation                          time
 *     matmul:4096x4096x4096:bf16           195us
 *     copy:100000000:bf16                  138us
 *
 * One sample a line; blanks around it and lines that are empty or begin with # do not count. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_SAMPLES_H
#define BOURSE_CONSUMER_COMMAND_PLAN_SAMPLES_H

#include "base/problem.h"
#include "planner/cost/calibrate.h"

enum { SAMPLES_MOST = 1024, SAMPLES_BYTES_MOST = 256 * 1024 };

struct samples {
    const char *path; /* for what is said of them; the caller's */
    struct calibrate_sample rows[SAMPLES_MOST];
    size_t lines[SAMPLES_MOST]; /* of the file, from 1 */
    size_t count;
};

/* False with what is wrong, and in which line: "FILE:3: ...". `path` is borrowed. */
bool samples_read(const char *path, struct samples *ret_samples, struct problem *ret_problem);

/* Those of one class calibrate it. None of that class: no calibration, and true. False with what is
 * wrong with them: too few, or one that the device could not do. */
bool samples_calibrate(const struct samples *samples, const struct device_profile *profile,
                       enum operation_class class, struct cost_calibration *ret_calibration,
                       struct problem *ret_problem);

/* Those of the very same operation are its history, in millionths of its bound on `profile`. */
void samples_remember(const struct samples *samples, const struct device_profile *profile,
                      const struct operation *operation, struct history *ret_history);

#endif
