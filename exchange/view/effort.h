/* The effort is the least number of predicates that must turn over until a device satisfies a
 * requirement. Sets of predicates are bits by index of the node. Requirements are well formed. */
#ifndef BOURSE_EXCHANGE_VIEW_EFFORT_H
#define BOURSE_EXCHANGE_VIEW_EFFORT_H

#include "matching/book.h"

#include <assert.h>
#include <stddef.h>

static_assert(REQUIREMENT_NODES_MAX == 64, "a set is one word");

/* An effort is the least number and set of predicates that make a tree hold, or fail. */
struct effort {
    uint32_t hold, fail;
    uint64_t hold_set, fail_set;
};

/* Returns the effort of a device for which exactly the predicates of `truth` hold. The device
 * satisfies the tree when `hold` is 0. */
struct effort effort_of(const struct requirement *needs, uint64_t truth);

#endif
