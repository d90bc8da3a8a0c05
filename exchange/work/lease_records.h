/* The functions link, mark and forget leases. They decide nothing. */
#ifndef BOURSE_EXCHANGE_WORK_LEASE_RECORDS_H
#define BOURSE_EXCHANGE_WORK_LEASE_RECORDS_H

#include "exchange/state/records.h"

/* Tells the provider about the lease. */
void lease_effect(struct exchange *exchange, const struct lease *lease,
                  enum exchange_effect_type type);
/* Returns the time after the term in which results still count. State saved within the notice takes
 * longer to arrive than a result. After an outage of the broker agents have to come back first. */
int64_t lease_grace_ns(const struct lease *lease);
int64_t lease_deadline(const struct lease *lease); /* the lease has not ended */
/* Returns true for a time at which a lease is renewed while its work goes on: a half, a quarter or
 * an eighth of the term is left. Only work that may outlast a term has such times. */
bool lease_is_renewal(const struct lease *lease, int64_t at_ns);
void lease_arm(struct exchange *exchange, const struct lease *lease);
/* Links a granted lease to its provider. */
void lease_link_provider(struct exchange *exchange, struct lease *lease);
void lease_refill_later(struct exchange *exchange, struct lease *lease); /* refills in this step */
void lease_refill_next(struct exchange *exchange, struct lease *lease);  /* before all others */
/* Sets the time since which the lease has nothing in flight. */
void lease_become_idle(struct exchange *exchange, struct lease *lease);
/* Releases the reserve of an ended lease, except for its held results. */
void lease_release_reserve(struct exchange *exchange, struct lease *lease);
/* Frees an ended lease, with its attempts. */
void lease_forget(struct exchange *exchange, struct lease *lease);
/* Forgets some ended leases, those of the oldest jobs first. */
void lease_make_room(struct exchange *exchange);

#endif
