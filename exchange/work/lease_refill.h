/* A lease with an idle lane gets work, is renewed, or ends. */
#ifndef BOURSE_EXCHANGE_WORK_LEASE_REFILL_H
#define BOURSE_EXCHANGE_WORK_LEASE_REFILL_H

#include "exchange/state/records.h"

/* Places retries that found no free lane before queued work (P18). */
void lease_place_retries(struct exchange *exchange, struct part *part);
/* Gives the idle lanes work, or renews or ends the lease. */
void lease_refill(struct exchange *exchange, struct lease *lease);
/* Handles the lease's timer, which was set to `at_ns`. */
void lease_due(struct exchange *exchange, struct lease *lease, int64_t at_ns);

#endif
