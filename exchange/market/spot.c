/* The spot market lets bids take interruptible leases from their holders.
 *
 * A lease beyond its minimum run is exposed at its holder's limit plus the increment. Exposed
 * leases are asks in a book of their own, with the same cells and classes; the best price is the
 * lowest rank. A bid that found nothing to fill from looks there, and a newly exposed lease looks
 * for the best bid of the market. Two that are best for each other trade. The lease is then
 * promised to the bid, and its holder is told; running work may end within the notice. Each trade
 * needs a higher limit than the one before, so two bids cannot take a lease from each other in
 * turn. */
#include "exchange/market/spot.h"

#include "exchange/lifecycle.h"
#include "exchange/market/bids.h"
#include "exchange/market/daily.h"
#include "exchange/market/escrow.h"
#include "exchange/market/lease_granting.h"
#include "exchange/market/part_eligibility.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/effects.h"
#include "exchange/state/job_records.h"
#include "exchange/state/tracking.h"
#include "exchange/work/lease_endings.h"
#include "exchange/work/lease_records.h"

#include <assert.h>

/* Gives the book of exposed leases the class. Returns false when memory is short. */
static bool has_class(struct exchange *exchange, uint32_t class_id)
{
    struct book *book = exchange->spot->book;
    const bool has = book_class_references(book, class_id) > 0 ||
                     book_class_at(book, class_id, book_class_requirement(exchange->book, class_id),
                                   book_class_rate(exchange->book, class_id)) == BOOK_OK;
    exchange->is_out_of_memory = exchange->is_out_of_memory || !has;
    return has;
}

struct challenge {
    struct exchange *exchange;
    const struct part *part;
    struct lease *lease;
};

/* Counts lanes that the budget covers for a term and the device's day has left. */
static uint32_t lanes_to_take(const struct exchange *exchange, const struct part *part,
                              const struct lease *lease)
{
    const uint32_t lanes = escrow_affordable_lanes(part, lease->exposed_micro);
    const int128 lane_ns = (int128)part->term_ns * part->width;
    const int128 of_day = lease->device->ask->daily_ns == 0
                              ? lanes
                              : daily_left_ns(exchange, lease->device->ask) / lane_ns;
    return lanes < of_day ? lanes : (uint32_t)of_day;
}

/* The new lease has the terms of the ask as it stands now. */
bool spot_may_be_taken(const struct exchange *exchange, const struct part *part,
                       const struct lease *lease)
{
    const struct ask *ask = lease->device->ask;
    return part->job->owner != lease->provider && part->job->owner != lease->job->owner &&
           ask->price_micro <= lease->exposed_micro && part_may_take(exchange, part, ask);
}

/* The call ignores limit and budget. A post-only bid never challenges. */
static bool may_challenge(const struct exchange *exchange, const struct part *part,
                          const struct lease *lease)
{
    return !job_waits_for_all(part->job) && part->job->type != EXCHANGE_POST_ONLY &&
           spot_may_be_taken(exchange, part, lease);
}

static bool may_take(const struct exchange *exchange, const struct part *part,
                     const struct lease *lease)
{
    return may_challenge(exchange, part, lease) && lanes_to_take(exchange, part, lease) > 0;
}

static bool wants(const struct part *part)
{
    return part->handle != BOOK_NONE && bid_order(part).slots > 0;
}

static bool skip_lease(void *context, uint32_t handle)
{
    const struct challenge *challenge = context;
    const struct exchange *exchange = challenge->exchange;
    return !may_take(exchange, challenge->part, exchange->spot->leases[handle]);
}

static bool skip_part(void *context, uint32_t handle)
{
    const struct challenge *challenge = context;
    const struct exchange *exchange = challenge->exchange;
    return !may_take(exchange, exchange->orders_by_handle[handle], challenge->lease);
}

/* Returns the lowest ranked lease that the part's bid may take, the oldest of equals; NULL:
 * none. */
static struct lease *lowest_lease(struct exchange *exchange, const struct part *part)
{
    struct challenge challenge = {.exchange = exchange, .part = part};
    struct book_match match;
    const struct book_order order = bid_order(part);
    return has_class(exchange, part->class_id) &&
                   book_match(exchange->spot->book, &order, skip_lease, &challenge, &match)
               ? exchange->spot->leases[match.handle]
               : NULL;
}

