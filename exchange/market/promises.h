/* A promise is the time that a lease may still use, at price 0 or on a device with counted
 * days. */
#ifndef BOURSE_EXCHANGE_MARKET_PROMISES_H
#define BOURSE_EXCHANGE_MARKET_PROMISES_H

#include "exchange/state/records.h"

/* Starts counting the device's days if the standing ask bounds them. False: memory is short. */
bool promise_count_days(struct exchange *exchange, const struct ask *ask);
void promise_add_to_day(struct exchange *exchange, struct device *device, int128 more_ns);
/* The calls count the use of a lease at 0, or of a device with counted days: a term began, time was
 * settled, or the lease ended. */
void promise_term(struct exchange *exchange, struct lease *lease);
void promise_end(struct exchange *exchange, struct lease *lease);
void promise_settle(struct exchange *exchange, struct lease *lease, int64_t paid_ns);

#endif
