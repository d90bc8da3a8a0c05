/* Escrow is the part of a budget that covers the terms of leases. */
#ifndef BOURSE_EXCHANGE_MARKET_ESCROW_H
#define BOURSE_EXCHANGE_MARKET_ESCROW_H

#include "exchange/state/records.h"

/* Returns the lanes that the free budget covers for a term at this price. */
uint32_t escrow_affordable_lanes(const struct part *part, int64_t price_micro);
/* Returns the part of the job's budget that no lease holds. */
int64_t escrow_free_micro(const struct job *job);
/* Returns the cost of the slots for a term, rounded up; INT64_MAX: too much. */
int64_t escrow_micro(int64_t price_micro, uint32_t slots, int64_t term_ns);

#endif
