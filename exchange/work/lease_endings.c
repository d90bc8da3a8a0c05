#include "exchange/work/lease_endings.h"

#include "exchange/lifecycle.h"
#include "exchange/market/bids.h"
#include "exchange/market/devices.h"
#include "exchange/market/lease_granting.h"
#include "exchange/market/promises.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/effects.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lookup.h"
#include "exchange/state/residency.h"
#include "exchange/state/tracking.h"
#include "exchange/work/attempts.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/lease_records.h"
#include "exchange/work/subtask_makers.h"
#include "exchange/work/subtasks.h"

/* Handles a provider's failure at the subtask. The subtask goes elsewhere, unless it has had too
 * many attempts. */
static void crash(struct exchange *exchange, struct job *job, uint32_t index)
{
    struct subtask *subtask = job_subtask(exchange, job, index);
    if (subtask->state != SUBTASK_RUNNING) {
        return; /* the subtask goes on without this attempt already */
    }
    if (subtask->attempts >= VANISHED_MOST && !job->is_closing) {
        subtask_decide(exchange, job, index, SUBTASK_FAILED);
    } else {
        subtask_requeue(exchange, job, index);
    }
}

static void attempt_vanish(struct exchange *exchange, struct lease *lease, struct attempt *attempt)
{
    bool goes_on_without = attempt->is_doubted;
    uint32_t index = attempt->key.index;
    attempt_fence(exchange, lease, attempt);
    if (!goes_on_without && job_subtask(exchange, lease->job, index)->live == 0) {
        crash(exchange, lease->job, index);
    }
}

void lease_give_up_attempts(struct exchange *exchange, struct job *job, uint32_t index)
{
    const uint32_t attempts = job_subtask(exchange, job, index)->attempts;
    for (uint32_t number = 1; number <= attempts; number++) {
        struct attempt *attempt = attempt_of(exchange, job, index, number);
        if (attempt == NULL || attempt->is_fenced) {
            continue;
        }
        struct lease *lease = attempt->lease;
        if (!attempt->is_withdrawn) {
            attempt_withdraw(exchange, attempt);
        }
        attempt_fence(exchange, lease, attempt);
        lease_end_if_failing(exchange, lease);
        if (lease->state == LEASE_ACTIVE) {
            lease_refill_later(exchange, lease);
        }
    }
}

void lease_attempt_missing(struct exchange *exchange, struct lease *lease, struct attempt *attempt)
{
    if (!attempt->is_fenced) {
        attempt_vanish(exchange, lease, attempt);
    }
    attempt_drop(exchange, attempt);
    tracking_touch(exchange, &lease->tracked);
}

void lease_suspect(struct exchange *exchange, struct lease *lease)
{
    if (lease->state == LEASE_PROMISED) { /* the slots may come late, so the job bids elsewhere */
        lease_end(exchange, lease, XEND_RETURNED, false);
        return;
    }
    if (lease->state != LEASE_ACTIVE && lease->state != LEASE_ENDING) {
        return;
    }
    struct job *job = lease->job;
    if (lease->state == LEASE_ACTIVE) {
        lease_move(&lease->state, LEASE_SUSPECT);
        lease->part->lanes -= lease->lane_count;
        spot_expose(exchange, lease);
    }
    tracking_touch(exchange, &lease->tracked);
    for (struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        struct subtask *subtask = job_subtask(exchange, job, attempt->key.index);
        bool may_go_on = subtask->state == SUBTASK_RUNNING && subtask->attempts < ATTEMPTS_MOST;
        if (!attempt->is_fenced && !attempt->is_doubted && may_go_on && !job->is_closing) {
            attempt->is_doubted = true;
            subtask->live--;
            job_subtask_changed(exchange, job, attempt->key.index);
            if (subtask->live == 0) { /* no other attempt is out */
                subtask_requeue(exchange, job, attempt->key.index);
            }
        }
    }
    effect_report_job(exchange, job);
    bids_want(exchange, job);
}

/* A returned agent is trusted to have its attempts until its statement says otherwise. A subtask
 * that nobody else has started is not started again, since its result may be on its way. */
static void trust_again(struct exchange *exchange, struct lease *lease, struct attempt *attempt)
{
    struct job *job = lease->job;
    struct subtask *subtask = job_subtask(exchange, job, attempt->key.index);
    if (!attempt->is_doubted || attempt->is_fenced || subtask->state != SUBTASK_WAITING ||
        !subtask_may_run_on(exchange, job, attempt->key.index, lease->provider)) {
        return;
    }
    attempt->is_doubted = false;
    check_unqueue(job, attempt->key.index);
    subtask_becomes(exchange, job, attempt->key.index, SUBTASK_RUNNING);
    subtask->live++;
    job_subtask_changed(exchange, job, attempt->key.index);
}

