/* A fill is a trade that becomes a lease. This file runs the turns of a step until no order wants
 * anything. lease_granting.c grants the leases. */
#include "exchange/market/market.h"

#include "exchange/lifecycle.h"
#include "exchange/market/all_or_none.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/asks.h"
#include "exchange/market/bids.h"
#include "exchange/market/counterparts.h"
#include "exchange/market/escrow.h"
#include "exchange/market/fill_prices.h"
#include "exchange/market/lease_granting.h"
#include "exchange/market/part_eligibility.h"
#include "exchange/market/part_limits.h"
#include "exchange/market/spot.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lease_lanes.h"
#include "exchange/state/memory.h"
#include "exchange/work/jobs.h"
#include "exchange/work/lane_choice.h"
#include "exchange/work/lease_endings.h"
#include "exchange/work/lease_records.h"
#include "exchange/work/lease_refill.h"
#include "exchange/work/part_queues.h"
#include "exchange/work/runtime_stats.h"

#include <stdlib.h>

/* A step may free several asks and make several jobs want more, so the first one looked at may be
 * nobody's best. The loop goes from this ask to its best job, from the job to its best ask, and so
 * on. Two that are best for each other trade. Returns false when no two can. */
static bool trade_from(struct exchange *exchange, struct ask *ask)
{
    for (;;) {
        uint32_t slots;
        struct part *part = counterpart_of_ask(exchange, ask, &slots);
        if (part == NULL) {
            return false;
        }
        if (job_waits_for_all(part->job)) {
            return all_or_none_fill(exchange, part->job);
        }
        const struct found_ask better = counterpart_of_part(exchange, part);
        if (better.ask == NULL) {
            return false;
        }
        if (better.ask == ask) {
            return lease_grant_between(exchange, part, ask, slots);
        }
        ask = better.ask;
    }
}

/* Returns true when `part`, of the same job, would get the slots of the idle lease if they were
 * free. */
static bool would_take(const struct exchange *exchange, const struct part *part,
                       const struct lease *lease)
{
    const struct ask *standing = lease->device == NULL ? NULL : lease->device->ask;
    if (lease->part == part || lease->state != LEASE_ACTIVE || lease->live > 0 ||
        standing == NULL || !standing->is_open || !ask_is_for(standing, part->job->owner) ||
        lease->slots < part->width || part_choice(exchange, lease->part, lease->provider) > 0) {
        return false;
    }
    struct book_ask ask;
    if (!book_ask(exchange->book, standing->handle, &ask)) {
        return false;
    }
    const int64_t price = fill_price(exchange, part, standing);
    return book_class_accepts(exchange->book, part->class_id, lease->device->cell) &&
           ask.price_micro <= part_limit_in(exchange, part, lease->device->cell) &&
           (ask.max_term_ns == 0 || ask.max_term_ns >= part->term_ns) &&
           part_may_take(exchange, part, lease->device->ask) &&
           escrow_micro(price, part->width, part->term_ns) <=
               escrow_free_micro(part->job) + lease->reserved_micro;
}

/* Ends idle leases of the job early for the part's slots, before their idle time is over. */
static void take_idle(struct exchange *exchange, const struct part *part)
{
    const struct job *job = part->job;
    uint32_t taken = 0;
    const uint32_t wanted = book_slots(exchange->book, part->handle);
    for (struct list_link *at = job->leases.next; at != &job->leases && taken < wanted;
         at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (would_take(exchange, part, lease)) {
            taken += lease->slots;
            lease_end(exchange, lease, XEND_RETURNED, true);
        }
    }
}

/* Fills the whole job; otherwise the job waits for that or is cancelled. */
static void match_whole(struct exchange *exchange, struct job *job)
{
    for (uint32_t i = 0; i < job->part_count; i++) {
        list_remove(&job->parts[i].wanting);
    }
    const bool is_filled = all_or_none_fill(exchange, job);
    if (job->type == EXCHANGE_FOK && !is_filled) {
        job_close(exchange, job, JOB_PHASE_CANCELLED, XREASON_NOT_FILLED);
        return;
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct part *part = &job->parts[i];
        if (job->type == EXCHANGE_FOK) {
            bid_stand_down(exchange, part);
        } else if (!book_rests(exchange->book, part->handle)) {
            bid_rest(exchange, part);
        }
    }
}

/* A job without bids ends with its last lease. */
static void look_at_leases(struct exchange *exchange, struct job *job, uint8_t reason)
{
    if (job->phase != JOB_PHASE_OPEN || job->is_closing || !job_lives_off_leases(job) ||
        job->waiting == 0) {
        return;
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        if (LIST_ELEMENT(at, struct lease, of_job)->state != LEASE_ENDED) {
            return;
        }
    }
    job_close(exchange, job, JOB_PHASE_CANCELLED, reason);
}

/* The market was at rest before an arriving bid, so its first match has no better partner, and only
 * the rest of it rests. A resting bid that wants more is one of several. */
static void match_part(struct exchange *exchange, struct part *part)
{
    if (part->job->type == EXCHANGE_FOK || job_waits_for_all(part->job)) {
        match_whole(exchange, part->job);
        return;
    }
    const bool rests = book_rests(exchange->book, part->handle);
    struct found_ask found;
    do {
        found = counterpart_of_part(exchange, part);
    } while (found.ask != NULL &&
             (rests ? trade_from(exchange, found.ask)
                    : lease_grant_between(exchange, part, found.ask, found.slots)));
    if (part->job->type == EXCHANGE_IOC) {
        bid_stand_down(exchange, part);
        look_at_leases(exchange, part->job, XREASON_NOT_FILLED);
        return;
    }
    if (!rests) {
        bid_rest(exchange, part);
    }
    if (found.is_short && part_is_used_up(part->job) &&
        !counterpart_is_there(exchange, part->job)) {
        job_close(exchange, part->job, JOB_PHASE_FAILED, XREASON_BUDGET);
    } else if (part->job->part_count > 1) {
        take_idle(exchange, part);
    }
    spot_challenge(exchange, part);
}

