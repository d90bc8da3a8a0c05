/* Which ended job is the oldest, of all and of one account: it makes room for a new one. Heaps by age: jobs end in no order,
 * and those that wait for ever stand in nobody's way. */
#include "exchange/state.h"

#include <stdlib.h>

static void put(struct job_heap *heap, enum heap_kind kind, uint32_t at, struct ended_job ended)
{
    heap->jobs[at] = ended;
    ended.job->heap_at[kind] = at;
}

/* From that place, which is free, to where it belongs. */
static void sift(struct job_heap *heap, enum heap_kind kind, uint32_t at, struct ended_job ended)
{
    while (at > 0 && ended.order < heap->jobs[(at - 1) / 2].order) {
        put(heap, kind, at, heap->jobs[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * at + 1;
        child += child + 1 < heap->count && heap->jobs[child + 1].order < heap->jobs[child].order;
        if (child >= heap->count || ended.order < heap->jobs[child].order) {
            put(heap, kind, at, ended);
            return;
        }
        put(heap, kind, at, heap->jobs[child]);
        at = child;
    }
}

static bool has_room(struct job_heap *heap)
{
    if (heap->count < heap->capacity) {
        return true;
    }
    uint32_t capacity = heap->capacity == 0 ? 16 : 2 * heap->capacity;
    struct ended_job *jobs = realloc(heap->jobs, capacity * sizeof *jobs);
    if (jobs != NULL) {
        heap->jobs = jobs;
        heap->capacity = capacity;
    }
    return jobs != NULL;
}

static bool add(struct job_heap *heap, enum heap_kind kind, struct job *job)
{
    if (!has_room(heap)) {
        return false;
    }
    heap->count++;
    sift(heap, kind, heap->count - 1, (struct ended_job){.order = job->order, .job = job});
    return true;
}

static void take_out(struct job_heap *heap, enum heap_kind kind, const struct job *job)
{
    uint32_t at = job->heap_at[kind];
    assert(heap->jobs[at].job == job);
    struct ended_job last = heap->jobs[--heap->count];
    if (last.job != job) {
        sift(heap, kind, at, last);
    }
}

void ended_add(struct exchange *exchange, struct job *job)
{
    struct member *owner = member_by_number(exchange, job->owner);
    if (!add(&exchange->ended, HEAP_OF_ALL, job) || !add(&owner->ended, HEAP_OF_OWNER, job)) {
        exchange->is_out_of_memory = true;
    }
}

void ended_remove(struct exchange *exchange, const struct job *job)
{
    take_out(&exchange->ended, HEAP_OF_ALL, job);
    take_out(&member_by_number(exchange, job->owner)->ended, HEAP_OF_OWNER, job);
}

struct job *ended_oldest(const struct job_heap *heap)
{
    return heap->count == 0 ? NULL : heap->jobs[0].job;
}
