/* consumer/market/history.h applies the market's measured times to the work of a job. The header is
 * not installed. */
#ifndef BOURSE_CONSUMER_MARKET_HISTORY_H
#define BOURSE_CONSUMER_MARKET_HISTORY_H

#include "consumer/job/bourse_job.h"

/* Asks the market once for each job, and sets the expected time of each part whose work is known. A
 * median of n samples weighs n / (n + 4) against the job's own figure (planner/cost/history.h), or
 * counts alone without one. The ranks of tasks follow. The job keeps its own figures when the
 * market knows nothing. Returns false when the broker does not answer. */
bool history_learn(struct bourse *bourse, struct bourse_job *job, struct bourse_error *error);

/* A figure is the time of one subtask of a unit on devices of a class. Units are the subtasks when
 * each has a time of its own, else the parts. */
struct history_figure {
    int64_t takes_ns;
    int64_t p90_ns;   /* 90 % of the samples took at most this; -1: unknown for some */
    uint64_t samples; /* samples of the work with most; 0: nothing was measured */
    bool is_at_pace;  /* the figure comes from the class, scaled by the device's pace */
};
bool history_is_by_subtask(const struct bourse_job *job);
size_t history_units(const struct bourse_job *job);
/* A kind groups devices with the same expected time: a class, or one device with figures of its
 * own. */
struct history_kind {
    const char *device_class; /* instrument; "" in the first kind, which is all devices */
    /* Provider's key and device's id, as in market lists; "": the whole class. */
    const char *account, *device;
};
/* Asks the market for devices whose speed differs from their class, at this job's work or at all
 * work. Returns false when the broker does not answer or memory is short. */
typedef bool history_device_visitor(void *context, const char *account, const char *device,
                                    uint32_t pace); /* 0: this row has no pace */
bool history_unlike(struct bourse *bourse, const struct bourse_job *job,
                    history_device_visitor *visitor, void *context, struct bourse_error *error);
/* Asks the market for the measured times of the job's work on devices of these kinds; the first
 * kind stands for all devices. The caller has called history_learn, which weighs alike. The call
 * changes figures[class * units + unit] where something was measured; the caller fills the other
 * figures beforehand. Returns false when the broker does not answer or memory is short. */
bool history_by_class(struct bourse *bourse, const struct bourse_job *job,
                      const struct history_kind *kinds, size_t kind_count,
                      struct history_figure *figures, struct bourse_error *error);

struct history_tile { /* measured times of one shape on one class of devices */
    uint64_t rows, columns;
    const char *device_class; /* instrument; lives as long as the call */
    uint32_t samples;
    int64_t median_ns;
    int64_t p90_ns; /* -1: too few samples */
};
/* Returns false to stop. */
typedef bool history_tile_visitor(void *context, const struct history_tile *tile);
/* Visits the measured times of tiles of a float32 product. The tiles are those of grids up to
 * HISTORY_GRID x HISTORY_GRID. */
enum { HISTORY_GRID = 32 };
bool history_tiles(struct bourse *bourse, uint64_t rows, uint64_t inner, uint64_t columns,
                   history_tile_visitor *visitor, void *context, struct bourse_error *error);

#endif
