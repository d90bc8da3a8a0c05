/* The progress of an open job is derived from its attempts in flight. A lane runs one attempt at a
 * time, and its other attempts wait. Agents do not report a start, but they start attempts in a
 * known order (P18). */
#include "exchange/work/progress.h"

#include "exchange/lifecycle.h"
#include "exchange/state/lease_lanes.h"
#include "exchange/state/names.h"
#include "exchange/state/parts.h"
#include "exchange/state/steps.h"

#include <stdlib.h>

/* Counts attempts that wait in their lane for another one. Nothing is known of a lease whose
 * provider is silent. */
static uint32_t behind_in(const struct lease *lease)
{
    uint32_t busy = 0;
    if (lease->live == 0 || lease->state == LEASE_SUSPECT) {
        return 0;
    }
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        busy += lease->lanes[i].in_flight > 0;
    }
    return lease->live > busy ? lease->live - busy : 0;
}

uint32_t progress_queued(const struct job *job, const struct part *part)
{
    uint32_t queued = 0;
    const uint32_t running = part == NULL ? job->running : part->running;
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        queued += part == NULL || lease->part == part ? behind_in(lease) : 0;
    }
    return queued < running ? queued : running;
}

static int64_t within(int128 ns)
{
    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

/* Sums over leases. */
struct result_sum {
    int128 said_ns, took_ns; /* sums over the results in `timed` */
    uint64_t timed;
};

/* Adds the time that a lease's results took, and the expectation of the same results. Short
 * subtasks that end first would distort a mean over all. */
static void add_results(struct result_sum *sum, const struct lease *lease)
{
    const bool is_apart = lease->said_ns > 0;
    sum->timed += lease->accepted;
    sum->said_ns += (int128)(is_apart ? lease->said_ns : lease->part->expect_ns) * lease->accepted;
    sum->took_ns += (int128)(is_apart ? lease->took_ns : lease->mean_ns) * lease->accepted;
}

struct progress_pace progress_of_leases(const struct job *job)
{
    struct result_sum sum = {.timed = 0};
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->mean_ns > 0 && !part_is_checks(lease->part)) {
            add_results(&sum, lease);
        }
    }
    return (struct progress_pace){sum.timed, within(sum.said_ns), within(sum.took_ns)};
}

static void mark(uint8_t *states, uint32_t index, uint8_t from, uint8_t to)
{
    if (states[index] == from) {
        states[index] = to;
    }
}

/* A subtask in two lanes runs where it is first; a subtask that is only behind others is queued. */
static void mark_lanes(const struct job *job, const struct attempt **first, bool is_first,
                       uint8_t *states)
{
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->live == 0) {
            continue;
        }
        lease_find_first(lease, first);
        for (const struct list_link *link = lease->attempts.next; link != &lease->attempts;
             link = link->next) {
            const struct attempt *attempt = LIST_ELEMENT(link, struct attempt, of_lease);
            bool runs = lease->state == LEASE_SUSPECT || first[attempt->lane] == attempt;
            if (attempt->is_fenced || attempt->is_doubted || runs != is_first) {
                continue;
            }
            mark(states, attempt->key.index, runs ? SUBTASK_QUEUED : SUBTASK_RUNNING,
                 runs ? SUBTASK_RUNNING : SUBTASK_QUEUED);
        }
    }
}

size_t exchange_subtasks(const struct exchange *exchange, const struct id128 *id,
                         uint8_t *ret_states, uint32_t *ret_tries, size_t limit)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job == NULL || job->phase != JOB_PHASE_OPEN || job->subtasks > limit) {
        return 0;
    }
    for (uint32_t i = 0; i < job->subtasks; i++) {
        const struct page *page = job->pages[i / PAGE_SUBTASKS];
        const struct subtask *subtask = page == NULL ? NULL : &page->subtasks[i % PAGE_SUBTASKS];
        bool is_given_up =
            job->is_closing && (subtask == NULL || subtask->state == SUBTASK_WAITING);
        ret_states[i] = is_given_up       ? SUBTASK_CANCELLED
                        : subtask == NULL ? SUBTASK_WAITING
                                          : subtask->state;
        ret_tries[i] = subtask == NULL ? 0 : subtask->attempts;
    }
    /* Four walks look at the running subtasks. */
    steps_add(exchange, job->subtasks + 8 * (uint64_t)job->running);
    const struct attempt **first = calloc(lease_most_lanes(job) + 1, sizeof *first);
    if (first != NULL) { /* NULL: all are reported as running */
        mark_lanes(job, first, false, ret_states);
        mark_lanes(job, first, true, ret_states);
    }
    free(first);
    return job->subtasks;
}

/* Returns the last attempt that is out, or NULL. */
static const struct attempt *attempt_out(const struct exchange *exchange, const struct job *job,
                                         uint32_t index, uint32_t tries)
{
    for (uint32_t number = tries; number > 0; number--) {
        const struct attempt_key key = {.job = job->order, .index = index, .attempt = number};
        const struct attempt *attempt = table_find(&exchange->attempts, &key);
        steps_add(exchange, 4);
        if (attempt != NULL && !attempt->is_fenced) {
            return attempt;
        }
    }
    return NULL;
}

/* Counts attempts that were sent before to the same lane. */
static uint32_t count_before(const struct exchange *exchange, const struct attempt *attempt)
{
    uint32_t count = 0;
    for (const struct list_link *at = attempt->of_lease.previous; at != &attempt->lease->attempts;
         at = at->previous) {
        const struct attempt *other = LIST_ELEMENT(at, struct attempt, of_lease);
        count += !other->is_fenced && other->lane == attempt->lane;
        steps_add(exchange, 1);
    }
    return count;
}

bool exchange_subtask(const struct exchange *exchange, const struct id128 *id, uint32_t index,
                      struct exchange_subtask_row *ret_row)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job == NULL || job->phase != JOB_PHASE_OPEN || index >= job->subtasks) {
        return false;
    }
    const struct page *page = job->pages[index / PAGE_SUBTASKS];
    static const struct subtask untouched = {.state = SUBTASK_WAITING};
    const struct subtask *subtask =
        page == NULL ? &untouched : &page->subtasks[index % PAGE_SUBTASKS];
    const struct attempt *attempt = attempt_out(exchange, job, index, subtask->attempts);
    const bool is_given_up = job->is_closing && subtask->state == SUBTASK_WAITING;
    *ret_row = (struct exchange_subtask_row){
        .state = is_given_up ? SUBTASK_CANCELLED : subtask->state,
        .part = part_of(job, index)->number,
        .tries = subtask->attempts,
        .waits_on = job->graph != NULL && subtask->state == SUBTASK_WAITING
                        ? job->graph->blocked[index]
                        : 0,
        .provider = attempt == NULL ? EXCHANGE_NO_ACCOUNT : attempt->lease->provider,
        .behind = attempt == NULL ? 0 : count_before(exchange, attempt),
    };
    if (attempt != NULL) {
        name_copy(ret_row->device, attempt->lease->label);
    }
    return true;
}
