/* consumer/command/plan/samples.h reads measured times of operations on one device, for `devices
 * --samples FILE` and `plan TEMPLATE --samples DEVICE=FILE`.
 *
 *     # operation                          time
 *     matmul:4096x4096x4096:bf16           195us
 *     copy:100000000:bf16                  138us
 *
 * A line has one sample. Blanks around a sample, empty lines, and lines that begin with # do not
 * count. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_SAMPLES_H
#define BOURSE_CONSUMER_COMMAND_PLAN_SAMPLES_H

#include "base/problem.h"
#include "planner/cost/calibrate.h"

enum { SAMPLES_MOST = 1024, SAMPLES_BYTES_MOST = 256 * 1024 };

struct samples {
    const char *path; /* for messages; the caller owns it */
    struct calibrate_sample rows[SAMPLES_MOST];
    size_t lines[SAMPLES_MOST]; /* line in the file, from 1 */
    size_t count;
};

/* Reads a file. Returns false and a problem with the line: "FILE:3: ...". The samples borrow
 * `path`. */
bool samples_read(const char *path, struct samples *ret_samples, struct problem *ret_problem);

/* Calibrates a class of operations with the samples of the class. Without such samples there is no
 * calibration, and the call returns true. Returns false and a problem when they are too few, or
 * when one is impossible on the device. */
bool samples_calibrate(const struct samples *samples, const struct device_profile *profile,
                       enum operation_class class, struct cost_calibration *ret_calibration,
                       struct problem *ret_problem);

/* Adds the samples of the very same operation to its history, in millionths of its bound on
 * `profile`. */
void samples_remember(const struct samples *samples, const struct device_profile *profile,
                      const struct operation *operation, struct history *ret_history);

#endif
