#include "exchange/agenda.h"

#include "exchange/lifecycle.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/asks.h"
#include "exchange/market/bids.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lookup.h"
#include "exchange/state/timers.h"
#include "exchange/work/jobs.h"
#include "exchange/work/juries.h"
#include "exchange/work/lease_records.h"
#include "exchange/work/lease_refill.h"
#include "exchange/work/stragglers.h"
#include "exchange/work/subtasks.h"

#include <stdlib.h>

enum { WEED_LEAST = 1024 };

static void fire_job(struct exchange *exchange, struct job *job, int64_t at_ns)
{
    if (job->phase != JOB_PHASE_OPEN) {
        return;
    }
    if (job->deadline_ns == at_ns) {
        job_meet_deadline(exchange, job);
    }
    if (job->is_closing) {
        if (job->phase == JOB_PHASE_OPEN && job->closing_ns == at_ns) {
            job_settle(exchange, job);
        }
        return;
    }
    if (job->good_till_ns == at_ns) {
        job_expire(exchange, job);
        return;
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        stragglers_due(exchange, &job->parts[i], at_ns);
    }
    if (job_has_juries(job)) {
        subtask_juries_due(exchange, job, at_ns);
        job_check(exchange, job);
    }
    for (uint32_t i = 0; job->phase == JOB_PHASE_OPEN && i < job->avoided_count; i++) {
        if (job->avoided[i].until_ns == at_ns) { /* the provider may serve it again */
            bids_want(exchange, job);
            return;
        }
    }
}

static void fire(struct exchange *exchange, const struct timer *timer)
{
    if (timer->kind == TIMER_LEASE) {
        struct lease *lease = lookup_lease(exchange, timer_lease_of_key(&timer->key));
        if (lease != NULL) {
            lease_due(exchange, lease, timer->at_ns);
        }
    } else if (timer->kind == TIMER_ASK) {
        struct ask *ask = table_find(&exchange->asks, &timer->key);
        if (ask != NULL && ask->good_till_ns == timer->at_ns) {
            ask_cancel(exchange, ask, CANCEL_EXPIRED);
        } else if (ask != NULL && ask->turns_ns == timer->at_ns) {
            ask_turn(exchange, ask);
        }
    } else {
        struct job *job = table_find(&exchange->jobs, &timer->key);
        if (job != NULL) {
            fire_job(exchange, job, timer->at_ns);
        }
    }
}

void agenda_arm_job(struct exchange *exchange, const struct job *job)
{
    if (job->is_closing && job->closing_ns != INT64_MAX) {
        timer_arm(exchange, TIMER_JOB, &job->id, job->closing_ns);
    }
    if (!job->is_closing && job->good_till_ns != 0) {
        timer_arm(exchange, TIMER_JOB, &job->id, job->good_till_ns);
    }
    if (job->deadline_ns > exchange->now_ns) {
        timer_arm(exchange, TIMER_JOB, &job->id, job->deadline_ns);
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        if (job->parts[i].straggler_ns != INT64_MAX) {
            timer_arm(exchange, TIMER_JOB, &job->id, job->parts[i].straggler_ns);
        }
    }
    for (uint32_t i = 0; i < job->avoided_count; i++) {
        if (job->avoided[i].until_ns > exchange->now_ns) {
            timer_arm(exchange, TIMER_JOB, &job->id, job->avoided[i].until_ns);
        }
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->state != LEASE_ENDED) {
            lease_arm(exchange, lease);
        }
    }
}

/* Returns true when the job still waits for that time. */
static bool job_awaits(const struct exchange *exchange, const struct job *job, int64_t at_ns)
{
    if (job->phase != JOB_PHASE_OPEN) {
        return false;
    }
    bool awaits = job->is_closing ? job->closing_ns == at_ns : job->good_till_ns == at_ns;
    awaits = awaits || (job->deadline_ns == at_ns && at_ns > exchange->now_ns);
    for (uint32_t i = 0; i < job->part_count; i++) {
        awaits = awaits || job->parts[i].straggler_ns == at_ns;
    }
    for (uint32_t i = 0; i < job->avoided_count; i++) {
        awaits = awaits || (job->avoided[i].until_ns == at_ns && at_ns > exchange->now_ns);
    }
    return awaits || juries_await(job, at_ns);
}

/* An entry of a lease may be early because the deadline has moved; the entry moves along. */
static bool stands(const struct exchange *exchange, struct timer *timer)
{
    if (timer->kind == TIMER_LEASE) {
        const struct lease *lease = lookup_lease(exchange, timer_lease_of_key(&timer->key));
        if (lease == NULL || lease->state == LEASE_ENDED || lease->state == LEASE_PROMISED) {
            return false;
        }
        const bool is_exposure =
            timer->at_ns == spot_exposed_ns(lease) && timer->at_ns > exchange->now_ns;
        const bool is_renewal =
            lease_is_renewal(lease, timer->at_ns) && timer->at_ns > exchange->now_ns;
        timer->at_ns = is_exposure || is_renewal ? timer->at_ns : lease_deadline(lease);
        return true;
    }
    if (timer->kind == TIMER_ASK) {
        const struct ask *ask = table_find(&exchange->asks, &timer->key);
        return ask != NULL && (ask->good_till_ns == timer->at_ns || ask->turns_ns == timer->at_ns);
    }
    const struct job *job = table_find(&exchange->jobs, &timer->key);
    return job != NULL && job_awaits(exchange, job, timer->at_ns);
}

static int compare_timers(const void *left, const void *right)
{
    return timer_compare(left, right);
}

/* Everything due has fired, so remaining entries lie ahead. A sorted array is a heap. */
void agenda_weed(struct exchange *exchange)
{
    if (exchange->timer_count < WEED_LEAST || exchange->timer_count < exchange->timer_rebuild_at) {
        return;
    }
    struct timer *timers = exchange->timers;
    size_t standing = 0;
    size_t kept = 0;
    for (size_t i = 0; i < exchange->timer_count; i++) {
        if (stands(exchange, &timers[i])) {
            timers[standing++] = timers[i];
        }
    }
    qsort(timers, standing, sizeof *timers, compare_timers);
    for (size_t i = 0; i < standing; i++) {
        if (i == 0 || timer_compare(&timers[i], &timers[kept - 1]) != 0) {
            timers[kept++] = timers[i];
        }
    }
    exchange->timer_count = kept;
    exchange->timer_rebuild_at = 2 * kept;
}

void agenda_fire(struct exchange *exchange)
{
    while (exchange->timer_count > 0 && exchange->timers[0].at_ns <= exchange->now_ns) {
        struct timer timer = timer_pop(exchange);
        fire(exchange, &timer);
    }
}
