/* broker/core/deeds.h selects the commands of a group that the audit log records, and makes the
 * records. */
#ifndef BOURSE_BROKER_CORE_DEEDS_H
#define BOURSE_BROKER_CORE_DEEDS_H

#include "broker/core/acts.h"
#include "broker/core/group.h"

#include <stdbool.h>

/* Returns true when `effect` of `group` accepts a privileged command for the first time. *ret_act
 * is then its record, without the wall clock. A repeated command has its record already. */
bool deed_of(const struct group *group, const struct exchange_effect *effect, struct act *ret_act);

#endif
