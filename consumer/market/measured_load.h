/* consumer/market/measured_load.h asks the market for the measured times of works. The answers are
 * in planner/cost/measured_times.h. The header is not installed. */
#ifndef BOURSE_CONSUMER_MARKET_MEASURED_LOAD_H
#define BOURSE_CONSUMER_MARKET_MEASURED_LOAD_H

#include "base/id.h"
#include "consumer/client/bourse.h"
#include "planner/cost/measured_times.h"

/* Works by their number, which the rows of the times have. */
struct measured_works {
    struct hash32 names[MEASURED_WORKS];
    uint32_t first[MEASURED_WORKS]; /* first subtask with the work */
    size_t count;
};

/* Adds a work that is not there yet. Works beyond MEASURED_WORKS are left out. */
void measured_works_add(struct measured_works *works, const struct hash32 *name, uint32_t index);
/* Returns the number of the work, or `count`. */
size_t measured_works_find(const struct measured_works *works, const struct hash32 *name);

/* Loads all that the market measured of these works. The caller owns the times. Returns false when
 * the broker does not answer or refuses, or memory is short. */
bool measured_load(struct bourse *bourse, const struct measured_works *works,
                   struct measured_times **ret_times, struct bourse_error *error);

#endif
