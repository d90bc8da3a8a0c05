/* A lease ends, winds down, or loses its provider, and its work returns to the queues. */
#ifndef BOURSE_EXCHANGE_WORK_LEASE_ENDINGS_H
#define BOURSE_EXCHANGE_WORK_LEASE_ENDINGS_H

#include "exchange/state/records.h"

/* Gives up all attempts of a subtask; late results are logged, not paid. */
void lease_give_up_attempts(struct exchange *exchange, struct job *job, uint32_t index);
/* Forgets an attempt that its agent does not have; no result can come. */
void lease_attempt_missing(struct exchange *exchange, struct lease *lease, struct attempt *attempt);
/* The provider is silent: its subtasks go back to the queues. */
void lease_suspect(struct exchange *exchange, struct lease *lease);
/* The provider is back: the lease goes on. */
void lease_returned(struct exchange *exchange, struct lease *lease);
/* Gives the lease no more work; the lease ends when nothing is in flight. */
void lease_wind_down(struct exchange *exchange, struct lease *lease);
/* Returns the reason for which an ending lease ends. */
uint8_t lease_why_over(const struct lease *lease);
/* Ends the lease for that reason; `tell`: its provider is told. */
void lease_end(struct exchange *exchange, struct lease *lease, uint8_t reason, bool tell);
/* Ends a lease after too many failures in a row, and lets the job avoid the provider for a while. A
 * lease that is ending ends when nothing is in flight. */
void lease_end_if_failing(struct exchange *exchange, struct lease *lease);

#endif
