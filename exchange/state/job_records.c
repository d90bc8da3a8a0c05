#include "exchange/state/job_records.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/timers.h"
#include "exchange/state/tracking.h"

#include <assert.h>

struct subtask *job_subtask(struct exchange *exchange, struct job *job, uint32_t index)
{
    assert(index < job->subtasks);
    struct page **page = &job->pages[index / PAGE_SUBTASKS];
    if (*page == NULL) {
        const uint32_t first = index - index % PAGE_SUBTASKS;
        const uint32_t left = job->subtasks - first;
        const uint32_t count = left < PAGE_SUBTASKS ? left : PAGE_SUBTASKS;
        *page = memory_allocate(exchange, sizeof **page + count * sizeof(struct subtask));
        if (*page == NULL) {
            return NULL;
        }
        (*page)->job = job;
        (*page)->number = index / PAGE_SUBTASKS;
        (*page)->count = count;
        tracking_add(exchange, &(*page)->tracked, RECORD_PAGE);
    }
    return &(*page)->subtasks[index % PAGE_SUBTASKS];
}

uint32_t *job_tally(struct job *job, uint8_t state)
{
    uint32_t *const tallies[] = {
        [SUBTASK_WAITING] = &job->waiting,   [SUBTASK_RUNNING] = &job->running,
        [SUBTASK_CHECKING] = &job->checking, [SUBTASK_ACCEPTED] = &job->accepted,
        [SUBTASK_FAILED] = &job->failed,     [SUBTASK_CANCELLED] = &job->cancelled,
    };
    return tallies[state];
}

void job_subtask_changed(struct exchange *exchange, struct job *job, uint32_t index)
{
    tracking_touch(exchange, &job->pages[index / PAGE_SUBTASKS]->tracked);
    tracking_touch(exchange, &job->tracked);
}

void job_link_owner(struct exchange *exchange, struct job *job)
{
    struct member *owner = lookup_member(exchange, job->owner);
    list_append(&owner->jobs, &job->of_owner);
    owner->job_count++;
}

int64_t job_avoids_for_ns(const struct exchange *exchange, const struct job *job, uint32_t provider)
{
    for (uint32_t i = 0; i < job->avoided_count; i++) {
        if (job->avoided[i].provider == provider && job->avoided[i].until_ns > exchange->now_ns) {
            return job->avoided[i].until_ns - exchange->now_ns;
        }
    }
    return 0;
}

bool job_avoids(const struct exchange *exchange, const struct job *job, uint32_t provider)
{
    return job_avoids_for_ns(exchange, job, provider) > 0;
}

void job_avoid(struct exchange *exchange, struct job *job, uint32_t provider, int64_t for_ns)
{
    const int64_t until_ns = exchange->now_ns + for_ns;
    uint32_t at = 0;
    while (at < job->avoided_count && job->avoided[at].provider != provider) {
        at++;
    }
    if (at < job->avoided_count && job->avoided[at].until_ns >= until_ns) {
        return;
    }
    if (at == AVOIDED_PROVIDERS) { /* the one that ends first makes room */
        at = 0;
        for (uint32_t i = 1; i < AVOIDED_PROVIDERS; i++) {
            at = job->avoided[i].until_ns < job->avoided[at].until_ns ? i : at;
        }
    } else if (at == job->avoided_count) {
        job->avoided_count++;
    }
    job->avoided[at].provider = provider;
    job->avoided[at].until_ns = until_ns;
    timer_arm(exchange, TIMER_JOB, &job->id, job->avoided[at].until_ns);
    tracking_touch(exchange, &job->tracked);
}

bool job_lives_off_leases(const struct job *job)
{
    for (uint32_t i = 0; i < job->part_count; i++) {
        if (job->parts[i].handle != BOOK_NONE) {
            return false;
        }
    }
    return true;
}

bool job_type_challenges(uint8_t type)
{
    return type == EXCHANGE_LIMIT || type == EXCHANGE_MARKET;
}

bool job_waits_for_all(const struct job *job)
{
    return job->type == EXCHANGE_ALL_OR_NONE && job->parts[0].handle != BOOK_NONE;
}

uint32_t job_accused(const struct job *job)
{
    return job->checks == NULL ? 0 : job->checks->accused;
}

bool job_has_juries(const struct job *job)
{
    return job->checks != NULL && !list_empty(&job->checks->all_juries);
}
