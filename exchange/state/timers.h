/* A timer wakes a job, an ask or a lease at a time. exchange/agenda.h acts when a timer is due. */
#ifndef BOURSE_EXCHANGE_STATE_TIMERS_H
#define BOURSE_EXCHANGE_STATE_TIMERS_H

#include "exchange/state/records.h"

/* Orders two entries by time, kind and key. */
int timer_compare(const struct timer *a, const struct timer *b);
/* Adds an entry to the heap. */
void timer_arm(struct exchange *exchange, enum timer_kind kind, const struct id128 *key,
               int64_t at_ns);
/* Takes the first entry off the heap, which is not empty. */
struct timer timer_pop(struct exchange *exchange);
struct id128 timer_key_of_lease(uint64_t lease);
uint64_t timer_lease_of_key(const struct id128 *key);

#endif
