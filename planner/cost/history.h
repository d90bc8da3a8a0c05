/* A history keeps what a thing was measured to take, and weighs these measurements against a model.
 *
 * All samples of a history measure one quantity. They are nanoseconds of a program that is always
 * the same, or the time of an operation in millionths of its bound (cost.h). The shapes of such an
 * operation may differ a little. A history keeps the newest HISTORY_SAMPLES. So a device that
 * became slower is believed after half as many samples.
 *
 * A sample is an outlier when its distance from the median exceeds three times 1.4826 x MAD. MAD is
 * the median of all distances from the median. This is Hampel's identifier; the factor 1.4826 makes
 * MAD a standard deviation for normal samples. MAD counts as 2 % of the median at least. Otherwise,
 * where most samples are equal, every other sample would be an outlier.
 *
 * Among fewer than HISTORY_DOUBTED samples there are no outliers. If more than one sample in
 * HISTORY_OUTLIER_SHARE would be an outlier, then none is. So many samples are no slips but a mode
 * of their own, as when the devices of a class differ in speed. Outliers are left out at reading,
 * not at adding. If they were refused, a device that changed would never be believed.
 *
 * Against a model, the n remaining samples weigh n / (n + 4). All figures are integers. */
#ifndef BOURSE_PLANNER_COST_HISTORY_H
#define BOURSE_PLANNER_COST_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HISTORY_SAMPLES = 32,
    HISTORY_DOUBTED = 4,
    HISTORY_OUTLIER_SHARE = 4, /* at most one sample in so many is an outlier */
    HISTORY_MODEL_WEIGHT = 4,  /* weight of a model, in samples */
    HISTORY_P90_LEAST = 5,     /* with fewer samples there is no 90th percentile */
    HISTORY_KEEP_MOST = 256,
};
#define HISTORY_BOUND INT64_C(1000000) /* a sample that took exactly its bound */

struct history { /* begins as all zeros */
    int64_t samples[HISTORY_SAMPLES];
    uint32_t count; /* samples in use */
    uint32_t next;  /* index of the next sample */
};

struct history_summary {
    uint32_t count; /* samples that are no outliers; if 0, all fields are 0 */
    uint32_t outliers;
    int64_t median; /* even count: mean of the two in the middle, rounded down */
    /* Nine of ten samples took at most this (nearest rank); 0 below HISTORY_P90_LEAST samples. */
    int64_t p90;
};

/* Adds a sample. Returns false when the sample is not above 0; then nothing has changed. */
bool history_add(struct history *history, int64_t sample);

struct history_summary history_summarise(const struct history *history);

/* Returns how many of `count` sorted samples (at most HISTORY_KEEP_MOST, the least first) are no
 * outliers. The samples to keep begin at index `ret_first`. */
uint32_t history_keep(const int64_t *sorted, uint32_t count, uint32_t *ret_first);

/* Returns (n median + 4 model) / (n + 4), rounded up. Returns the median when there is no model
 * (0), and the model when there is no sample. */
int64_t history_blend(const struct history_summary *summary, int64_t model);

#endif
