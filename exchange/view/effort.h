/* exchange/view/effort.h - how far a device is from a requirement: which predicates would have to
 * turn over, at least. Sets of predicates are bits by index of the node. Requirements are well
 * formed. Pure. */
#ifndef BOURSE_EXCHANGE_VIEW_EFFORT_H
#define BOURSE_EXCHANGE_VIEW_EFFORT_H

#include "matching/book.h"

#include <assert.h>
#include <stddef.h>

static_assert(REQUIREMENT_NODES_MAX == 64, "a set is one word");

/* What it takes to have a tree hold, or not hold: so many predicates, these. */
struct effort {
    uint32_t hold, fail;
    uint64_t hold_set, fail_set;
};

/* Of a device of which these hold, and no others. It satisfies the tree when nothing has to turn
 * over. */
struct effort effort_of(const struct requirement *needs, uint64_t truth);

#endif
