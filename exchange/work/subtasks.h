/* The functions make every change of a subtask's state. */
#ifndef BOURSE_EXCHANGE_WORK_SUBTASKS_H
#define BOURSE_EXCHANGE_WORK_SUBTASKS_H

#include "exchange/lifecycle.h"
#include "exchange/state/records.h"

/* Makes every change of state of a counted subtask. */
void subtask_becomes(struct exchange *exchange, struct job *job, uint32_t index,
                     enum subtask_state to);
/* Ends a waiting or running subtask and withdraws its other attempts. */
void subtask_decide(struct exchange *exchange, struct job *job, uint32_t index,
                    enum subtask_state to);
/* Returns a running or checked subtask to its queue; in a closing job, cancels it. */
void subtask_requeue(struct exchange *exchange, struct job *job, uint32_t index);
/* Looks at the judged subtasks whose look is due, and fails those that nobody can make. */
void subtask_juries_due(struct exchange *exchange, struct job *job, int64_t at_ns);
/* Queues the subtask again, unless it has had all its attempts. */
void subtask_try_again(struct exchange *exchange, struct job *job, uint32_t index);

#endif
