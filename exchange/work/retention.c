/* Ended jobs are kept for retention, and the oldest one, of an account or of all, makes room for a
 * new job. Each account has a heap by age, because jobs end in no order. The accounts stand in a
 * heap by their oldest job. Only the oldest job of an account ever goes, so no job needs to know
 * its place. */
#include "exchange/work/retention.h"

#include "base/ahead.h"
#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/state/lookup.h"
#include "exchange/state/tracking.h"
#include "exchange/work/job_memory.h"
#include "exchange/work/lease_records.h"

#include <assert.h>
#include <stdlib.h>

enum { CHILDREN = 4 }; /* side by side in memory: half as many steps down as with two */

static void jobs_rise(struct ended_job *jobs, uint32_t at, struct ended_job ended)
{
    for (; at > 0 && ended.order < jobs[(at - 1) / CHILDREN].order; at = (at - 1) / CHILDREN) {
        jobs[at] = jobs[(at - 1) / CHILDREN];
    }
    jobs[at] = ended;
}

/* Sinks from the top, which is free. */
static void jobs_sink(struct ended_job *jobs, uint32_t count, struct ended_job ended)
{
    uint32_t at = 0;
    for (uint32_t first = 1; first < count; first = CHILDREN * at + 1) {
        const uint32_t end = count - first > CHILDREN ? first + CHILDREN : count;
        uint32_t least = first;
        for (uint32_t child = first + 1; child < end; child++) {
            least = jobs[child].order < jobs[least].order ? child : least;
        }
        if (ended.order < jobs[least].order) {
            break;
        }
        jobs[at] = jobs[least];
        at = least;
    }
    jobs[at] = ended;
}

static bool has_room(struct ended_jobs *ended)
{
    if (ended->count < ended->capacity) {
        return true;
    }
    uint32_t capacity = ended->capacity == 0 ? 16 : 2 * ended->capacity;
    struct ended_job *jobs = realloc(ended->jobs, capacity * sizeof *jobs);
    if (jobs != NULL) {
        ended->jobs = jobs;
        ended->capacity = capacity;
    }
    return jobs != NULL;
}

static uint64_t oldest_order(const struct member *member)
{
    return member->ended.jobs[0].order;
}

static void put(struct exchange *exchange, uint32_t at, struct member *member)
{
    exchange->enders[at] = member;
    member->ended.place = at;
}

/* Puts the account at its place again after its oldest job changed; place `at` is free. */
static void place(struct exchange *exchange, uint32_t at, struct member *member)
{
    const uint64_t order = oldest_order(member);
    for (; at > 0 && order < oldest_order(exchange->enders[(at - 1) / 2]); at = (at - 1) / 2) {
        put(exchange, at, exchange->enders[(at - 1) / 2]);
    }
    for (;;) {
        uint32_t child = 2 * at + 1;
        child += child + 1 < exchange->ender_count &&
                 oldest_order(exchange->enders[child + 1]) < oldest_order(exchange->enders[child]);
        if (child >= exchange->ender_count || order < oldest_order(exchange->enders[child])) {
            put(exchange, at, member);
            return;
        }
        put(exchange, at, exchange->enders[child]);
        at = child;
    }
}

static bool has_room_for_ender(struct exchange *exchange)
{
    if (exchange->ender_count < exchange->ender_capacity) {
        return true;
    }
    uint32_t capacity = exchange->ender_capacity == 0 ? 16 : 2 * exchange->ender_capacity;
    struct member **enders = realloc(exchange->enders, capacity * sizeof *enders);
    if (enders != NULL) {
        exchange->enders = enders;
        exchange->ender_capacity = capacity;
    }
    return enders != NULL;
}

void retention_add(struct exchange *exchange, struct job *job)
{
    struct member *owner = lookup_member(exchange, job->owner);
    struct ended_jobs *ended = &owner->ended;
    if (!has_room(ended) || (ended->count == 0 && !has_room_for_ender(exchange))) {
        exchange->is_out_of_memory = true;
        return;
    }
    const struct ended_job entry = {.order = job->order, .job = job};
    jobs_rise(ended->jobs, ended->count++, entry);
    if (ended->count == 1) {
        place(exchange, exchange->ender_count++, owner);
    } else if (ended->jobs[0].job == job) {
        place(exchange, ended->place, owner);
    }
}

/* The next job to go is in no cache, so its memory is fetched before it is needed. */
static void expect(const struct exchange *exchange)
{
    if (exchange->ender_count == 0) {
        return;
    }
    const struct ended_jobs *ended = &exchange->enders[0]->ended;
    const struct job *next = ended->jobs[0].job;
    memory_ahead(next, sizeof *next);
}

static void retention_remove(struct exchange *exchange, const struct job *job)
{
    struct member *owner = lookup_member(exchange, job->owner);
    struct ended_jobs *ended = &owner->ended;
    assert(ended->count > 0 && ended->jobs[0].job == job);
    ended->count--;
    if (ended->count > 0) {
        jobs_sink(ended->jobs, ended->count, ended->jobs[ended->count]);
        place(exchange, ended->place, owner);
    } else {
        struct member *last = exchange->enders[--exchange->ender_count];
        if (last != owner) {
            place(exchange, ended->place, last);
        }
    }
    expect(exchange);
}

static struct job *retention_oldest_of(const struct member *member)
{
    return member->ended.count == 0 ? NULL : member->ended.jobs[0].job;
}

struct job *retention_oldest(const struct exchange *exchange)
{
    return exchange->ender_count == 0 ? NULL : retention_oldest_of(exchange->enders[0]);
}

static void job_forget(struct exchange *exchange, struct job *job)
{
    assert(job->phase != JOB_PHASE_OPEN);
    while (!list_empty(&job->leases)) {
        lease_forget(exchange, LIST_ELEMENT(job->leases.next, struct lease, of_job));
    }
    retention_remove(exchange, job);
    table_remove(&exchange->jobs, &job->id);
    list_remove(&job->all);
    list_remove(&job->of_owner);
    list_remove(&job->report);
    for (uint32_t i = 0; i < job->part_count; i++) {
        list_remove(&job->parts[i].wanting);
        list_remove(&job->parts[i].spread);
        list_remove(&job->parts[i].back);
        list_remove(&job->parts[i].front);
        list_remove(&job->parts[i].challenge);
    }
    lookup_member(exchange, job->owner)->job_count--;
    exchange->job_count--;
    tracking_remove(exchange, &job->tracked);
    job_free(job);
}

void retention_make_room(struct exchange *exchange)
{
    const struct member *member = lookup_sender(exchange);
    struct job *own = member->ended.count >= ENDED_JOBS_KEPT ? retention_oldest_of(member) : NULL;
    if (own != NULL) {
        job_forget(exchange, own);
    }
    struct job *any =
        exchange->job_count >= exchange->limits.jobs ? retention_oldest(exchange) : NULL;
    if (any != NULL) {
        job_forget(exchange, any);
    }
}
