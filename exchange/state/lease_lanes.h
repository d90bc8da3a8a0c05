/* A lane of a lease runs one attempt at a time. The functions read the lanes. */
#ifndef BOURSE_EXCHANGE_STATE_LEASE_LANES_H
#define BOURSE_EXCHANGE_STATE_LEASE_LANES_H

#include "exchange/state/records.h"

/* Counts an attempt that was given to the lane, or left it. */
void lease_lane_gains(struct lease *lease, uint32_t lane);
void lease_lane_loses(struct lease *lease, uint32_t lane);
/* Notes in the part which lanes of a lease from a snapshot have queued work. */
void lease_link_deep(struct lease *lease);
/* Sets the start of each lane's unsettled use: its first attempt in flight, or now. */
void lease_find_unbilled(const struct exchange *exchange, struct lease *lease);
/* Fills in the attempt that each lane runs, as far as known; NULL: none. */
void lease_find_first(const struct lease *lease, const struct attempt **ret_first);
uint32_t lease_most_lanes(const struct job *job); /* most lanes of one lease */
/* Returns the number of lanes without any attempt; queued attempts keep only their own lane
 * busy. */
uint32_t lease_idle_lanes(const struct lease *lease);

#endif
