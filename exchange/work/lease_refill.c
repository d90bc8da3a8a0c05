#include "exchange/work/lease_refill.h"

#include "exchange/lifecycle.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/bids.h"
#include "exchange/market/counterparts.h"
#include "exchange/market/daily.h"
#include "exchange/market/donations.h"
#include "exchange/market/escrow.h"
#include "exchange/market/part_limits.h"
#include "exchange/market/promises.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/effects.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lease_lanes.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/parts.h"
#include "exchange/state/tracking.h"
#include "exchange/work/choice/lateness.h"
#include "exchange/work/dispatch.h"
#include "exchange/work/jobs.h"
#include "exchange/work/lane_choice.h"
#include "exchange/work/lease_endings.h"
#include "exchange/work/lease_records.h"
#include "exchange/work/part_queues.h"
#include "exchange/work/stragglers.h"

#include <stdlib.h>

/* Returns the escrow that the lease needs to run until `end_ns`; call lease_find_unbilled
 * before. */
static int64_t needed_micro(const struct lease *lease, int64_t end_ns)
{
    int64_t lane_ns = 0; /* LEASE_AGE_MOST_NS on all lanes fits */
    if (lease->price_micro == 0) {
        return 0; /* nothing is charged, so nothing is rounded */
    }
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        const struct lane *lane = &lease->lanes[i];
        lane_ns +=
            end_ns - lane->unbilled_from_ns + lane->seen_ns - lane->paid_ns + lane->outage_ns;
    }
    int64_t micro = escrow_micro(lease->price_micro, lease->part->width, lane_ns);
    int64_t held_micro = escrow_micro(lease->price_micro, 1, lease->held_ns);
    /* The extra micro-credit covers earlier rounding of the running total that may still come
     * due. */
    return micro < INT64_MAX - held_micro ? micro + held_micro + 1 : INT64_MAX;
}

/* Returns true when the budget and the device's day have room until then; call lease_find_unbilled
 * before. */
static bool has_room_till(const struct exchange *exchange, struct lease *lease, int64_t end_ns)
{
    const int64_t more_ns = donation_promised_till(exchange, lease, end_ns);
    return needed_micro(lease, end_ns) - lease->reserved_micro <= escrow_free_micro(lease->job) &&
           (lease->device->ask->daily_ns == 0 ||
            more_ns - lease->promised_ns <= daily_left_ns(exchange, lease->device->ask));
}

/* Extends the lease at its price while its ask stands open for this account and the bid's limit
 * allows it. No other account may come first in the donation queue. The extension is a term, or
 * enough for one subtask when budget or day cover no more. */
static bool renew(struct exchange *exchange, struct lease *lease)
{
    struct job *job = lease->job;
    const struct member *provider = lookup_member(exchange, lease->provider);
    const struct ask *ask = lease->device->ask;
    if (ask == NULL || !ask->is_open || !ask_is_for(ask, job->owner) || exchange->is_halted ||
        provider->is_frozen ||
        lease->price_micro > part_limit_in(exchange, lease->part, lease->device->cell) ||
        /* The bid's limit may have been lowered. */
        exchange->now_ns - lease->granted_ns > LEASE_AGE_MOST_NS ||
        counterpart_donation_is_due(exchange, lease)) {
        return false;
    }
    lease_find_unbilled(exchange, lease);
    int64_t end_ns = exchange->now_ns + lease->part->term_ns;
    if (!has_room_till(exchange, lease, end_ns)) {
        end_ns = exchange->now_ns + part_needs_ns(lease->part);
    }
    if (!has_room_till(exchange, lease, end_ns)) {
        return false;
    }
    int64_t extra = needed_micro(lease, end_ns) - lease->reserved_micro;
    extra = extra > 0 ? extra : 0;
    lease->reserved_micro += extra;
    job->reserved_micro += extra;
    lease->term_end_ns = end_ns;
    lease->outage_ns = 0; /* the agent counts the new term from its receipt */
    promise_term(exchange, lease);
    tracking_touch(exchange, &job->tracked);
    tracking_touch(exchange, &lease->tracked);
    lease_effect(exchange, lease, EFFECT_LEASE_RENEW);
    if (part_outlasts_term(lease->part)) {
        lease_arm(exchange, lease);
    }
    return true;
}

/* Returned subtasks go to the lanes that finish them first; of equals, to idle lanes, then to lanes
 * that have run longest. They go before queued work, since a subtask lost with its provider has
 * waited long enough. */
