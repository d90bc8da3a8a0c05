#include "exchange/work/check_queue.h"

#include "exchange/account/standing.h"
#include "exchange/lifecycle.h"
#include "exchange/state/held.h"
#include "exchange/state/job_records.h"
#include "exchange/state/memory.h"
#include "exchange/state/steps.h"
#include "exchange/work/juries.h"

#include <assert.h>
#include <stdlib.h>

bool check_queue_create(struct exchange *exchange, struct job *job)
{
    struct checks *checks = memory_allocate(exchange, sizeof *checks);
    job->checks = checks;
    if (checks == NULL) {
        return false;
    }
    list_init(&checks->queues);
    list_init(&checks->all_juries);
    list_init(&checks->looks);
    list_init(&checks->accusations);
    checks->bars = memory_allocate(exchange, job->part_count * sizeof *checks->bars);
    for (uint32_t i = 0; checks->bars != NULL && i < job->part_count; i++) {
        list_init(&checks->bars[i]);
    }
    checks->held = memory_allocate(exchange, held_first_check(job) * sizeof(struct held *));
    checks->juries = memory_allocate(exchange, held_first_check(job) * sizeof(struct jury *));
    return checks->held != NULL && checks->juries != NULL && checks->bars != NULL;
}

void check_queue_destroy(struct job *job)
{
    struct checks *checks = job->checks;
    if (checks == NULL) {
        return;
    }
    for (uint32_t i = 0; checks->held != NULL && i < held_first_check(job); i++) {
        free(checks->held[i]);
    }
    while (!list_empty(&checks->queues)) {
        struct check_queue *queue = LIST_ELEMENT(checks->queues.next, struct check_queue, all);
        list_remove(&queue->all);
        free(queue);
    }
    juries_free(job);
    free(checks->held);
    free(checks);
    job->checks = NULL;
}

static bool came_before(const struct held *a, const struct held *b)
{
    return a->batch_index != b->batch_index ? a->batch_index < b->batch_index
                                            : a->position < b->position;
}

static struct held *first_of(const struct check_queue *queue)
{
    return LIST_ELEMENT(queue->waiting.next, struct held, waiting);
}

static struct check_queue *queue_of(struct exchange *exchange, struct checks *checks,
                                    const struct held *held)
{
    const uint32_t maker = held->lease->provider;
    const uint32_t accuser = held_accuser(held);
    for (struct list_link *at = checks->queues.next; at != &checks->queues; at = at->next) {
        struct check_queue *queue = LIST_ELEMENT(at, struct check_queue, all);
        if (queue->maker == maker && queue->shy_of == held->shy_of && queue->accuser == accuser) {
            return queue;
        }
    }
    struct check_queue *queue = memory_allocate(exchange, sizeof *queue);
    if (queue != NULL) {
        queue->maker = maker;
        queue->shy_of = held->shy_of;
        queue->accuser = accuser;
        list_init(&queue->waiting);
        list_append(&checks->queues, &queue->all);
    }
    return queue;
}

void check_enqueue(struct exchange *exchange, const struct job *job, struct held *held)
{
    assert(held->queue == NULL);
    struct check_queue *queue = queue_of(exchange, job->checks, held);
    if (queue == NULL) {
        return;
    }
    struct list_link *before = &queue->waiting;
    if (queue->count > 0 &&
        came_before(held, LIST_ELEMENT(queue->waiting.previous, struct held, waiting))) {
        before = queue->waiting.next;
        while (came_before(LIST_ELEMENT(before, struct held, waiting), held)) {
            before = before->next;
        }
    }
    list_insert_before(before, &held->waiting);
    queue->count++;
    held->queue = queue;
}

void check_dequeue(struct held *held)
{
    if (held->queue != NULL) {
        list_remove(&held->waiting);
        held->queue->count--;
        held->queue = NULL;
    }
}

void check_requeue(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct held *held = held_of_check(job, index);
    if (held != NULL && held->queue == NULL) {
        check_enqueue(exchange, job, held);
    }
}

