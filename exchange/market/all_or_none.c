/* This file fills bids all at once or not at all. Such a job takes everything now or nothing (FOK),
 * or waits until it can have everything (ALL_OR_NONE). The fills are planned first on the resting
 * asks, part by part, the scarcest first, each from the best ask on. Only a plan for all of it
 * becomes leases.
 *
 * Waiting bids rest in the book in their place, and are passed over until there is a plan. So they
 * block nobody, and are served before bids that come later.
 *
 * A waiting job is tried again when slots come, not when slots go. With the parts in the same
 * order, fewer slots never make a plan that more slots did not: each part finds what earlier parts
 * left, at no lower prices. A change of the scarcest part could make a new plan, but that plan
 * waits for the next slots. Planning after every fill and withdrawal would cost too much. */
#include "exchange/market/all_or_none.h"

#include "exchange/market/asks.h"
#include "exchange/market/bids.h"
#include "exchange/market/escrow.h"
#include "exchange/market/fill_prices.h"
#include "exchange/market/lease_granting.h"
#include "exchange/market/part_eligibility.h"
#include "exchange/market/part_limits.h"
#include "exchange/state/job_records.h"
#include "exchange/work/lease_records.h"

#include <stdlib.h>

struct planned_fill {
    struct part *part;
    struct ask *ask;
    uint32_t slots;
    int64_t price_micro;
};

struct planning {
    struct exchange *exchange;
    const struct part *part;
    uint32_t wanted;    /* slots that the part still wants */
    int64_t free_micro; /* free part of the budget */
    bool is_counting;   /* the supply for that part alone is counted, each ask once */
    bool is_outbid;     /* an ask was left to a better bid that has yet to take it */
};

/* Returns true when another bid, better than the part's and not all-or-none, takes the ask. */
static bool ask_is_spoken_for(struct exchange *exchange, struct ask *ask, const struct part *part)
{
    struct pair_context pair = {.exchange = exchange, .ask = ask, .whole = part};
    const struct book_order order = ask_order(exchange, ask);
    struct book_match match;
    if (ask != exchange->matching && list_empty(&exchange->wanting_asks) &&
        list_empty(&exchange->wanting_parts)) {
        return false; /* all others have what they can have */
    }
    return ask_match(exchange, &order, all_or_none_skip_bid, &pair, &match) &&
           match.handle != part->handle;
}

static int64_t price_between(const struct planning *planning, const struct ask *ask)
{
    const struct fill_means means = {planning->wanted, planning->free_micro};
    return fill_price_with(planning->exchange, planning->part, &means, ask);
}

static bool skip_ask(void *context, uint32_t handle)
{
    struct planning *planning = context;
    struct exchange *exchange = planning->exchange;
    const struct part *part = planning->part;
    struct ask *ask = exchange->orders_by_handle[handle];
    const uint32_t provider = ask->device->key.provider;
    const bool is_used = planning->is_counting
                             ? ask->counted == exchange->counts
                             : book_slots(exchange->book, handle) - ask->planned < part->width;
    if (is_used || provider == part->job->owner || !part_may_take(exchange, part, ask) ||
        escrow_micro(price_between(planning, ask), part->width, part->term_ns) >
            planning->free_micro) {
        return true;
    }
    const bool is_outbid = ask_is_spoken_for(exchange, ask, part);
    planning->is_outbid = planning->is_outbid || is_outbid;
    return is_outbid;
}

/* Counts the slots for the part alone, up to `plenty`. */
static uint64_t count_supply(struct planning *planning, uint64_t plenty)
{
    struct exchange *exchange = planning->exchange;
    struct book_order order = bid_order(planning->part);
    struct book_match match;
    uint64_t slots = 0;
    planning->wanted = order.slots;
    order.slots = UINT32_MAX;
    planning->is_counting = true;
    exchange->counts++;
    while (slots < plenty && book_match(exchange->book, &order, skip_ask, planning, &match)) {
        struct ask *ask = exchange->orders_by_handle[match.handle];
        ask->counted = exchange->counts;
        slots += match.slots;
    }
    planning->is_counting = false;
    return slots;
}

static void plan_drop(struct exchange *exchange)
{
    while (exchange->plan_count > 0) {
        exchange->plan[--exchange->plan_count].ask->planned = 0;
    }
}

static bool plan_add(struct exchange *exchange, const struct planned_fill *fill)
{
    if (exchange->plan_count == exchange->plan_capacity) {
        const uint32_t capacity = exchange->plan_capacity == 0 ? 64 : 2 * exchange->plan_capacity;
        struct planned_fill *plan = realloc(exchange->plan, capacity * sizeof *plan);
        if (plan == NULL) {
            exchange->is_out_of_memory = true;
            return false;
        }
        exchange->plan = plan;
        exchange->plan_capacity = capacity;
    }
    exchange->plan[exchange->plan_count++] = *fill;
    fill->ask->planned += fill->slots;
    return true;
}

