/* consumer/command/plan/work_request.h reads the file, the options and the objective of a plan of
 * work. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_WORK_REQUEST_H
#define BOURSE_CONSUMER_COMMAND_PLAN_WORK_REQUEST_H

#include "consumer/command/plan/work.h"

/* Reads the request. Returns 0, or the exit status after a message. */
int work_request_read(struct work *work);

#endif
