#include "exchange/work/lease_records.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/effects.h"
#include "exchange/state/lookup.h"
#include "exchange/state/parts.h"
#include "exchange/state/residency.h"
#include "exchange/state/timers.h"
#include "exchange/state/tracking.h"
#include "exchange/work/attempts.h"
#include "exchange/work/runtime_stats.h"

#include <assert.h>
#include <stdlib.h>

void lease_effect(struct exchange *exchange, const struct lease *lease,
                  enum exchange_effect_type type)
{
    struct exchange_effect *effect = effect_emit(exchange, type, lease->provider);
    int64_t left_ns = lease->term_end_ns - exchange->now_ns;
    left_ns = left_ns > 0 ? left_ns : 0;
    if (type != EFFECT_LEASE_GRANT) {
        effect->lease = (struct exchange_lease_note){.lease = lease->id,
                                                     .term_ns = left_ns,
                                                     .reason = lease->end_reason,
                                                     .job = lease->job->id};
        return;
    }
    effect->grant = (struct exchange_grant){
        .lease = lease->id,
        .job = lease->job->id,
        .device = lease->device_id,
        .ask = lease->ask,
        .owner = lookup_member(exchange, lease->job->owner)->key,
        .owner_number = lease->job->owner,
        .slots = lease->slots,
        .width = lease->part->width,
        .price_micro = lease->price_micro,
        .term_ns = left_ns,
        .limit_ns = lease->part->limit_ns,
        .manifest = lease->job->manifest,
        .has_checkpoints = lease->job->has_checkpoints,
    };
}

int64_t lease_grace_ns(const struct lease *lease)
{
    const bool is_saving = lease->is_noticed && lease->job->has_checkpoints;
    return (is_saving ? SAVING_NS : LEASE_GRACE_NS) + lease->outage_ns;
}

int64_t lease_deadline(const struct lease *lease)
{
    int64_t at_ns = lease->term_end_ns + lease_grace_ns(lease);
    bool is_idle = lease->idle_since_ns != INT64_MAX;
    return is_idle && lease->idle_since_ns + LEASE_IDLE_NS < at_ns
               ? lease->idle_since_ns + LEASE_IDLE_NS
               : at_ns;
}

enum { RENEWAL_FIRST = 2, RENEWAL_LAST = 8 }; /* parts of a term: 1/2, 1/4, 1/8 */

bool lease_is_renewal(const struct lease *lease, int64_t at_ns)
{
    for (int64_t part = RENEWAL_FIRST; part <= RENEWAL_LAST; part *= 2) {
        if (part_outlasts_term(lease->part) && lease->state == LEASE_ACTIVE &&
            at_ns == lease->term_end_ns - lease->part->term_ns / part) {
            return true;
        }
    }
    return false;
}

/* Returns the next time at which the lease is renewed while its work goes on, or INT64_MAX. */
static int64_t next_renewal_ns(const struct exchange *exchange, const struct lease *lease)
{
    for (int64_t part = RENEWAL_FIRST; part <= RENEWAL_LAST; part *= 2) {
        const int64_t at_ns = lease->term_end_ns - lease->part->term_ns / part;
        if (at_ns > exchange->now_ns && lease_is_renewal(lease, at_ns)) {
            return at_ns;
        }
    }
    return INT64_MAX;
}

void lease_arm(struct exchange *exchange, const struct lease *lease)
{
    if (lease->state == LEASE_PROMISED) {
        return; /* a promised lease begins when the former lease ends */
    }
    struct id128 key = timer_key_of_lease(lease->id);
    timer_arm(exchange, TIMER_LEASE, &key, lease_deadline(lease));
    const int64_t exposed_ns = spot_exposed_ns(lease);
    if (exposed_ns > exchange->now_ns && exposed_ns != INT64_MAX) {
        timer_arm(exchange, TIMER_LEASE, &key, exposed_ns);
    }
    const int64_t renewal_ns = next_renewal_ns(exchange, lease);
    if (renewal_ns != INT64_MAX) {
        timer_arm(exchange, TIMER_LEASE, &key, renewal_ns);
    }
}

/* Lease numbers rise, so appending keeps the list in order. */
void lease_link_provider(struct exchange *exchange, struct lease *lease)
{
    struct provider *provider = lookup_member(exchange, lease->provider)->provider;
    list_append(&provider->leases, &lease->of_provider);
    provider->lease_count++;
}

void lease_refill_later(struct exchange *exchange, struct lease *lease)
{
    if (list_empty(&lease->refill)) {
        list_append(&exchange->refills, &lease->refill);
    }
}

void lease_refill_next(struct exchange *exchange, struct lease *lease)
{
    list_remove(&lease->refill);
    list_insert_before(exchange->refills.next, &lease->refill);
}

void lease_become_idle(struct exchange *exchange, struct lease *lease)
{
    if (lease->live == 0 && lease->idle_since_ns == INT64_MAX) {
        lease->idle_since_ns = exchange->now_ns;
        tracking_touch(exchange, &lease->tracked);
        lease_arm(exchange, lease);
    }
}

void lease_release_reserve(struct exchange *exchange, struct lease *lease)
{
    int64_t total_micro = 0;
    bool fits = checked_muldiv_floor(lease->price_micro, lease->paid_ns + lease->held_ns,
                                     NS_PER_HOUR, &total_micro);
    assert(fits); /* a longer time at this price fitted */
    (void)fits;
    const int64_t due_micro = lease->held_count == 0 ? 0 : total_micro - lease->charged_micro;
    assert(due_micro >= 0 && due_micro <= lease->reserved_micro);
    lease->job->reserved_micro -= lease->reserved_micro - due_micro;
    lease->reserved_micro = due_micro;
    tracking_touch(exchange, &lease->tracked);
    tracking_touch(exchange, &lease->job->tracked);
}

void lease_forget(struct exchange *exchange, struct lease *lease)
{
    assert(lease->state == LEASE_ENDED);
    while (!list_empty(&lease->attempts)) {
        attempt_drop(exchange, LIST_ELEMENT(lease->attempts.next, struct attempt, of_lease));
    }
    table_remove(&exchange->leases, &lease->id);
    list_remove(&lease->of_job);
    runtime_stats_take(lease);
    list_remove(&lease->refill);
    list_remove(&lease->exposing);
    exchange->lease_count--;
    tracking_remove(exchange, &lease->tracked);
    residency_forget(lease);
    free(lease->lanes);
    free(lease);
}

/* Ended leases are kept for reports and late results, but make room for new ones. The oldest jobs
 * lose their ended leases first. */
void lease_make_room(struct exchange *exchange)
{
    uint32_t left = ENDED_LEASES_FORGOTTEN;
    for (struct list_link *at = exchange->job_list.next; at != &exchange->job_list; at = at->next) {
        struct job *job = LIST_ELEMENT(at, struct job, all);
        for (struct list_link *link = job->leases.next; link != &job->leases;) {
            struct lease *lease = LIST_ELEMENT(link, struct lease, of_job);
            link = link->next;
            if (lease->state == LEASE_ENDED && lease->held_count == 0) {
                lease_forget(exchange, lease);
                if (--left == 0) {
                    return;
                }
            }
        }
    }
}
