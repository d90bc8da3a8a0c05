/* consumer/command/plan/plan_dag.h - `bourse plan --dag FILE`: a task graph in, a schedule out. No
 * market is asked. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_PLAN_DAG_H
#define BOURSE_CONSUMER_COMMAND_PLAN_PLAN_DAG_H

#include "consumer/command/command.h"

/* Returns an exit status. */
int plan_dag(struct invocation *invocation);

#endif