void lease_place_retries(struct exchange *exchange, struct part *part)
{
    struct job *job = part->job;
    if (job->phase != JOB_PHASE_OPEN || job->is_closing || part->retry_head == NO_SUBTASK ||
        part->lanes == 0) {
        return;
    }
    struct open_lane *lanes = memory_allocate(exchange, part->lanes * sizeof *lanes);
    if (lanes == NULL) {
        return;
    }
    size_t count = lane_find_open(exchange, part, lanes);
    qsort(lanes, count, sizeof *lanes, lane_compare_open);
    for (size_t i = 0; i < count && exchange->attempt_count < exchange->limits.attempts; i++) {
        const struct lateness late = lateness_behind(
            lateness_of(exchange, lanes[i].lease), lanes[i].lease->lanes[lanes[i].lane].in_flight);
        if (job_has_juries(job) && !dispatch_has_choice(exchange, lanes[i].lease)) {
            continue; /* the provider has judged all that waits */
        }
        if (!lateness_leaves_work(&late, part)) {
            continue; /* all that waits would end after the deadline */
        }
        if (!lane_has_time(exchange, lanes[i].lease) && !renew(exchange, lanes[i].lease)) {
            continue; /* lease_refill() ends the lease when its work is done */
        }
        uint32_t index = part_next_retry(exchange, part, lanes[i].lease->provider, &late);
        if (index == NO_SUBTASK && !job_has_juries(job) && !late.is_bound) {
            break;
        }
        if (index == NO_SUBTASK) {
            continue;
        }
        dispatch_subtask(exchange, lanes[i].lease, lanes[i].lane, index, true);
    }
    free(lanes);
    bid_wants(exchange, part);
    effect_report_job(exchange, job);
}

/* The lease has nothing to run. It ends at once when its part's waiting work is for others, or when
 * no more work will come. Otherwise another part of the job may use its slots. */
static void become_useless(struct exchange *exchange, struct lease *lease)
{
    if (lease->live == 0 && (lease->part->waiting > 0 || part_is_over(lease->part))) {
        lease_end(exchange, lease, XEND_RETURNED, true);
        return;
    }
    lease_become_idle(exchange, lease);
    if (lease->live == 0 && lease->job->part_count > 1) {
        bids_want(exchange, lease->job);
    }
}

void lease_refill(struct exchange *exchange, struct lease *lease)
{
    struct job *job = lease->job;
    struct part *part = lease->part;
    if (lease->state != LEASE_ACTIVE || job->phase != JOB_PHASE_OPEN) {
        return;
    }
    if (job->is_closing) {
        if (job->reason == XREASON_EXPIRED) { /* others may have work for a long time */
            lease_become_idle(exchange, lease);
        }
        return;
    }
    dispatch_take_back_late(exchange, lease);
    if (!dispatch_has_choice(exchange, lease)) {
        straggler_help(exchange, lease);
        become_useless(exchange, lease);
        return;
    }
    if (!lane_has_time(exchange, lease) && !renew(exchange, lease)) {
        lease_wind_down(exchange, lease);
        job_check(exchange, job);
        return;
    }
    if (exchange->attempt_count >= exchange->limits.attempts) {
        lease_make_room(exchange);
    }
    dispatch_place_next(exchange, lease);
    dispatch_fill_lanes(exchange, lease, lane_depth(lease));
    if (part->retry_head != NO_SUBTASK && list_empty(&part->front)) {
        list_append(&exchange->fronts, &part->front);
    }
    if (!dispatch_has_choice(exchange, lease)) {
        straggler_help(exchange, lease); /* this lease took the last waiting subtask */
    }
    /* The lease ends when attempts are at their limit, and the job tries again. */
    lease_become_idle(exchange, lease);
    bid_wants(exchange, part); /* less than before, once nothing waits */
    effect_report_job(exchange, job);
}

/* Returns true while an attempt may still run. One that is beyond its limit, also if all others in
 * its lane went first, is forgotten or lost, and holds no lease any longer. */
static bool may_still_run(const struct exchange *exchange, const struct lease *lease)
{
    const int64_t limit_ns = lease->part->limit_ns;
    for (const struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        const struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        const int64_t lasts_ns = exchange->now_ns - attempt->dispatched_ns;
        if (!attempt->is_fenced &&
            lasts_ns / limit_ns < (int64_t)lease->lanes[attempt->lane].in_flight) {
            return true;
        }
    }
    return false;
}

void lease_due(struct exchange *exchange, struct lease *lease, int64_t at_ns)
{
    if (lease->state == LEASE_ENDED || lease->state == LEASE_PROMISED) {
        return;
    }
    if (spot_exposed_ns(lease) == at_ns) {
        spot_expose(exchange, lease);
    }
    if (lease_is_renewal(lease, at_ns) && may_still_run(exchange, lease) &&
        lease->job->phase == JOB_PHASE_OPEN && !lease->job->is_closing) {
        (void)renew(exchange,
                    lease); /* else the work ends with the term, or the next try does it */
    }
    if (lease_deadline(lease) > at_ns) {
        lease_arm(exchange, lease);
        return;
    }
    bool is_over = at_ns >= lease->term_end_ns + lease_grace_ns(lease);
    lease_end(exchange, lease, is_over ? lease_why_over(lease) : XEND_RETURNED, true);
    job_check(exchange, lease->job);
}
