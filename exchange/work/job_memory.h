/* The memory of a job holds its parts and its pages of subtasks. */
#ifndef BOURSE_EXCHANGE_WORK_JOB_MEMORY_H
#define BOURSE_EXCHANGE_WORK_JOB_MEMORY_H

#include "exchange/state/records.h"

/* Frees the job's own memory. The job has no leases and is in no table. */
void job_free(struct job *job);
/* The functions allocate zeroed parts, or pages of subtasks. They return false when memory is
 * short. */
bool job_has_parts(struct exchange *exchange, struct job *job, uint32_t count);
bool job_has_pages(struct exchange *exchange, struct job *job);
void job_drop_pages(struct exchange *exchange, struct job *job);

#endif
