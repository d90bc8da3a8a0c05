/* The reads of a part tell the reason why it waits. */
#ifndef BOURSE_EXCHANGE_VIEW_READS_H
#define BOURSE_EXCHANGE_VIEW_READS_H

#include "exchange/state/records.h"

/* Returns true when only busy slots keep the part off: its budget covers a term. */
bool read_part_is_in_reach(const struct exchange *exchange, const struct part *part,
                           const struct device *device);
/* Returns the waiting part of an open job that is furthest from a lane; it explains the whole
 * job. */
const struct part *read_tightest_part(const struct exchange *exchange, const struct job *job,
                                      uint8_t *ret_reason);

/* Returns true when the lease ended because the operator froze its provider, which still is
 * frozen. */
bool read_was_revoked(const struct exchange *exchange, const struct lease *lease);

#endif
