/* The queues of a part have its waiting subtasks, retries before those never started. */
#ifndef BOURSE_EXCHANGE_WORK_PART_QUEUES_H
#define BOURSE_EXCHANGE_WORK_PART_QUEUES_H

#include "exchange/state/records.h"
#include "exchange/work/choice/lateness.h"

/* Returns how many waiting subtasks of the part the provider may run. The cost is a look at each
 * owner that judged any; for checks, a step or two for each queue, and for each lease. */
uint32_t part_choice(const struct exchange *exchange, const struct part *part, uint32_t provider);
/* Takes the first retry that the provider may make, and that is not late, off the queue;
 * NO_SUBTASK: none. The caller has seen that subtasks that are alike are not late. An entry that
 * its owner has judged is passed over once, so n retries cost n looks of each owner over all calls.
 * Each call takes one more step for each owner that has judged an entry. */
uint32_t part_next_retry(struct exchange *exchange, struct part *part, uint32_t provider,
                         const struct lateness *late);
/* Takes the next subtask that never started, and that is not late, off the queue: by rank, else the
 * longest expected, then by index. A subtask whose inputs are among `residents` may go before
 * others of a similar rank (ready_take); NULL: there are none. NO_SUBTASK: none. */
uint32_t part_next_fresh(struct exchange *exchange, struct part *part,
                         const struct residents *residents, const struct lateness *late);
/* Returns true when inputs of the subtask that part_next_fresh would take are among them. */
bool part_has_resident(const struct part *part, const struct residents *residents,
                       const struct lateness *late);

#endif
