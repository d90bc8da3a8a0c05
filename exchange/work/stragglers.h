/* A straggler is repeated elsewhere, and queued work moves to lanes that finish it sooner. */
#ifndef BOURSE_EXCHANGE_WORK_STRAGGLERS_H
#define BOURSE_EXCHANGE_WORK_STRAGGLERS_H

#include "exchange/state/records.h"

/* Handles the part's timer for that time. */
void stragglers_due(struct exchange *exchange, struct part *part, int64_t at_ns);
/* Helps when the lease took or ended work and nothing of its part waits: queued work moves to a
 * lane that finishes it sooner, and an idle lane repeats a straggler. */
void straggler_help(struct exchange *exchange, struct lease *lease);

#endif
