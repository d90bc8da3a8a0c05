/* The queues of checks give each referee the checks that it may judge. */
#ifndef BOURSE_EXCHANGE_WORK_CHECK_QUEUE_H
#define BOURSE_EXCHANGE_WORK_CHECK_QUEUE_H

#include "exchange/state/records.h"

bool check_queue_create(struct exchange *exchange, struct job *job); /* false: memory is short */
void check_queue_destroy(struct job *job);
/* Queues the check of the held result. A new check goes last; a repeated one goes near the
 * front. */
void check_enqueue(struct exchange *exchange, const struct job *job, struct held *held);
void check_dequeue(struct held *held);
/* Queues the check again, if it has something to judge. */
void check_requeue(struct exchange *exchange, struct job *job, uint32_t index);
/* Takes the check out of the queue, because it runs after all. A subtask that is no check is left
 * alone. */
void check_unqueue(const struct job *job, uint32_t index);
/* Returns true when the referee may begin the check; subtask_may_run_on calls this. */
bool check_is_for(const struct exchange *exchange, const struct job *job, uint32_t index,
                  uint32_t referee);
/* Returns true when the provider may judge the checks of this queue. */
bool check_may_take(const struct exchange *exchange, const struct part *part,
                    const struct check_queue *queue, uint32_t provider);
/* Returns the next check for the lease, or NO_SUBTASK when it has none. */
uint32_t check_queue_next(struct exchange *exchange, struct lease *lease);
void check_queue_restore(struct exchange *exchange, struct job *job); /* after a snapshot */
/* Returns true when the verdict counts: its owner neither made nor accused the result. */
bool check_counts(const struct exchange *exchange, const struct lease *lease, uint32_t index);
/* Returns true when the owner of `referee` made or accused the result: nobody judges a result of
 * their own. `accuser` may be EXCHANGE_NO_ACCOUNT. */
bool check_is_party(const struct exchange *exchange, uint32_t maker, uint32_t accuser,
                    uint32_t referee);

#endif
