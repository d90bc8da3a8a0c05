/* The ready subtasks of a part wait in a heap. The highest rank goes first, then the lowest index.
 * A lane takes the first, unless the job's deadline is near, or the lane's device holds the inputs
 * of another. */
#ifndef BOURSE_EXCHANGE_WORK_CHOICE_READY_H
#define BOURSE_EXCHANGE_WORK_CHOICE_READY_H

#include "exchange/state/records.h"
#include "planner/schedule/online.h"

/* Returns the rank of a subtask. A job without ranks uses the expected times. */
uint32_t ready_rank(const struct graph *graph, uint32_t index);
/* Puts a subtask that became ready on the heap, which has room for all subtasks of the part. */
void ready_push(struct part *part, uint32_t index);
/* A bound on the time of a subtask that is taken: its own expectation, at this pace. */
struct ready_bound {
    const struct exchange *exchange; /* counts the steps of the search */
    bool is_set;
    struct online_pace pace;
    int64_t most_ns;
};
/* Takes the ready subtask off the heap that goes first on a lane with these residents, and that is
 * within the bound; NULL: there are no residents. The first RESIDENT_READY_MOST by rank are
 * compared, and the one with most bytes among the residents goes first; of equals, the higher rank,
 * then the lower index. A rank that is more than ONLINE_SLACK_PERCENT below the highest may only go
 * first when the residents save that difference. Near a deadline the highest rank within the bound
 * goes first. Returns NO_SUBTASK when none is ready. */
uint32_t ready_take(struct part *part, const struct residents *residents,
                    const struct ready_bound *bound);
/* Returns true when inputs of the subtask that ready_take would take are among them. */
bool ready_has_resident(const struct part *part, const struct residents *residents,
                        const struct ready_bound *bound);

#endif
