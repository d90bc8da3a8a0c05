/* Checks decide whether a held result counts. */
#ifndef BOURSE_EXCHANGE_WORK_CHECKS_H
#define BOURSE_EXCHANGE_WORK_CHECKS_H

#include "exchange/state/records.h"
#include "exchange/work/held_results.h"

/* Starts the check of the held result of a subtask. */
void check_begin(struct exchange *exchange, struct job *job, uint32_t index);
/* The result does not count: subtask and check run again, unless that happened too often. Another
 * provider goes first if there is one, unless the maker is beyond doubt. */
void check_redo(struct exchange *exchange, struct job *job, uint32_t index, uint8_t status,
                const struct decision *decision);
/* Accepts the held result, which overrules its accuser. */
void check_accept(struct exchange *exchange, struct job *job, uint32_t index,
                  const struct decision *decision);
/* Applies the settled result of a check. Returns false when it was no verdict and no missing input;
 * then it ends like any other subtask. */
bool check_decide(struct exchange *exchange, struct lease *lease, const struct attempt *attempt,
                  uint8_t outcome, const struct exchange_result *result);
/* Accepts all held results unchecked; the job does not wait for checks. */
void checks_give_up(struct exchange *exchange, struct job *job);
/* Returns the status that the client's word gives the result. The client's reject refutes only a
 * result that a referee of another owner has accused, because the payer alone must not decide about
 * pay. */
uint8_t check_status_by_client(const struct exchange *exchange, const struct job *job,
                               const struct held *held, uint8_t verdict);

#endif
