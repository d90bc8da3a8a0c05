/* An attempt is one run of a subtask in a lane of a lease. */
#ifndef BOURSE_EXCHANGE_WORK_ATTEMPTS_H
#define BOURSE_EXCHANGE_WORK_ATTEMPTS_H

#include "exchange/state/records.h"

/* Returns the fields of a work effect that name the attempt. */
struct exchange_work attempt_work(const struct lease *lease, const struct attempt *attempt);
/* Tells the agent about the attempt. */
void attempt_effect(struct exchange *exchange, struct lease *lease, struct attempt *attempt,
                    enum exchange_effect_type type);
/* Returns the attempt of that number; NULL: none. */
struct attempt *attempt_of(const struct exchange *exchange, const struct job *job, uint32_t index,
                           uint32_t number);
struct attempt *attempt_find(const struct exchange *exchange, const struct lease *lease,
                             uint32_t index, uint32_t number); /* NULL: none */
bool attempt_put(struct exchange *exchange, struct lease *lease, struct attempt *attempt);
void attempt_drop(struct exchange *exchange, struct attempt *attempt); /* frees it */
/* Gives an attempt up; a late result is logged, not paid. */
void attempt_fence(struct exchange *exchange, struct lease *lease, struct attempt *attempt);
void attempt_withdraw(struct exchange *exchange, struct attempt *attempt); /* tells the agent */
/* Withdraws all attempts of the lease. */
void attempts_withdraw_all(struct exchange *exchange, struct lease *lease);
/* Withdraws the attempts of the subtask that are still in flight. */
void attempts_withdraw_others(struct exchange *exchange, struct job *job, uint32_t index);

#endif
