/* The agenda acts on every timer whose time has come. */
#ifndef BOURSE_EXCHANGE_AGENDA_H
#define BOURSE_EXCHANGE_AGENDA_H

#include "exchange/state/records.h"

/* Arms all deadlines of an open job and its leases. */
void agenda_arm_job(struct exchange *exchange, const struct job *job);
void agenda_weed(struct exchange *exchange); /* drops stale timers; runs at the end of a step */
void agenda_fire(struct exchange *exchange); /* fires all that are due at now_ns, in order */

#endif
