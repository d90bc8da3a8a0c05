/* Checkpoints hold state that an attempt saved when it was told to end. The next attempt of the
 * subtask goes on from it, on any provider. The newest checkpoint of a subtask is kept until the
 * subtask is decided.
 *
 * An attempt may find its checkpoint missing, or fail because of it, since the provider that saved
 * it may have lied. A checkpoint that is missing twice, or from which a program fails, is given up,
 * and the subtask begins anew. Neither event counts against the subtask. */
#include "exchange/work/work_checkpoint.h"

#include "exchange/lifecycle.h"
#include "exchange/state/memory.h"
#include "exchange/state/tracking.h"

#include <stdlib.h>
#include <string.h>

static struct saved *kept(const struct job *job, uint32_t index)
{
    return job->saved == NULL ? NULL : job->saved[index];
}

bool work_checkpoint_is_new(const struct job *job, uint32_t index,
                            const struct exchange_result *result)
{
    const struct saved *before = kept(job, index);
    return job->has_checkpoints && result->saved_length > 0 &&
           result->saved_length <= SAVED_BYTES_MOST &&
           (before == NULL || before->length != result->saved_length ||
            memcmp(before->bytes, result->saved, result->saved_length) != 0);
}

void work_checkpoint_drop(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct saved *saved = kept(job, index);
    if (saved != NULL) {
        tracking_remove(exchange, &saved->tracked);
        free(saved);
        job->saved[index] = NULL;
        job->saved_count--;
    }
}

bool work_checkpoint_put(struct exchange *exchange, struct job *job, const struct saved *fields,
                         const uint8_t *bytes)
{
    if (job->saved == NULL) {
        job->saved = memory_allocate(exchange, job->subtasks * sizeof(struct saved *));
    }
    struct saved *saved =
        job->saved == NULL ? NULL : memory_allocate(exchange, sizeof *saved + fields->length);
    if (saved == NULL) {
        return false;
    }
    work_checkpoint_drop(exchange, job, fields->index);
    saved->job = job;
    saved->index = fields->index;
    saved->attempt = fields->attempt;
    saved->length = fields->length;
    saved->missing = fields->missing;
    memcpy(saved->bytes, bytes, fields->length);
    job->saved[fields->index] = saved;
    job->saved_count++;
    tracking_add(exchange, &saved->tracked, RECORD_SAVED);
    return true;
}

void work_checkpoint_keep(struct exchange *exchange, const struct attempt *attempt,
                          const struct exchange_result *result)
{
    struct job *job = attempt->lease->job;
    if (work_checkpoint_is_new(job, attempt->key.index, result)) {
        const struct saved fields = {.index = attempt->key.index,
                                     .attempt = attempt->key.attempt,
                                     .length = result->saved_length};
        /* The step stops when memory is short. */
        (void)work_checkpoint_put(exchange, job, &fields, result->saved);
    }
}

void work_checkpoint_give(struct exchange *exchange, struct attempt *attempt,
                          struct exchange_work *work)
{
    const struct saved *saved = kept(attempt->lease->job, attempt->key.index);
    attempt->restored = saved == NULL ? 0 : saved->attempt;
    if (saved == NULL) {
        return;
    }
    struct exchange_block *block = memory_allocate(exchange, sizeof *block + saved->length);
    if (block == NULL) {
        return;
    }
    block->next = exchange->effects->blocks;
    exchange->effects->blocks = block;
    memcpy(block + 1, saved->bytes, saved->length);
    work->saved =
        (struct exchange_given){.bytes = (const uint8_t *)(block + 1), .length = saved->length};
    work->saved_by = saved->attempt;
}

/* Returns the checkpoint that the attempt went on from, while it is still the kept one. */
static struct saved *went_on_from(const struct attempt *attempt)
{
    struct saved *saved = kept(attempt->lease->job, attempt->key.index);
    return saved != NULL && attempt->restored == saved->attempt ? saved : NULL;
}

bool work_checkpoint_misled(struct exchange *exchange, const struct attempt *attempt)
{
    const bool has_saved = went_on_from(attempt) != NULL;
    if (has_saved) {
        work_checkpoint_drop(exchange, attempt->lease->job, attempt->key.index);
    }
    return has_saved;
}

bool work_checkpoint_missing(struct exchange *exchange, const struct attempt *attempt)
{
    struct saved *saved = went_on_from(attempt);
    if (saved == NULL) {
        return false;
    }
    if (++saved->missing >= SAVED_MISSING) {
        work_checkpoint_drop(exchange, attempt->lease->job, attempt->key.index);
    } else {
        tracking_touch(exchange, &saved->tracked);
    }
    return true;
}

void work_checkpoint_drop_all(struct exchange *exchange, struct job *job)
{
    for (uint32_t i = 0; job->saved != NULL && i < job->subtasks; i++) {
        work_checkpoint_drop(exchange, job, i);
    }
    free(job->saved);
    job->saved = NULL;
}

void work_checkpoint_free(struct job *job)
{
    for (uint32_t i = 0; job->saved != NULL && i < job->subtasks; i++) {
        free(job->saved[i]);
    }
    free(job->saved);
    job->saved = NULL;
}

bool exchange_each_saved(const struct exchange *exchange, exchange_on_given *visit, void *context)
{
    for (const struct list_link *at = exchange->job_list.next; at != &exchange->job_list;
         at = at->next) {
        const struct job *job = LIST_ELEMENT(at, struct job, all);
        for (const struct list_link *link = job->leases.next;
             job->saved != NULL && link != &job->leases; link = link->next) {
            const struct lease *lease = LIST_ELEMENT(link, struct lease, of_job);
            for (const struct list_link *of = lease->attempts.next;
                 lease->state != LEASE_ENDED && of != &lease->attempts; of = of->next) {
                const struct attempt *attempt = LIST_ELEMENT(of, struct attempt, of_lease);
                const struct saved *saved = went_on_from(attempt);
                const struct exchange_given given = {.bytes = saved == NULL ? NULL : saved->bytes,
                                                     .length = saved == NULL ? 0 : saved->length};
                if (given.length > 0 && !visit(context, lease->id, attempt->key.index, &given)) {
                    return false;
                }
            }
        }
    }
    return true;
}
