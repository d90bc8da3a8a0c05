/* This file has small reads of jobs. */
#include "exchange/exchange.h"

#include "exchange/lifecycle.h"
#include "exchange/state/parts.h"
#include "exchange/state/records.h"

size_t exchange_jobs(const struct exchange *exchange, uint32_t owner,
                     struct exchange_job_row *ret_rows, size_t limit)
{
    uint64_t next = 0;
    return exchange_jobs_from(exchange, owner, 0, ret_rows, limit, &next);
}

const struct requirement *exchange_part_needs(const struct exchange *exchange,
                                              const struct id128 *id, uint32_t number,
                                              uint32_t *ret_slots)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job == NULL || job->phase != JOB_PHASE_OPEN || number >= job->part_count ||
        job->parts[number].class_id == NO_CLASS) {
        return NULL;
    }
    *ret_slots = job->parts[number].width;
    return book_class_requirement(exchange->book, job->parts[number].class_id);
}
