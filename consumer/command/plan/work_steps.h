/* consumer/command/plan/work_steps.h makes the steps of the template that is asked for, with its
 * parameters set. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_WORK_STEPS_H
#define BOURSE_CONSUMER_COMMAND_PLAN_WORK_STEPS_H

#include "consumer/command/plan/work.h"

/* Makes the steps after the request was read. Returns 0, or the exit status after a message. */
int work_steps_make(struct work *work);

#endif
