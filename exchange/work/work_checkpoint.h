/* A checkpoint holds the state that an attempt saved for the next attempt of its subtask. */
#ifndef BOURSE_EXCHANGE_WORK_WORK_CHECKPOINT_H
#define BOURSE_EXCHANGE_WORK_WORK_CHECKPOINT_H

#include "exchange/state/records.h"

/* Returns true when the result names a checkpoint other than the kept one. */
bool work_checkpoint_is_new(const struct job *job, uint32_t index,
                            const struct exchange_result *result);
void work_checkpoint_drop(struct exchange *exchange, struct job *job, uint32_t index);
/* Replaces the kept checkpoint. Returns false when memory is short. */
bool work_checkpoint_put(struct exchange *exchange, struct job *job, const struct saved *fields,
                         const uint8_t *bytes);
void work_checkpoint_keep(struct exchange *exchange, const struct attempt *attempt,
                          const struct exchange_result *result); /* if it is new */
/* Fills in the checkpoint that the attempt goes on from, in memory of the effects. */
void work_checkpoint_give(struct exchange *exchange, struct attempt *attempt,
                          struct exchange_work *work);
/* The program failed (misled), or its inputs were not there (missing). Return true when the
 * checkpoint may be the cause; the failure does not count against the subtask then. */
bool work_checkpoint_misled(struct exchange *exchange, const struct attempt *attempt);
bool work_checkpoint_missing(struct exchange *exchange, const struct attempt *attempt);
void work_checkpoint_drop_all(struct exchange *exchange, struct job *job);
void work_checkpoint_free(struct job *job); /* memory alone */

#endif
