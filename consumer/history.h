/* consumer/history.h - what the work of a job was measured to take on this market, and what that says of the job. Not installed. */
#ifndef BOURSE_CONSUMER_HISTORY_H
#define BOURSE_CONSUMER_HISTORY_H

#include "consumer/prepare.h"

/* Asks the market, once for each job, and where it knows the work of subtasks, expects of each part what they took: the median of n
 * samples weighs n / (n + 4) against what the job says (planner/history.h), and all where it says nothing. Ranks of tasks follow. A market
 * that cannot tell is no failure: the job is then expected to take what it says. False: the broker does not answer. */
bool history_learn(struct bourse *bourse, struct bourse_job *job, struct bourse_error *error);

struct history_tile { /* what tiles of one shape took on devices of one class */
    uint64_t rows, columns;
    const char *device_class; /* instrument; lives as long as the call */
    uint32_t samples;
    int64_t median_ns;
    int64_t p90_ns; /* -1: too few to say */
};
/* False: stopped. */
typedef bool history_tile_visitor(void *context, const struct history_tile *tile);
/* What tiles of such products, of float32, were measured to take on this market: of those that such a product is cut into by grids of up to
 * HISTORY_GRID x HISTORY_GRID. */
enum { HISTORY_GRID = 32 };
bool history_tiles(struct bourse *bourse, uint64_t rows, uint64_t inner, uint64_t columns,
                   history_tile_visitor *visitor, void *context, struct bourse_error *error);

#endif