static bool plan_part(struct planning *planning, struct part *part)
{
    struct exchange *exchange = planning->exchange;
    struct book_order order = bid_order(part);
    planning->part = part;
    while (order.slots > 0) {
        struct book_match match;
        planning->wanted = order.slots;
        if (!book_match(exchange->book, &order, skip_ask, planning, &match)) {
            return false;
        }
        struct ask *ask = exchange->orders_by_handle[match.handle];
        const uint32_t left = book_slots(exchange->book, match.handle) - ask->planned;
        uint32_t slots = left < order.slots ? left : order.slots;
        slots -= slots % part->width;
        const struct planned_fill fill = {
            .part = part, .ask = ask, .slots = slots, .price_micro = price_between(planning, ask)};
        const int64_t escrow = escrow_micro(fill.price_micro, slots, part->term_ns);
        if (escrow > planning->free_micro || !plan_add(exchange, &fill)) {
            return false;
        }
        planning->free_micro -= escrow;
        order.slots -= slots;
    }
    return true;
}

struct need {
    struct part *part;
    uint64_t over; /* supply for the part beyond its wanted slots */
};

/* Sorts the parts by scarcity. Returns false when a part cannot be filled even alone; *ret_missing
 * is the least number of slots that it lacks. */
static bool find_needs(struct planning *planning, struct job *job,
                       struct need ret_needs[PARTS_MOST], uint64_t *ret_missing)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        all += bid_order(&job->parts[i]).slots;
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct part *part = &job->parts[i];
        const uint32_t wanted = bid_order(part).slots;
        planning->part = part;
        const uint64_t supply = count_supply(planning, all);
        if (supply < wanted) {
            *ret_missing = (wanted - supply) / part->width; /* one slot more may make a width */
            return false;
        }
        uint32_t at = i;
        for (; at > 0 && supply - wanted < ret_needs[at - 1].over; at--) {
            ret_needs[at] = ret_needs[at - 1];
        }
        ret_needs[at] = (struct need){part, supply - wanted};
    }
    return true;
}

static bool plan_make(struct exchange *exchange, struct job *job)
{
    struct planning planning = {.exchange = exchange, .free_micro = escrow_free_micro(job)};
    struct need needs[PARTS_MOST];
    uint64_t missing = 1;
    bool is_good = find_needs(&planning, job, needs, &missing);
    for (uint32_t i = 0; is_good && i < job->part_count; i++) {
        is_good = plan_part(&planning, needs[i].part);
    }
    if (is_good && exchange->lease_count + exchange->plan_count > exchange->limits.leases) {
        lease_make_room(exchange);
        is_good = exchange->lease_count + exchange->plan_count <= exchange->limits.leases;
    }
    if (is_good) {
        return true;
    }
    plan_drop(exchange);
    job->try_again_at = planning.is_outbid ? 0 : exchange->slots_freed + missing;
    struct part *first = &job->parts[0];
    const bool others_may_buy = exchange->lease_count < exchange->limits.leases;
    if (planning.is_outbid && others_may_buy && job_waits_for_all(job) &&
        list_empty(&first->wanting)) {
        /* The job is tried again once the better bids have bought. */
        list_append(&exchange->wanting_parts, &first->wanting);
    }
    return false;
}

/* Returns true when that would fill them now. */
static bool all_or_none_can_fill(struct exchange *exchange, struct job *job)
{
    bool can = exchange->slots_freed >= job->try_again_at && plan_make(exchange, job);
    plan_drop(exchange);
    return can;
}

bool all_or_none_fill(struct exchange *exchange, struct job *job)
{
    if (!plan_make(exchange, job)) {
        return false;
    }
    if (job_waits_for_all(job)) {
        job->type = EXCHANGE_MARKET;
        exchange->wholes--;
    }
    for (uint32_t i = 0; i < exchange->plan_count && !exchange->is_out_of_memory; i++) {
        const struct planned_fill *fill = &exchange->plan[i];
        /* NULL means that memory is short; the step reports it. */
        (void)lease_grant(exchange, fill->part, fill->ask, fill->slots, fill->price_micro, NULL);
    }
    plan_drop(exchange);
    return true;
}

bool all_or_none_skip_bid(void *context, uint32_t handle)
{
    const struct pair_context *pair = context;
    struct exchange *exchange = pair->exchange;
    struct part *part = exchange->orders_by_handle[handle];
    if (pair->ask->device->key.provider == part->job->owner ||
        !part_may_take(exchange, part, pair->ask)) {
        return true;
    }
    if (job_waits_for_all(part->job)) {
        return pair->whole != NULL ? part != pair->whole
                                   : !all_or_none_can_fill(exchange, part->job);
    }
    bool is_short = escrow_affordable_lanes(part, fill_price(exchange, part, pair->ask)) == 0;
    if (is_short && list_empty(&part->wanting) && part_is_used_up(part->job)) {
        list_append(&exchange->wanting_parts, &part->wanting); /* match_part ends it */
    }
    return is_short;
}
