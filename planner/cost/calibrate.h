/* planner/cost/calibrate.h - what a device reaches, from a few operations whose time was measured
 * on it.
 *
 * For one class of operations the launch, the efficiencies and the halves of cost.h are sought that
 * fit all samples best: with r = measured / modelled, the sum of (max(r, 1 / r) - 1)^2 is least, so
 * that twice too slow counts as much as twice too fast and a short sample as much as a long one. A
 * pattern search (Hooke and Jeeves 1961): from several starts each figure, and each two together,
 * are made a little larger or smaller for as long as that helps, with ever smaller steps. The same
 * samples give the same calibration.
 *
 * What the samples do not show is not guessed: an extent that never differs has no half, and what
 * they are explained as well without, to 2 %, is left out: a roof that none of them touches is
 * taken to be reached whole. With fewer samples than CALIBRATE_HALVES for each, extents that differ
 * share one half. An outlier spoils a fit: of four samples of one operation or more, outliers are
 * left out by the rule of histories (history.h); of fewer, a sample should be the median of several
 * runs. Pure. */
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
    CALIBRATE_FEW,        /* or more than CALIBRATE_MOST */
    CALIBRATE_BAD_SAMPLE, /* of another class, a time that is none, or what the device cannot do */
};

/* Any status but OK leaves `ret_calibration` alone; `ret_sample` (may be NULL) is then which sample
 * is bad. */
enum calibrate_status calibrate(const struct device_profile *profile, enum operation_class of,
                                const struct calibrate_sample *samples, size_t count,
                                struct cost_calibration *ret_calibration, size_t *ret_sample);

#endif
