/* consumer/job/tasks.h - the manifest of a job on the market, read back. Not installed. */
#ifndef BOURSE_CONSUMER_JOB_TASKS_H
#define BOURSE_CONSUMER_JOB_TASKS_H

#include "protocol/codec.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether either all subtasks but the checks are tasks or none is, and each waits for earlier ones
 * only. */
bool tasks_well_formed(const Bourse__V1__Manifest *manifest);
/* NULL when it has none. */
const char *tasks_name(const Bourse__V1__Manifest *manifest, uint32_t index);

#endif
