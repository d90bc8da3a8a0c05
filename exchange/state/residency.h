/* A lane's residents are the outputs that its device still holds, as far as the exchange can tell.
 *
 * A device with memory of its own keeps what a lane's subtasks read and made, and lets go first of
 * what was used longest ago. The exchange is told nothing of it. It follows the same rule with what
 * its records have: which subtasks a lane was sent, what these waited for, and how large the
 * outputs are. So the residents are a guess. A wrong guess costs one copy, and no result. */
#ifndef BOURSE_EXCHANGE_STATE_RESIDENCY_H
#define BOURSE_EXCHANGE_STATE_RESIDENCY_H

#include "exchange/state/records.h"

/* Outputs of a subtask that the device of a lane holds. */
struct resident {
    uint32_t index;
    uint64_t bytes;
};
struct residents {
    uint32_t count;
    struct resident items[RESIDENTS_MOST]; /* the last used first */
};

/* Returns the size to keep of outputs of so many bytes; 0: no device's memory is worth a thought
 * for them, or the rules in force do not look at it. */
uint64_t residency_size(const struct exchange *exchange, uint64_t bytes);
/* Notes that the lane has read or made the outputs of the subtask `index`, which have so many bytes
 * by residency_size. Nothing happens where the device has no memory of its own. */
void residency_note(struct exchange *exchange, struct lease *lease, uint32_t lane, uint32_t index,
                    uint64_t bytes);
/* Notes the outputs that a subtask of a graph waited for, when the subtask is sent to the lane. */
void residency_note_inputs(struct exchange *exchange, struct lease *lease, uint32_t lane,
                           uint32_t index);
/* Returns true when the outputs of the subtask `index` are among the residents. */
bool residency_has(const struct residents *residents, uint32_t index);
/* Returns how many bytes that the subtask of the graph waits for are among the residents. NULL:
 * there are none. The call looks at RESIDENT_INPUTS_MOST inputs at most. */
uint64_t residency_bytes(const struct residents *residents, const struct graph *graph,
                         uint32_t index);
/* Returns the time that a lane saves by having so many bytes already. */
int64_t residency_saves_ns(uint64_t bytes);
/* Forgets the residents of all lanes; the lease ends, or is freed. */
void residency_forget(struct lease *lease);

#endif
