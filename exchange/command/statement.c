/* A provider states which attempts it has. The exchange ends or repeats what does not agree. */
#include "exchange/command/apply.h"
#include "exchange/lifecycle.h"
#include "exchange/market/providers.h"
#include "exchange/state/effects.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/tracking.h"
#include "exchange/work/attempts.h"
#include "exchange/work/jobs.h"
#include "exchange/work/lease_endings.h"
#include "exchange/work/lease_records.h"
#include "exchange/work/subtask_makers.h"

#include <stdlib.h>
#include <string.h>

static int compare_held(const void *left, const void *right)
{
    const struct exchange_held *a = left;
    const struct exchange_held *b = right;
    if (a->lease != b->lease) {
        return a->lease < b->lease ? -1 : 1;
    }
    if (a->index != b->index) {
        return a->index < b->index ? -1 : 1;
    }
    return (a->attempt > b->attempt) - (a->attempt < b->attempt);
}

struct held_list {
    const struct exchange_held *items; /* sorted */
    size_t count;
    int64_t as_of_ns; /* time of the agent's Welcome */
};

static const struct exchange_held *held_first_of(const struct held_list *held, uint64_t lease)
{
    size_t low = 0;
    for (size_t high = held->count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (held->items[middle].lease < lease) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < held->count && held->items[low].lease == lease ? &held->items[low] : NULL;
}

static bool held_has(const struct held_list *held, uint64_t lease, uint32_t index, uint32_t attempt)
{
    const struct exchange_held key = {.lease = lease, .index = index, .attempt = attempt};
    return bsearch(&key, held->items, held->count, sizeof key, compare_held) != NULL;
}

/* The broker counts on the attempt and the agent does not have it. An attempt sent before the
 * agent's Welcome is lost, and its subtask is queued again. A later one may be on its way, so
 * sending it again does no harm, unless the provider may not run it any more. A doubted one was
 * queued before. Returns true when the agent has lost work. */
static bool tell_missing(struct exchange *exchange, struct lease *lease, struct attempt *attempt,
                         int64_t as_of_ns)
{
    bool was_sent_before = attempt->dispatched_ns < as_of_ns;
    bool is_wanted = !attempt->is_fenced && !attempt->is_withdrawn && !attempt->is_doubted;
    bool may_run = subtask_may_run_on(exchange, lease->job, attempt->key.index, lease->provider);
    if (was_sent_before || attempt->is_doubted || (is_wanted && !may_run)) {
        lease_attempt_missing(exchange, lease, attempt);
    } else if (is_wanted) {
        attempt_effect(exchange, lease, attempt, EFFECT_DISPATCH);
    }
    return was_sent_before && is_wanted;
}

/* Compares the broker's view of the lease with the agent's. Any loss is one failure, since one
 * restart causes it. */
static void reconcile(struct exchange *exchange, struct lease *lease, const void *context)
{
    const struct held_list *held = context;
    bool is_held = held_first_of(held, lease->id) != NULL;
    bool has_lost = false;
    if (lease->state == LEASE_PROMISED) {
        return; /* the agent hears of a promised lease when it begins */
    }
    if (!is_held) {
        lease_effect(exchange, lease, EFFECT_LEASE_GRANT);
    }
    if (lease->is_noticed) {
        lease_effect(exchange, lease, EFFECT_LEASE_NOTICE);
    }
    for (struct list_link *at = lease->attempts.next; at != &lease->attempts;) {
        struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        at = at->next;
        if (!held_has(held, lease->id, attempt->key.index, attempt->key.attempt)) {
            has_lost = tell_missing(exchange, lease, attempt, held->as_of_ns) || has_lost;
        } else if (attempt->is_fenced || attempt->is_withdrawn) {
            attempt_effect(exchange, lease, attempt, EFFECT_WITHDRAW);
        }
    }
    if (has_lost) {
        lease->failures_in_row++;
        tracking_touch(exchange, &lease->tracked);
    }
    lease_end_if_failing(exchange, lease);
    if (lease->state != LEASE_ENDED) {
        lease_refill_later(exchange, lease);
    }
    job_check(exchange, lease->job);
}

/* The agent holds a lease that is not its own or has ended, or a decided attempt. The lease or
 * attempt ends without a result. */
static void tell_unknown(struct exchange *exchange, const struct held_list *held)
{
    uint32_t number = exchange->command->account;
    for (size_t i = 0; i < held->count; i++) {
        const struct exchange_held *item = &held->items[i];
        bool is_first = i == 0 || item->lease != held->items[i - 1].lease;
        const struct lease *lease = lookup_lease(exchange, item->lease);
        if (lease == NULL || lease->provider != number || lease->state == LEASE_ENDED) {
            if (is_first) {
                struct exchange_effect *effect = effect_emit(exchange, EFFECT_LEASE_END, number);
                effect->lease.lease = item->lease;
                effect->lease.reason = XEND_UNKNOWN;
            }
        } else if (item->attempt != 0 &&
                   attempt_find(exchange, lease, item->index, item->attempt) == NULL) {
            effect_emit(exchange, EFFECT_WITHDRAW, number)->work = (struct exchange_work){
                .lease = item->lease, .index = item->index, .attempt = item->attempt};
        }
    }
}

void apply_statement(struct exchange *exchange, const struct exchange_statement *statement)
{
    const struct member *member = lookup_sender(exchange);
    if ((member->roles & XROLE_PROVIDER) == 0) {
        effect_reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    struct exchange_held *sorted =
        memory_allocate(exchange, (statement->count + 1) * sizeof *sorted);
    if (sorted == NULL) {
        return;
    }
    if (statement->count > 0) {
        memcpy(sorted, statement->held, statement->count * sizeof *sorted);
        qsort(sorted, statement->count, sizeof *sorted, compare_held);
    }
    /* A time in the future is wrong: nobody has seen messages that are not sent yet. */
    int64_t as_of_ns =
        statement->as_of_ns < exchange->now_ns ? statement->as_of_ns : exchange->now_ns;
    const struct held_list held = {
        .items = sorted, .count = statement->count, .as_of_ns = as_of_ns};
    tell_unknown(exchange, &held);
    if (member->provider != NULL) {
        provider_for_leases(exchange, member->provider, reconcile, &held);
    }
    free(sorted);
}
