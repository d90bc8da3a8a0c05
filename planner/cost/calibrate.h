/* Calibration finds what a device really reaches, from a few operations whose time was measured on
 * the device.
 *
 * For one class of operations, the fit searches figures of cost.h: the launch, the efficiencies and
 * the halves. With r = measured / modelled, the fit minimises the sum of (max(r, 1 / r) - 1)^2. So
 * twice too slow counts as much as twice too fast, and a short sample counts as much as a long one.
 * The search is a pattern search (Hooke and Jeeves 1961). From several starts, each figure, and
 * each pair of figures, is made a little larger or smaller. A move is kept while it improves the
 * fit, and the steps become ever smaller. The same samples give the same calibration.
 *
 * The fit guesses nothing that the samples do not show. An extent that never differs has no half. A
 * figure is left out when the samples are explained as well without it, to 2 %. A roof that no
 * sample touches is taken to be reached in full. When there are fewer than CALIBRATE_HALVES samples
 * for each half, the extents that differ share one half.
 *
 * An outlier spoils a fit. Among four or more samples of one operation, the rule of histories
 * (history.h) leaves outliers out. With fewer samples, each sample should be the median of several
 * runs. */
#ifndef BOURSE_PLANNER_COST_CALIBRATE_H
#define BOURSE_PLANNER_COST_CALIBRATE_H

#include "planner/cost/cost.h"

#include <stddef.h>

enum {
    CALIBRATE_LEAST = 3,
    CALIBRATE_MOST = 256,
    CALIBRATE_HALVES = 4, /* samples for each half of its own */
};

struct calibrate_sample {
    struct operation operation;
    double seconds; /* above 0 */
};

enum calibrate_status {
    CALIBRATE_OK,
    CALIBRATE_FEW, /* fewer than CALIBRATE_LEAST samples, or more than CALIBRATE_MOST */
    /* A sample is of another class, its time is not positive, or the device cannot run it. */
    CALIBRATE_BAD_SAMPLE,
};

/* Fits the calibration of class `of` to the samples. Any status but OK leaves `ret_calibration`
 * alone. For BAD_SAMPLE, `ret_sample` (may be NULL) is the index of the bad sample. */
enum calibrate_status calibrate(const struct device_profile *profile, enum operation_class of,
                                const struct calibrate_sample *samples, size_t count,
                                struct cost_calibration *ret_calibration, size_t *ret_sample);

#endif
