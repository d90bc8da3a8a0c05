/* A held result waits for a check. The functions read the held results of a job. */
#ifndef BOURSE_EXCHANGE_STATE_HELD_H
#define BOURSE_EXCHANGE_STATE_HELD_H

#include "exchange/state/records.h"

/* Returns true when the subtask's results are held for a check. */
bool held_for_check(const struct job *job, uint32_t index);
/* Returns the held result that the check judges; NULL for no check, or nothing to check now. */
struct held *held_of_check(const struct job *job, uint32_t index);
bool held_link(struct job *job, struct held *held); /* false: no such subtask, or it has one */
/* Returns the index of the job's first check, which is also the number of its other subtasks. The
 * job has checks. */
uint32_t held_first_check(const struct job *job);
/* Returns the account of the referee that accuses the result; EXCHANGE_NO_ACCOUNT: nobody does. */
uint32_t held_accuser(const struct held *held);

#endif