void check_unqueue(const struct job *job, uint32_t index)
{
    struct held *held = held_of_check(job, index);
    if (held != NULL) {
        check_dequeue(held);
    }
}

static bool may_judge(const struct exchange *exchange, const struct job *job,
                      const struct check_queue *queue, uint32_t referee)
{
    return !check_is_party(exchange, queue->maker, queue->accuser, referee) &&
           !jury_overruled(exchange, job, referee);
}

bool check_is_for(const struct exchange *exchange, const struct job *job, uint32_t index,
                  uint32_t referee)
{
    const struct held *held = held_of_check(job, index);
    return held != NULL &&
           !check_is_party(exchange, held->lease->provider, held_accuser(held), referee) &&
           !jury_overruled(exchange, job, referee);
}

/* Returns true when a referee other than the one without a verdict may take it. */
static bool has_other_referee(const struct exchange *exchange, const struct part *part,
                              const struct check_queue *queue)
{
    const struct job *job = part->job;
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        steps_add(exchange, 1);
        if (lease->part == part && lease->state == LEASE_ACTIVE &&
            lease->provider != queue->shy_of && may_judge(exchange, job, queue, lease->provider)) {
            return true;
        }
    }
    return false;
}

bool check_may_take(const struct exchange *exchange, const struct part *part,
                    const struct check_queue *queue, uint32_t provider)
{
    return queue->count > 0 && may_judge(exchange, part->job, queue, provider) &&
           (queue->shy_of != provider || !has_other_referee(exchange, part, queue));
}

uint32_t check_queue_next(struct exchange *exchange, struct lease *lease)
{
    struct job *job = lease->job;
    struct check_queue *best = NULL;
    for (struct list_link *at = job->checks->queues.next; at != &job->checks->queues;
         at = at->next) {
        struct check_queue *queue = LIST_ELEMENT(at, struct check_queue, all);
        if (!check_may_take(exchange, lease->part, queue, lease->provider)) {
            continue;
        }
        bool is_shy = queue->shy_of == lease->provider;
        bool best_is_shy = best != NULL && best->shy_of == lease->provider;
        if (best == NULL || (best_is_shy && !is_shy) ||
            (best_is_shy == is_shy && came_before(first_of(queue), first_of(best)))) {
            best = queue;
        }
    }
    if (best == NULL) {
        return NO_SUBTASK;
    }
    struct held *held = first_of(best);
    check_dequeue(held);
    uint32_t index = held_first_check(job) + held->index;
    return job_subtask(exchange, job, index) == NULL ? NO_SUBTASK : index;
}

static int compare_held(const void *left, const void *right)
{
    const struct held *const *a = left;
    const struct held *const *b = right;
    return came_before(*b, *a) - came_before(*a, *b);
}

void check_queue_restore(struct exchange *exchange, struct job *job)
{
    const uint32_t first = held_first_check(job);
    struct held **waiting = memory_allocate(exchange, first * sizeof(struct held *));
    size_t count = 0;
    for (uint32_t i = 0; waiting != NULL && i < first; i++) {
        struct held *held = job->checks->held[i];
        const struct subtask *check = held == NULL ? NULL : job_subtask(exchange, job, first + i);
        if (check != NULL && check->state == SUBTASK_WAITING) {
            waiting[count++] = held;
        }
    }
    if (count > 0) {
        qsort(waiting, count, sizeof(struct held *), compare_held);
    }
    for (size_t i = 0; i < count; i++) {
        check_enqueue(exchange, job, waiting[i]);
    }
    free(waiting);
}

bool check_counts(const struct exchange *exchange, const struct lease *lease, uint32_t index)
{
    const struct held *held = held_of_check(lease->job, index);
    return held != NULL &&
           !check_is_party(exchange, held->lease->provider, held_accuser(held), lease->provider);
}

bool check_is_party(const struct exchange *exchange, uint32_t maker, uint32_t accuser,
                    uint32_t referee)
{
    return standing_have_one_owner(exchange, maker, referee) ||
           (accuser != EXCHANGE_NO_ACCOUNT && standing_have_one_owner(exchange, accuser, referee));
}
