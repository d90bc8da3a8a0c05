/* consumer/command/plan/dag_refusal.h says what is wrong with a graph file. Each refusal has a
 * stable name of its own (docs/errors.md). The functions return the exit status. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_DAG_REFUSAL_H
#define BOURSE_CONSUMER_COMMAND_PLAN_DAG_REFUSAL_H

#include "consumer/command/command.h"
#include "formats/dag.h"
#include "planner/schedule/workload.h"

int dag_refuse(struct invocation *invocation, const char *path, enum bourse_status status,
               const char *name, const char *text);
int dag_no_memory(struct invocation *invocation, const char *path);
/* Names the task, processor, link or edge that the graph is refused for. */
int dag_refuse_graph(struct invocation *invocation, const char *path, const struct dag_file *file,
                     enum workload_status status, const struct workload_fault *fault);

#endif
