/* consumer/market/history.h - what the work of a job was measured to take on this market, and what
 * that says of the job. Not installed. */
#ifndef BOURSE_CONSUMER_MARKET_HISTORY_H
#define BOURSE_CONSUMER_MARKET_HISTORY_H

#include "consumer/job/bourse_job.h"

/* Asks the market, once for each job, and where it knows the work of subtasks, expects of each part
 * what they took: the median of n samples weighs n / (n + 4) against what the job says
 * (planner/cost/history.h), and all where it says nothing. Ranks of tasks follow. A market that
 * cannot tell is no failure: the job is then expected to take what it says. False: the broker does
 * not answer. */
bool history_learn(struct bourse *bourse, struct bourse_job *job, struct bourse_error *error);

/* What one subtask of a unit takes on devices of a class. Units are the subtasks, where what each
 * takes is said or known apart, else the parts. */
struct history_figure {
    int64_t takes_ns;
    int64_t p90_ns;   /* so much nine of ten took at most; -1: not known of all that was measured */
    uint64_t samples; /* of the work with most; 0: nothing was measured there */
    bool is_at_pace;  /* it was measured on others of the class: times how much slower the device is
                         at all work */
};
bool history_is_by_subtask(const struct bourse_job *job);
size_t history_units(const struct bourse_job *job);
/* Devices that are expected to take the same: those of a class, or one of them, of which that is
 * known which its class does not say. */
struct history_kind {
    const char *device_class;     /* instrument; the first kind, of all devices: "" */
    const char *account, *device; /* the provider's key and the device's id, as market lists have
                                     them; "": all of the class */
};
/* Asks the market which devices are not of the speed of their class, at the work of this job or at
 * all work. False: the broker does not answer, or there is no memory. */
typedef bool history_device_visitor(void *context, const char *account, const char *device,
                                    uint32_t pace); /* 0: this row does not say */
bool history_unlike(struct bourse *bourse, const struct bourse_job *job,
                    history_device_visitor *visitor, void *context, struct bourse_error *error);
/* Asks the market what the work of the job took on devices of these kinds, of which the first
 * stands for all devices, and weighs it as history_learn does, which was before. Changes [class *
 * units + unit] where something was measured; the caller has there what is expected where nothing
 * was. False: the broker does not answer, or there is no memory. */
bool history_by_class(struct bourse *bourse, const struct bourse_job *job,
                      const struct history_kind *kinds, size_t kind_count,
                      struct history_figure *figures, struct bourse_error *error);

struct history_tile { /* what tiles of one shape took on devices of one class */
    uint64_t rows, columns;
    const char *device_class; /* instrument; lives as long as the call */
    uint32_t samples;
    int64_t median_ns;
    int64_t p90_ns; /* -1: too few to say */
};
/* False: stopped. */
typedef bool history_tile_visitor(void *context, const struct history_tile *tile);
/* What tiles of such products, of float32, were measured to take on this market: of those that such
 * a product is cut into by grids of up to HISTORY_GRID x HISTORY_GRID. */
enum { HISTORY_GRID = 32 };
bool history_tiles(struct bourse *bourse, uint64_t rows, uint64_t inner, uint64_t columns,
                   history_tile_visitor *visitor, void *context, struct bourse_error *error);

#endif
