/* The graph of a job says which subtasks wait for which. */
#ifndef BOURSE_EXCHANGE_WORK_GRAPH_H
#define BOURSE_EXCHANGE_WORK_GRAPH_H

#include "exchange/lifecycle.h"
#include "exchange/state/records.h"

/* Returns false with the refusal when this is no graph of `subtasks` subtasks. */
bool graph_well_formed(const struct exchange_graph *graph, uint32_t subtasks,
                       struct exchange_reject *ret_why);
void graph_destroy(struct graph *graph);
/* Copies a well-formed graph; no subtask is ready yet. NULL: memory is short. */
struct graph *graph_create(struct exchange *exchange, struct job *job,
                           const struct exchange_graph *given);
void graph_drop(struct exchange *exchange, struct job *job); /* drops its records, too */
void graph_start(struct job *job);                           /* starts a new job */
/* Rebuilds after a snapshot all that follows from the subtasks' states. */
void graph_restore(struct job *job);
/* graph_tells_apart says whether subtasks have expectations of their own. graph_said_ns returns
 * one; 0: unknown. */
bool graph_tells_apart(const struct job *job);
int64_t graph_said_ns(const struct job *job, uint32_t index);
/* Returns the subtask's own expectation, else its part's. */
int64_t graph_expects_ns(const struct job *job, uint32_t index);
/* Returns the longest path from the subtask's start to the job's end, as declared; 0: unknown. */
int64_t graph_way_ns(const struct job *job, uint32_t index);
bool graph_hands_on(const struct job *job, uint32_t index); /* an undecided subtask waits for it */
void graph_keep(struct exchange *exchange, const struct job *job, uint32_t index,
                const uint8_t *bytes, uint32_t length,
                uint64_t file_bytes); /* keeps the output of a new result */
/* Drops the output of a subtask that is accepted no longer. */
void graph_forget_given(struct exchange *exchange, const struct job *job, uint32_t index);
/* Fills in a subtask's inputs, in memory of the effects. */
void graph_give(struct exchange *exchange, const struct job *job, uint32_t index,
                struct exchange_work *work);
/* Makes subtasks ready that waited for the decided one, or cancels them and all after them. */
void graph_decided(struct exchange *exchange, struct job *job, uint32_t index,
                   enum subtask_state as);

#endif