static bool fill_arriving_ask(struct exchange *exchange, struct ask *ask)
{
    uint32_t slots;
    struct part *part = counterpart_of_ask(exchange, ask, &slots);
    return part != NULL && lease_grant_between(exchange, part, ask, slots);
}

static void match_ask(struct exchange *exchange, struct ask *ask)
{
    if (!book_rests(exchange->book, ask->handle)) {
        /* Bids that are filled all at once need the ask to rest. */
        while (exchange->wholes == 0 && fill_arriving_ask(exchange, ask)) {
        }
        ask_rest(exchange, ask);
    }
    exchange->matching = ask;
    while (trade_from(exchange, ask)) {
    }
    exchange->matching = NULL;
    if (ask->type == EXCHANGE_IOC) {
        ask_cancel(exchange, ask, CANCEL_NOT_RESTING);
    }
}

struct idle_lease {
    struct lease *lease;
    int64_t finish_ns;
};

static int compare_idle(const void *left, const void *right)
{
    const struct idle_lease *a = left;
    const struct idle_lease *b = right;
    if (a->finish_ns != b->finish_ns) {
        return a->finish_ns < b->finish_ns ? -1 : 1;
    }
    return (a->lease->id > b->lease->id) - (a->lease->id < b->lease->id);
}

/* Returns the most time that an idle lane of the lease saves with inputs of the subtask. */
static int64_t idle_saves_ns(const struct lease *lease, uint32_t index)
{
    int64_t most_ns = 0;
    for (uint32_t lane = 0; lane < lease->lane_count; lane++) {
        const int64_t saves_ns =
            lease->lanes[lane].in_flight > 0 ? 0 : lane_saves_ns(lease, lane, index);
        most_ns = saves_ns > most_ns ? saves_ns : most_ns;
    }
    return most_ns;
}

/* Counts the part's leases with a free lane, and lists them in `ret_idle` unless NULL. */
static size_t find_idle(const struct part *part, struct idle_lease *ret_idle)
{
    const struct job *job = part->job;
    const struct runtime_stats usual = runtime_stats_of_part(part);
    size_t count = 0;
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part == part && lease->state == LEASE_ACTIVE && lease_idle_lanes(lease) > 0) {
            if (ret_idle != NULL) {
                const int64_t takes_ns = runtime_stats_lease_ns(lease, &usual);
                ret_idle[count] =
                    (struct idle_lease){lease, takes_ns - idle_saves_ns(lease, lane_next(part))};
            }
            count++;
        }
    }
    return count;
}

/* Subtasks came to the queue, and leases with a free lane take them at once. The lease that is done
 * first takes first, before leases with a result in this step, which may be the slowest. Returned
 * subtasks go where they are done first, idle or not. */
static void spread(struct exchange *exchange, struct part *part)
{
    list_remove(&part->back);
    list_append(&exchange->backs, &part->back);
    size_t count = find_idle(part, NULL);
    struct idle_lease *idle = count == 0 ? NULL : memory_allocate(exchange, count * sizeof *idle);
    if (idle == NULL) {
        return;
    }
    (void)find_idle(part, idle);
    qsort(idle, count, sizeof *idle, compare_idle);
    for (size_t i = count; i-- > 0;) {
        lease_refill_next(exchange, idle[i].lease);
    }
    free(idle);
}

/* Runs until no order wants anything or memory is short; then further turns change no answer. */
void market_run(struct exchange *exchange)
{
    while (!exchange->is_out_of_memory) {
        exchange->market_changes++;
        if (!list_empty(&exchange->spreads)) {
            struct part *part = LIST_ELEMENT(exchange->spreads.next, struct part, spread);
            list_remove(&part->spread);
            spread(exchange, part);
        } else if (!list_empty(&exchange->wanting_asks)) {
            struct ask *ask = LIST_ELEMENT(exchange->wanting_asks.next, struct ask, wanting);
            list_remove(&ask->wanting);
            if (!exchange->is_halted) {
                match_ask(exchange, ask);
            }
        } else if (!list_empty(&exchange->wanting_parts)) {
            struct part *part = LIST_ELEMENT(exchange->wanting_parts.next, struct part, wanting);
            list_remove(&part->wanting);
            if (part->handle == BOOK_NONE) {
                look_at_leases(exchange, part->job, XREASON_LEASES_OVER);
            } else if (!exchange->is_halted) {
                match_part(exchange, part);
            }
        } else if (!list_empty(&exchange->backs)) {
            struct part *part = LIST_ELEMENT(exchange->backs.next, struct part, back);
            list_remove(&part->back);
            lease_place_retries(exchange, part);
        } else if (!list_empty(&exchange->refills)) {
            struct lease *lease = LIST_ELEMENT(exchange->refills.next, struct lease, refill);
            list_remove(&lease->refill);
            lease_refill(exchange, lease);
        } else if (!list_empty(&exchange->fronts)) {
            struct part *part = LIST_ELEMENT(exchange->fronts.next, struct part, front);
            list_remove(&part->front);
            lease_place_retries(exchange, part);
        } else if (!spot_turn(exchange)) { /* runs when no bid fills from free slots */
            return;
        }
    }
}
