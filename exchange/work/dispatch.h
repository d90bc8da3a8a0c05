/* Dispatch sends subtasks to the lanes of a lease. */
#ifndef BOURSE_EXCHANGE_WORK_DISPATCH_H
#define BOURSE_EXCHANGE_WORK_DISPATCH_H

#include "exchange/state/records.h"

/* Sends a new attempt of the subtask to the lane. */
void dispatch_subtask(struct exchange *exchange, struct lease *lease, uint32_t lane, uint32_t index,
                      bool is_urgent);
/* Starts one more attempt of a subtask, running or not, in the lane. */
void dispatch_again(struct exchange *exchange, struct lease *lease, uint32_t lane, uint32_t index);
/* Returns true when a subtask of the part waits that the provider may run, and that is not late on
 * an idle lane of the lease. */
bool dispatch_has_choice(const struct exchange *exchange, const struct lease *lease);
/* Fills the emptiest lanes first, up to `depth` in each. */
void dispatch_fill_lanes(struct exchange *exchange, struct lease *lease, uint32_t depth);
/* The next subtask goes where it is done first, even behind running work of a faster lane; on the
 * slowest lane it could end long after all others. An idle lane then gets the one after it. */
void dispatch_place_next(struct exchange *exchange, struct lease *lease);
/* Takes back attempts that have not begun and that can no longer end before the job's deadline. An
 * attempt begins with the result of the one before it in its lane, so call this after results. */
void dispatch_take_back_late(struct exchange *exchange, struct lease *lease);

#endif
