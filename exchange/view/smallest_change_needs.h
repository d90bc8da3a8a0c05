/* The requirement of a candidate has some predicates changed or dropped. */
#ifndef BOURSE_EXCHANGE_VIEW_SMALLEST_CHANGE_NEEDS_H
#define BOURSE_EXCHANGE_VIEW_SMALLEST_CHANGE_NEEDS_H

#include "exchange/state/records.h"
#include "exchange/view/smallest_change_candidate.h"

/* Returns the predicates that may not change, as bits by index of the node. */
uint64_t smallest_change_fixed(const struct requirement *needs);
/* Finds the device's figure nearest to an ordering predicate: the largest for > and >=, the
 * smallest for < and <=. */
bool smallest_change_nearest(const struct exchange *exchange, const struct device *device,
                             const struct requirement_node *node, int64_t *ret_figure);
/* Writes the requirement of the best candidate, and its changes, into the answer. */
void smallest_change_rewrite(struct seeking *seeking,
                             struct exchange_smallest_change *smallest_change);

#endif
