/* Tracking tells the state hash which records exist and which have changed. */
#ifndef BOURSE_EXCHANGE_STATE_TRACKING_H
#define BOURSE_EXCHANGE_STATE_TRACKING_H

#include "exchange/state/records.h"

/* Makes a new entity a record. */
void tracking_add(struct exchange *exchange, struct tracked *tracked, enum record_type type);
/* Marks the record as changed since the last hash. */
void tracking_touch(struct exchange *exchange, struct tracked *tracked);
/* Adds the hash of one record to the sum, or takes it off. */
void tracking_total_change(uint64_t total[4], const struct hash32 *hash, bool add);
void tracking_remove(struct exchange *exchange, struct tracked *tracked); /* before it is freed */

#endif
