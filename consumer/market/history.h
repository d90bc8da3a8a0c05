/* consumer/market/history.h applies the market's measured times to the work of a job. The header is
 * not installed. */
#ifndef BOURSE_CONSUMER_MARKET_HISTORY_H
#define BOURSE_CONSUMER_MARKET_HISTORY_H

#include "consumer/job/bourse_job.h"
#include "planner/cost/measured_times.h"

/* The most subtasks of a job to look at; a larger job is sampled. */
enum { HISTORY_LOOKED_AT = 1 << 16 };

/* Asks the market once for each job, keeps the times in job->learned, and sets the expected time of
 * each part whose work is known. A median of n samples weighs n / (n + 4) against the job's own
 * figure (planner/cost/history.h), or counts alone without one. The ranks of tasks follow. The job
 * keeps its own figures when the market knows nothing. Returns false when the broker does not
 * answer. */
bool history_learn(struct bourse *bourse, struct bourse_job *job, struct bourse_error *error);

/* A figure is the time of one subtask of a unit on one kind of devices. Units are the subtasks when
 * each has a time of its own, else the parts. */
struct history_figure {
    int64_t takes_ns;
    int64_t p90_ns;   /* 90 % of the samples took at most this; -1: unknown for some */
    uint64_t samples; /* samples of the work with most; 0: nothing was measured */
    bool is_at_pace;  /* the figure comes from the class, scaled by the device's pace */
};
bool history_is_by_subtask(const struct bourse_job *job);
size_t history_units(const struct bourse_job *job);
/* Reads the times that history_learn kept, for devices of these kinds; the first kind stands for
 * all devices. Changes figures[kind * units + unit] where something was measured; the caller fills
 * the other figures beforehand. Returns false when memory is short. */
bool history_by_kind(const struct bourse_job *job, const struct measured_kind *kinds,
                     size_t kind_count, struct history_figure *figures, struct bourse_error *error);

#endif
