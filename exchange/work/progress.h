/* The progress of an open job is derived from its attempts in flight. */
#ifndef BOURSE_EXCHANGE_WORK_PROGRESS_H
#define BOURSE_EXCHANGE_WORK_PROGRESS_H

#include "exchange/state/records.h"

/* A pace compares the expected and the measured time of the results of the job's leases. */
struct progress_pace {
    uint64_t timed; /* results, except checks */
    int64_t foreseen_ns, took_ns;
};

/* Counts running subtasks behind another in their lane, of one part or (NULL) the whole job. */
uint32_t progress_queued(const struct job *job, const struct part *part);
struct progress_pace progress_of_leases(const struct job *job);

#endif