void lease_returned(struct exchange *exchange, struct lease *lease)
{
    if (lease->state != LEASE_SUSPECT) {
        return;
    }
    for (struct list_link *at = lease->attempts.next;
         at != &lease->attempts && !lease->job->is_closing; at = at->next) {
        trust_again(exchange, lease, LIST_ELEMENT(at, struct attempt, of_lease));
    }
    lease_move(&lease->state, LEASE_ACTIVE);
    lease->part->lanes += lease->lane_count;
    spot_expose(exchange, lease);
    tracking_touch(exchange, &lease->tracked);
    effect_report_job(exchange, lease->job);
    bids_want(exchange, lease->job);
    lease_refill_later(exchange, lease);
}

/* Stops new work: running attempts may end, and the job buys its lanes elsewhere. */
void lease_wind_down(struct exchange *exchange, struct lease *lease)
{
    if (lease->state != LEASE_ACTIVE && lease->state != LEASE_SUSPECT) {
        return;
    }
    if (lease->live == 0) {
        lease_end(exchange, lease, XEND_TERM, true);
        return;
    }
    if (lease->state == LEASE_ACTIVE) {
        lease->part->lanes -= lease->lane_count;
    }
    lease_move(&lease->state, LEASE_ENDING);
    list_remove(&lease->refill);
    spot_expose(exchange, lease);
    tracking_touch(exchange, &lease->tracked);
}

uint8_t lease_why_over(const struct lease *lease)
{
    return lease->is_noticed ? XEND_PREEMPTED : XEND_TERM;
}

/* The slots pass from the former lease directly, so no other bid comes between. */
static void lease_begin(struct exchange *exchange, struct lease *lease, struct device *device)
{
    const struct member *provider = lookup_member(exchange, lease->provider);
    lease->former = 0;
    if (provider->provider->state != PROVIDER_PRESENT || provider->is_frozen ||
        !device->is_advertised) {
        lease_end(exchange, lease, XEND_RETURNED, false);
        return;
    }
    lease_move(&lease->state, LEASE_ACTIVE);
    lease->granted_ns = exchange->now_ns;
    lease->term_end_ns = exchange->now_ns + lease->part->term_ns;
    promise_term(exchange, lease);
    tracking_touch(exchange, &lease->tracked);
    lease_start_term(exchange, lease);
    lease_effect(exchange, lease, EFFECT_LEASE_GRANT);
    lease_refill_later(exchange, lease);
    spot_expose(exchange, lease);
    effect_report_job(exchange, lease->job);
}

/* The promised lease gets the slots first. */
static void free_slots(struct exchange *exchange, struct lease *lease, struct device *device)
{
    struct lease *successor = lease->successor;
    device->leased -= lease->slots;
    lease->successor = NULL;
    if (successor != NULL) {
        lease_begin(exchange, successor, device);
    }
    device_slots_changed(exchange, device);
    device_drop_if_gone(exchange, device);
}

void lease_end(struct exchange *exchange, struct lease *lease, uint8_t reason, bool tell)
{
    struct job *job = lease->job;
    struct device *device = lease->device;
    const bool had_slots = lease->state != LEASE_PROMISED;
    if (lease->state == LEASE_ACTIVE || lease->state == LEASE_PROMISED) {
        lease->part->lanes -= lease->lane_count;
    }
    lease_move(&lease->state, LEASE_ENDED);
    spot_expose(exchange, lease);
    if (lease->former != 0) { /* the former lease still ends, and its slots are free then */
        lookup_lease(exchange, lease->former)->successor = NULL;
        lease->former = 0;
    }
    lease->end_reason = reason;
    lease->ended_ns = exchange->now_ns;
    lease->idle_since_ns = INT64_MAX;
    for (struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        if (!attempt->is_fenced) {
            attempt_vanish(exchange, lease, attempt);
        }
    }
    lease_release_reserve(exchange, lease);
    promise_end(exchange, lease);
    list_remove(&lease->refill);
    tracking_touch(exchange, &lease->tracked);
    tracking_touch(exchange, &job->tracked);
    if (tell) {
        lease_effect(exchange, lease, EFFECT_LEASE_END);
    }
    lease->device = NULL;
    residency_forget(lease);
    list_remove(&lease->of_provider);
    lookup_member(exchange, lease->provider)->provider->lease_count--;
    if (had_slots) {
        free_slots(exchange, lease, device);
    }
    effect_report_job(exchange, job);
    bids_want(exchange, job);
}

void lease_end_if_failing(struct exchange *exchange, struct lease *lease)
{
    if (lease->state != LEASE_ENDED && lease->failures_in_row >= LEASE_FAILURES_MOST) {
        job_avoid(exchange, lease->job, lease->provider, AVOID_NS);
        lease_end(exchange, lease, XEND_FAILED, true);
    } else if (lease->state == LEASE_ENDING && lease->live == 0) {
        lease_end(exchange, lease, lease_why_over(lease), true);
    }
}
