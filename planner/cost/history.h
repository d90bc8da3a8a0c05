/* planner/cost/history.h - what a thing was measured to take, and what that says against a model.
 *
 * The samples are of one quantity: nanoseconds of a program that is always the same, or, of an
 * operation whose shapes differ a little, how many millionths of its bound (cost.h) it took. The
 * newest HISTORY_SAMPLES are kept, so that a device that became slower is believed after half as
 * many.
 *
 * A sample is an outlier when it is further from the median than three times 1.4826 x MAD, the
 * median of all distances from it (Hampel's identifier; 1.4826 makes MAD a standard deviation of
 * normal samples). MAD counts as 2 % of the median at least, so that where most samples are equal
 * the others are no outliers yet. Of fewer than HISTORY_DOUBTED samples none is one, and where more
 * than one in HISTORY_STRANGERS would be none is: so many are no slips but a mode of their own, as
 * where devices of a class are of unlike speeds. Outliers are left out when it is read, not when it
 * is added: were they refused, a device that changed would never be believed.
 *
 * Against a model the n samples that are left weigh n / (n + 4). Integers only. Pure data. */
#ifndef BOURSE_PLANNER_COST_HISTORY_H
#define BOURSE_PLANNER_COST_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HISTORY_SAMPLES = 32,
    HISTORY_DOUBTED = 4,
    HISTORY_STRANGERS = 4,    /* at most one sample in so many is an outlier */
    HISTORY_MODEL_WEIGHT = 4, /* samples that a model is worth */
    HISTORY_P90_LEAST = 5,    /* samples without which there is no 90th percentile */
    HISTORY_KEEP_MOST = 256,
};
#define HISTORY_BOUND INT64_C(1000000) /* a sample that took its bound */

struct history { /* begins as all zeros */
    int64_t samples[HISTORY_SAMPLES];
    uint32_t count; /* in use */
    uint32_t next;  /* where the next goes */
};

struct history_summary {
    uint32_t count; /* samples that are no outliers; of none, all is 0 */
    uint32_t outliers;
    int64_t median; /* of the count; of an even one, between the two in the middle, rounded down */
    int64_t p90;    /* so many of ten took at most that (nearest rank); 0 below HISTORY_P90_LEAST */
};

/* False: it is not above 0, and is not added. */
bool history_add(struct history *history, int64_t sample);

struct history_summary history_summarise(const struct history *history);

/* How many of `count` samples, at most HISTORY_KEEP_MOST and the least first, are no outliers;
 * these begin at `ret_first`. */
uint32_t history_keep(const int64_t *sorted, uint32_t count, uint32_t *ret_first);

/* (n median + 4 model) / (n + 4), rounded up; without a model (0) the median, without a sample the
 * model. */
int64_t history_blend(const struct history_summary *summary, int64_t model);

#endif
