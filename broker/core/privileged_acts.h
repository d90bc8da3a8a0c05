/* broker/core/privileged_acts.h selects the commands of a group that the audit log records, and
 * makes the records. */
#ifndef BOURSE_BROKER_CORE_PRIVILEGED_ACTS_H
#define BOURSE_BROKER_CORE_PRIVILEGED_ACTS_H

#include "broker/core/act_log.h"
#include "broker/core/group.h"

#include <stdbool.h>

/* Returns true when `effect` of `group` accepts a privileged command for the first time. *ret_act
 * is then its record, without the wall clock. A repeated command has its record already. */
bool privileged_act_of(const struct group *group, const struct exchange_effect *effect,
                       struct act *ret_act);
/* Returns true when the group has a command that the audit log records when it is accepted. */
bool privileged_acts_in(const struct group *group);

#endif
