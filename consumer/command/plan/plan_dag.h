/* consumer/command/plan/plan_dag.h runs `bourse plan --dag FILE`, which makes a schedule from a
 * task graph. The command asks no market. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_PLAN_DAG_H
#define BOURSE_CONSUMER_COMMAND_PLAN_PLAN_DAG_H

#include "consumer/command/command.h"

/* Returns an exit status. */
int plan_dag(struct invocation *invocation);

#endif
