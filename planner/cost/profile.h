/* A profile says how fast a device is, figure by figure, and where each figure comes from.
 *
 * A figure without a source is unknown. It is never zero and never guessed, and code that needs it
 * reports the gap. All figures are in plain units: operations, bytes and watts, per second where
 * they are rates. Peaks are for dense operands; FIGURE_SPARSITY holds the gain of sparse ones. */
#ifndef BOURSE_PLANNER_COST_PROFILE_H
#define BOURSE_PLANNER_COST_PROFILE_H

#include <stdbool.h>

/* Sources of a figure, in rising order of trust. */
enum figure_source {
    FIGURE_UNKNOWN,    /* no value */
    FIGURE_DECLARED,   /* declared by a vendor or a paper */
    FIGURE_CALIBRATED, /* computed by a model fitted to measurements */
    FIGURE_MEASURED,   /* measured on the device itself */
};

struct figure {
    double value; /* 0 when unknown */
    enum figure_source source;
    bool unverified; /* declared and not confirmed */
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
    FIGURE_SPARSITY, /* factor on the peaks for 2:4 sparse operands */
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
