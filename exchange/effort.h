/* exchange/effort.h - how far a device is from a requirement: which predicates would have to turn over, at least. Sets of
 * predicates are bits by index of the node. Requirements are well formed. Pure. */
#ifndef BOURSE_EXCHANGE_EFFORT_H
#define BOURSE_EXCHANGE_EFFORT_H

#include "matching/book.h"

#include <assert.h>
#include <stddef.h>

static_assert(REQUIREMENT_NODES_MAX == 64, "a set is one word");

/* What it takes to have a tree hold, or not hold: so many predicates, these. */
struct effort {
    uint32_t hold, fail;
    uint64_t hold_set, fail_set;
};

/* A requirement made ready to be held against many devices. */
struct effort_plan {
    const struct requirement *needs; /* borrowed */
    uint32_t count;
    uint32_t order[REQUIREMENT_NODES_MAX];                  /* its predicates, by name */
    struct attribute_digest digests[REQUIREMENT_NODES_MAX]; /* in that order */
    bool is_repeated[REQUIREMENT_NODES_MAX];                /* of the name before it */
};
struct effort_plan effort_plan(const struct requirement *needs);
/* The predicates that hold of a device, whose attributes are sorted by name, their digests beside. `ret_first`, if not NULL, has for each of
 * them the first attribute of its name, and `count` where there is none. */
uint64_t effort_truth(const struct effort_plan *plan, const struct attribute *attributes,
                      const struct attribute_digest *digests, size_t count,
                      size_t ret_first[REQUIREMENT_NODES_MAX]);
/* Of a device of which these hold, and no others. It satisfies the tree when nothing has to turn over. */
struct effort effort_of(const struct requirement *needs, uint64_t truth);

#endif
