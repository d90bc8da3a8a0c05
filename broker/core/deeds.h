/* broker/core/deeds.h - which commands of a group are for the audit log, and as what record. */
#ifndef BOURSE_BROKER_CORE_DEEDS_H
#define BOURSE_BROKER_CORE_DEEDS_H

#include "broker/core/acts.h"
#include "broker/core/group.h"

#include <stdbool.h>

/* True when `effect` of `group` accepts a privileged command for the first time; *ret_act is then
 * its record, but for the wall clock. A repeated one was recorded when it was done. */
bool deed_of(const struct group *group, const struct exchange_effect *effect, struct act *ret_act);

#endif
