/* The functions read and mark the record of a job and its subtasks. They decide nothing. */
#ifndef BOURSE_EXCHANGE_STATE_JOB_RECORDS_H
#define BOURSE_EXCHANGE_STATE_JOB_RECORDS_H

#include "exchange/state/records.h"

/* Returns true for a job without standing bids, which ends with its leases. */
bool job_lives_off_leases(const struct job *job);
/* Returns true when bids of that type may take leases from their holders: bids that rest, and that
 * fill at once where they can. */
bool job_type_challenges(uint8_t type);
/* Returns true when its bids rest and wait to be filled all at once. */
bool job_waits_for_all(const struct job *job);
uint32_t job_accused(const struct job *job); /* held results that a referee rejects */
/* Returns the subtask, with its page; NULL: memory is short. */
struct subtask *job_subtask(struct exchange *exchange, struct job *job, uint32_t index);
/* Returns the count of the job's subtasks in that state. */
uint32_t *job_tally(struct job *job, uint8_t state);
/* Marks the record of the subtask as changed. */
void job_subtask_changed(struct exchange *exchange, struct job *job, uint32_t index);
void job_link_owner(struct exchange *exchange, struct job *job);
int64_t job_avoids_for_ns(const struct exchange *exchange, const struct job *job,
                          uint32_t provider); /* time from now; 0: it does not */
bool job_avoids(const struct exchange *exchange, const struct job *job, uint32_t provider);
/* Keeps the job off the provider for that time. */
void job_avoid(struct exchange *exchange, struct job *job, uint32_t provider, int64_t for_ns);
/* Returns true when the job keeps juries: its results are checked, and a referee judged one. */
bool job_has_juries(const struct job *job);

#endif
