/* consumer/job/tasks.h reads back the manifest of a job on the market. The header is not
 * installed. */
#ifndef BOURSE_CONSUMER_JOB_TASKS_H
#define BOURSE_CONSUMER_JOB_TASKS_H

#include "protocol/codec.h"

#include <stdbool.h>
#include <stdint.h>

/* Returns true when all subtasks but the checks are tasks or none is, and each waits only for
 * earlier ones. */
bool tasks_well_formed(const Bourse__V1__Manifest *manifest);
/* Returns the name of a subtask, or NULL. */
const char *tasks_name(const Bourse__V1__Manifest *manifest, uint32_t index);

#endif
