/* planner/cost/profile.h - how fast a device is, figure by figure, and where each figure comes
 * from.
 *
 * A figure that nobody gives is unknown: it is never zero and never guessed, and whoever needs it
 * says so. All are in plain units: operations, bytes and watts, per second where they are rates.
 * Peaks are dense: what sparse operands would add stands apart (FIGURE_SPARSITY). Pure data. */
#ifndef BOURSE_PLANNER_COST_PROFILE_H
#define BOURSE_PLANNER_COST_PROFILE_H

#include <stdbool.h>

enum figure_source {                    /* by how much they are worth */
                     FIGURE_UNKNOWN,    /* no value */
                     FIGURE_DECLARED,   /* by a vendor or a paper */
                     FIGURE_CALIBRATED, /* by a model that was fitted to measurements on the device
                                         */
                     FIGURE_MEASURED,   /* on the device itself */
};

struct figure {
    double value; /* 0 when unknown */
    enum figure_source source;
    bool unverified; /* declared, and not confirmed */
};

enum profile_figure {
    FIGURE_FP64,        /* operations per second: vector units */
    FIGURE_FP64_MATRIX, /* matrix units, as all peaks below where there are any */
    FIGURE_FP32,
    FIGURE_TF32,
    FIGURE_FP16,
    FIGURE_BF16,
    FIGURE_FP8,
    FIGURE_INT8,
    FIGURE_INT4,
    FIGURE_SPARSITY, /* factor on the peaks for operands that are 2:4 sparse */
    FIGURE_MEMORY,   /* bytes */
    FIGURE_BANDWIDTH,
    FIGURE_POWER, /* watts at full load */
    FIGURE_INTERCONNECT,
    PROFILE_FIGURES,
};

struct device_profile {
    struct figure figures[PROFILE_FIGURES];
};

#endif
