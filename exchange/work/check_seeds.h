/* The seed of a check fixes its random choices, so that others can repeat the check. */
#ifndef BOURSE_EXCHANGE_WORK_CHECK_SEEDS_H
#define BOURSE_EXCHANGE_WORK_CHECK_SEEDS_H

#include "exchange/state/records.h"

/* Returns the attempt's seed; zeros for no check, or nothing to check. */
struct hash32 check_seed(const struct job *job, uint32_t index, uint32_t attempt);
/* Returns the subtask that the check judges; 0 for no check, or nothing to check. */
uint32_t check_subject(const struct job *job, uint32_t index);
/* Returns the outcome that a result counts as. A verdict on a result no longer held is nobody's
 * fault; a wrong seed is the referee's. */
uint8_t check_outcome(const struct job *job, const struct attempt *attempt,
                      const struct exchange_result *result);
/* Returns the seed of the check that the client of the job may compute. */
struct hash32 check_seed_of_held(const struct job *job, const struct held *held);

#endif