/* Returns the best bid that may take the lease; NULL: none. */
static struct part *best_challenger(struct exchange *exchange, struct lease *lease)
{
    struct challenge challenge = {.exchange = exchange, .lease = lease};
    struct book_match match;
    const struct book_order order = {
        .owner = lease->provider,
        .kind = lease->device->cell,
        .slots = lease->slots,
        .width = 1,
        .price_micro = lease->exposed_micro,
        .term_ns = lease->device->ask->max_term_ns,
        .sequence = lease->device->ask->sequence,
    };
    return book_match(exchange->book, &order, skip_part, &challenge, &match)
               ? exchange->orders_by_handle[match.handle]
               : NULL;
}

/* The lease gets no more work. It ends when its running work does, or with the notice. */
static void notify(struct exchange *exchange, struct lease *lease)
{
    struct job *job = lease->job;
    const int64_t end_ns = exchange->now_ns + lease->terms.notice_ns;
    lease->is_noticed = true;
    tracking_touch(exchange, &lease->tracked);
    if (lease->live == 0) {
        lease_end(exchange, lease, XEND_PREEMPTED, true);
        return;
    }
    if (job->interruptions_left != UINT32_MAX && job->interruptions_left > 0) {
        job->interruptions_left--;
    }
    lease->term_end_ns = end_ns < lease->term_end_ns ? end_ns : lease->term_end_ns;
    lease_wind_down(exchange, lease);
    lease_arm(exchange, lease);
    lease_effect(exchange, lease, EFFECT_LEASE_NOTICE);
    tracking_touch(exchange, &job->tracked);
    effect_report_job(exchange, job);
    bids_want(exchange, job);
}

/* Returns false when there is no room for one more lease. */
static bool promise(struct exchange *exchange, struct part *part, struct lease *lease)
{
    const int64_t price_micro = lease->exposed_micro;
    const uint32_t wanted = bid_order(part).slots / part->width;
    uint32_t lanes = lanes_to_take(exchange, part, lease);
    lanes = lanes < wanted ? lanes : wanted;
    lanes = lanes < lease->slots / part->width ? lanes : lease->slots / part->width;
    assert(lanes > 0);
    if (exchange->lease_count >= exchange->limits.leases) {
        lease_make_room(exchange);
    }
    if (exchange->lease_count >= exchange->limits.leases ||
        lease_grant(exchange, part, lease->device->ask, lanes * part->width, price_micro, lease) ==
            NULL) {
        return false;
    }
    notify(exchange, lease);
    return true;
}

/* The loop goes from a lease to its best bid, and from the bid to the lowest lease. Each is better
 * than the last, as with asks in trade_from (market.c). Returns false when no bid takes any. */
static bool challenge_from(struct exchange *exchange, struct lease *lease)
{
    for (;;) {
        struct part *part = best_challenger(exchange, lease);
        struct lease *lower = part == NULL ? NULL : lowest_lease(exchange, part);
        if (lower == NULL) {
            return false;
        }
        if (lower == lease) {
            return promise(exchange, part, lease);
        }
        lease = lower;
    }
}

void spot_challenge(struct exchange *exchange, struct part *part)
{
    if (exchange->spot != NULL && wants(part) && list_empty(&part->challenge)) {
        list_append(&exchange->challenges, &part->challenge);
    }
}

bool spot_turn(struct exchange *exchange)
{
    if (!list_empty(&exchange->challenges)) {
        struct part *part = LIST_ELEMENT(exchange->challenges.next, struct part, challenge);
        list_remove(&part->challenge);
        struct lease *lease =
            exchange->is_halted || !wants(part) ? NULL : lowest_lease(exchange, part);
        if (lease != NULL && challenge_from(exchange, lease)) {
            spot_challenge(exchange, part); /* the bid may want more slots */
        }
        return true;
    }
    if (!list_empty(&exchange->exposures)) {
        struct lease *lease = LIST_ELEMENT(exchange->exposures.next, struct lease, exposing);
        list_remove(&lease->exposing);
        if (!exchange->is_halted) {
            (void)challenge_from(exchange, lease);
        }
        return true;
    }
    return false;
}
