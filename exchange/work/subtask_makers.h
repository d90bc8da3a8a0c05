/* The functions tell which providers may run a subtask. */
#ifndef BOURSE_EXCHANGE_WORK_SUBTASK_MAKERS_H
#define BOURSE_EXCHANGE_WORK_SUBTASK_MAKERS_H

#include "exchange/state/records.h"

/* Returns true when an attempt of the subtask may begin, or go on after a loss, on a lease of the
 * provider. All code that places or sends a subtask asks here. An owner that judged a subtask never
 * makes it. An owner that made or accused a result does not judge it; an overruled one judges
 * nothing more of the job. */
bool subtask_may_run_on(const struct exchange *exchange, const struct job *job, uint32_t index,
                        uint32_t provider);
/* Returns true when a device of the provider satisfies the part and is wide enough. */
bool subtask_provider_fits(const struct exchange *exchange, const struct provider *provider,
                           const struct part *part);
/* Returns true when some provider could make the subtask. Prices, busy slots and avoidance do not
 * count, since all of them change. */
bool subtask_has_maker(const struct exchange *exchange, const struct job *job, uint32_t index);

#endif
