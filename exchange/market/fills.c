/* A fill is a trade that becomes a lease. This file matches orders, grants leases and runs the
 * turns of a step until no order wants anything. leases.c has the life of a lease. */
#include "exchange/state.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- granting */

/* Takes the slots and arms the deadline. */
static void start(struct exchange *exchange, struct lease *lease)
{
    lease->device->leased += lease->slots;
    device_slots_changed(exchange, lease->device);
    lease_arm(exchange, lease);
}

struct lease *lease_grant(struct exchange *exchange, struct part *part, struct ask *ask,
                          uint32_t slots, int64_t price_micro, struct lease *former)
{
    struct job *job = part->job;
    struct device *device = ask->device;
    struct lease *lease = allocate(exchange, sizeof *lease);
    struct lane *lanes =
        lease == NULL ? NULL : allocate(exchange, slots / part->width * sizeof *lanes);
    if (lanes == NULL) {
        free(lease);
        return NULL;
    }
    lease->id = exchange->next_lease++;
    lease->job = job;
    lease->part = part;
    lease->device = device;
    lease->device_id = device->key.device;
    lease->ask = ask->order;
    lease->provider = device->key.provider;
    copy_name(lease->label, device->label);
    size_t attribute_count;
    const struct attribute *attributes =
        book_cell_attributes(exchange->book, device->cell, &attribute_count);
    lease->is_simulated = requirement_simulated(attributes, attribute_count);
    lease->terms = ask->terms;
    lease->slots = slots;
    lease->lane_count = slots / part->width;
    lease->price_micro = price_micro;
    lease->granted_ns = exchange->now_ns;
    lease->term_end_ns = exchange->now_ns + part->term_ns;
    lease->idle_since_ns = INT64_MAX;
    lease->reserved_micro = escrow_micro(price_micro, slots, part->term_ns);
    lease->lanes = lanes;
    lease->exposed = BOOK_NONE;
    list_init(&lease->attempts);
    list_init(&lease->refill);
    list_init(&lease->exposing);
    if (former != NULL) {
        lease->state = LEASE_PROMISED;
        lease->former = former->id;
        former->successor = lease;
    }
    if (!table_insert(&exchange->leases, lease)) {
        exchange->is_out_of_memory = true;
    }
    list_append(&job->leases, &lease->of_job);
    lease_link_provider(exchange, lease);
    exchange->lease_count++;
    donation_promise(exchange, lease);
    track(exchange, &lease->tracked, RECORD_LEASE);

    job->reserved_micro += lease->reserved_micro;
    assert(job->reserved_micro <= hold_left(&job->hold)); /* P5 */
    part->lanes += lease->lane_count;
    touch(exchange, &job->tracked);
    if (former == NULL) {
        start(exchange, lease);
    }

    struct ledger_record *record = emit_ledger(exchange, LEDGER_FILL);
    record->lease = lease->id;
    record->order = ask->order;
    record->bid = part_bid_id(part);
    record->job = job->id;
    record->provider = member_by_number(exchange, lease->provider)->key;
    record->owner = member_by_number(exchange, job->owner)->key;
    record->device = lease->device_id;
    record->slots = slots;
    record->width = part->width;
    record->price_micro = price_micro;
    record->term_ns = part->term_ns;
    static_assert(sizeof record->name == ATTRIBUTE_TEXT_SIZE, "an instrument is a name");
    cell_instrument(exchange, device->cell, record->name);
    feed_trade(exchange, record);
    if (former == NULL) {
        lease_effect(exchange, lease, EFFECT_LEASE_GRANT);
        lease_refill_later(exchange, lease);
        lease_expose(exchange, lease);
    }
    part_wants(exchange, part);
    report_job(exchange, job);
    return lease;
}

/* The slots pass from the former lease directly, so no other bid comes between. */
void lease_begin(struct exchange *exchange, struct lease *lease, struct device *device)
{
    const struct member *provider = member_by_number(exchange, lease->provider);
    lease->former = 0;
    if (provider->provider->state != PROVIDER_PRESENT || provider->is_frozen ||
        !device->is_advertised) {
        lease_end(exchange, lease, XEND_RETURNED, false);
        return;
    }
    lease_move(&lease->state, LEASE_ACTIVE);
    lease->granted_ns = exchange->now_ns;
    lease->term_end_ns = exchange->now_ns + lease->part->term_ns;
    donation_promise(exchange, lease);
    touch(exchange, &lease->tracked);
    start(exchange, lease);
    lease_effect(exchange, lease, EFFECT_LEASE_GRANT);
    lease_refill_later(exchange, lease);
    lease_expose(exchange, lease);
    report_job(exchange, lease->job);
}

uint32_t part_affordable_lanes(const struct part *part, int64_t price_micro)
{
    int64_t one = escrow_micro(price_micro, part->width, part->term_ns);
    if (one == 0) {
        return UINT32_MAX;
    }
    int64_t lanes = job_free_micro(part->job) / one;
    return lanes > UINT32_MAX ? UINT32_MAX : (uint32_t)lanes;
}

/* The price is the maker's, the order that came first. A donation is always at 0. */
int64_t price_between(const struct exchange *exchange, const struct part *part,
                      const struct ask *ask)
{
    return ask->price_micro == 0 || ask->sequence < part->sequence
               ? ask->price_micro
               : part_limit_in(exchange, part, ask->device->cell);
}

/* Trades at most `slots` between the two. */
static bool grant_between(struct exchange *exchange, struct part *part, struct ask *ask,
                          uint32_t slots)
{
    int64_t price = price_between(exchange, part, ask);
    uint32_t lanes = part_affordable_lanes(part, price);
    uint32_t fillable = slots / part->width;
    lanes = lanes < fillable ? lanes : fillable;
    if (exchange->lease_count >= exchange->limits.leases) {
        leases_make_room(exchange);
    }
    if (lanes == 0 || exchange->lease_count >= exchange->limits.leases) {
        return false;
    }
    return lease_grant(exchange, part, ask, lanes * part->width, price, NULL) != NULL;
}

/* ---------------------------------------------------------------- who trades with whom */

/* A job may wait for a better price before anything was charged or is held for a charge; a job
 * without a budget waits for donated slots. Afterwards, with nothing running and no lease left, the
 * job would wait forever for slots that its budget no longer covers. */
static bool is_used_up(const struct job *job)
{
    if (job->running > 0 || job->hold.amount_micro == 0 ||
        (job->hold.captured_micro == 0 && job->checking == 0)) {
        return false;
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        if (LIST_ELEMENT(at, struct lease, of_job)->state != LEASE_ENDED) {
            return false;
        }
    }
    return true;
}

struct pair_context {
    struct exchange *exchange;
    struct part *part;
    struct ask *ask;
    /* Bids that wait to be filled all at once are passed over, except this one; NULL: none is
     * passed over. */
    const struct part *whole;
    bool is_short; /* A term of some ask costs more than the budget has left. */
};

bool part_may_take(const struct exchange *exchange, const struct part *part, const struct ask *ask)
{
    const uint32_t provider = ask->device->key.provider;
    return ask_suits(ask, part->job) && ask_in_reach(exchange, part, ask) &&
           !job_avoids(exchange, part->job, provider) &&
           (part->waiting == 0 || part_choice(exchange, part, provider) > 0);
}

/* Own orders are passed over: a new order that meets its own first was refused. */
static bool skip_ask(void *context, uint32_t handle)
{
    struct pair_context *pair = context;
    const struct exchange *exchange = pair->exchange;
    const struct ask *ask = exchange->orders_by_handle[handle];
    if (book_owner(exchange->book, handle) == pair->part->job->owner ||
        !part_may_take(exchange, pair->part, ask)) {
        return true;
    }
    bool is_short =
        part_affordable_lanes(pair->part, price_between(exchange, pair->part, ask)) == 0;
    pair->is_short = pair->is_short || is_short;
    return is_short;
}

static bool skip_bid(void *context, uint32_t handle)
{
    const struct pair_context *pair = context;
    struct exchange *exchange = pair->exchange;
    struct part *part = exchange->orders_by_handle[handle];
    if (pair->ask->device->key.provider == part->job->owner ||
        !part_may_take(exchange, part, pair->ask)) {
        return true;
    }
    if (job_waits_for_all(part->job)) {
        return pair->whole != NULL ? part != pair->whole : !job_can_fill_whole(exchange, part->job);
    }
    bool is_short = part_affordable_lanes(part, price_between(exchange, part, pair->ask)) == 0;
    if (is_short && list_empty(&part->wanting) && is_used_up(part->job)) {
        list_append(&exchange->wanting_parts, &part->wanting); /* match_part ends it */
    }
    return is_short;
}

static int64_t rank_of(const void *context, uint32_t account)
{
    return donation_rank(context, account);
}

bool ask_match(const struct exchange *exchange, const struct book_order *order, book_skip *skip,
               void *context, struct book_match *ret_match)
{
    if (order->price_micro > 0) {
        return book_match(exchange->book, order, skip, context, ret_match);
    }
    const struct book_ranking ranking = {.rank = rank_of, .context = exchange};
    return book_match_by_rank(exchange->book, order, &ranking, skip, context, ret_match);
}

/* Returns the best resting bid for a resting or arriving ask; NULL: none. */
static struct part *best_part(struct exchange *exchange, struct ask *ask, uint32_t *ret_slots)
{
    struct pair_context pair = {.exchange = exchange, .ask = ask};
    const struct book_order order = ask_order(exchange, ask);
    struct book_match match;
    if (order.slots == 0 || !ask_match(exchange, &order, skip_bid, &pair, &match)) {
        return NULL;
    }
    *ret_slots = match.slots;
    return exchange->orders_by_handle[match.handle];
}

/* skip_unfit does the same as skip_bid and leaves no trace. */
struct offer {
    const struct exchange *exchange;
    const struct ask *ask;
};

static bool skip_unfit(void *context, uint32_t handle)
{
    const struct offer *offer = context;
    const struct part *part = offer->exchange->orders_by_handle[handle];
    return offer->ask->device->key.provider == part->job->owner ||
           !part_may_take(offer->exchange, part, offer->ask) || job_waits_for_all(part->job) ||
           part_affordable_lanes(part, price_between(offer->exchange, part, offer->ask)) == 0;
}

int64_t ask_fills_at(const struct exchange *exchange, const struct ask *ask)
{
    struct ask lower = *ask;
    lower.price_micro = 1; /* a donation is another order */
    lower.type = EXCHANGE_LIMIT;
    lower.sequence = exchange->sequence;
    struct offer offer = {.exchange = exchange, .ask = &lower};
    const struct book_order order = ask_order(exchange, &lower);
    struct book_match match;
    if (exchange->is_halted || order.slots == 0 ||
        member_by_number(exchange, order.owner)->is_frozen ||
        !book_match(exchange->book, &order, skip_unfit, &offer, &match)) {
        return -1;
    }
    lower.price_micro = price_between(exchange, exchange->orders_by_handle[match.handle], &lower);
    const int64_t bound_micro = price_bound(exchange, lower.price_micro);
    if (bound_micro > lower.price_micro) {
        return -1;
    }
    lower.price_micro = bound_micro;
    int64_t bid_micro = 0;
    return ask_refusal(exchange, &lower, &bid_micro) != 0 ? -1 : lower.price_micro;
}

bool ask_is_spoken_for(struct exchange *exchange, struct ask *ask, const struct part *part)
{
    struct pair_context pair = {.exchange = exchange, .ask = ask, .whole = part};
    const struct book_order order = ask_order(exchange, ask);
    struct book_match match;
    if (ask != exchange->matching && list_empty(&exchange->wanting_asks) &&
        list_empty(&exchange->wanting_parts)) {
        return false; /* all others have what they can have */
    }
    return ask_match(exchange, &order, skip_bid, &pair, &match) && match.handle != part->handle;
}

struct found_ask {
    struct ask *ask;
    uint32_t slots; /* slots that the two can trade */
    bool is_short;  /* an ask was passed over for the budget */
};

/* Finds the best resting ask for a resting or arriving bid. */
static struct found_ask best_ask(struct exchange *exchange, struct part *part)
{
    struct pair_context pair = {.exchange = exchange, .part = part};
    const struct book_order order = part_order(part);
    struct book_match match = {.handle = BOOK_NONE};
    bool is_found = order.slots > 0 && book_match(exchange->book, &order, skip_ask, &pair, &match);
    return (struct found_ask){
        .ask = is_found ? exchange->orders_by_handle[match.handle] : NULL,
        .slots = match.slots,
        .is_short = pair.is_short,
    };
}

static bool skip_holder(void *context, uint32_t handle)
{
    const struct pair_context *pair = context;
    const struct part *part = pair->exchange->orders_by_handle[handle];
    return part->job->owner == pair->part->job->owner || skip_bid(context, handle);
}

bool donation_is_due(struct exchange *exchange, struct lease *lease)
{
    if (lease->price_micro > 0 || lease->device->ask == NULL ||
        lease->device->ask->price_micro > 0) {
        return false;
    }
    struct pair_context pair = {
        .exchange = exchange, .part = lease->part, .ask = lease->device->ask};
    struct book_order order = ask_order(exchange, pair.ask);
    struct book_match match;
    order.slots = lease->slots; /* counts the lease's slots as free */
    if (!ask_match(exchange, &order, skip_holder, &pair, &match)) {
        return false;
    }
    const struct part *next = exchange->orders_by_handle[match.handle];
    return donation_rank(exchange, next->job->owner) < donation_rank_without(exchange, lease);
}

/* A step may free several asks and make several jobs want more, so the first one looked at may be
 * nobody's best. The loop goes from this ask to its best job, from the job to its best ask, and so
 * on. Two that are best for each other trade. Returns false when no two can. */
static bool trade_from(struct exchange *exchange, struct ask *ask)
{
    for (;;) {
        uint32_t slots;
        struct part *part = best_part(exchange, ask, &slots);
        if (part == NULL) {
            return false;
        }
        if (job_waits_for_all(part->job)) {
            return job_fill_whole(exchange, part->job);
        }
        const struct found_ask better = best_ask(exchange, part);
        if (better.ask == NULL) {
            return false;
        }
        if (better.ask == ask) {
            return grant_between(exchange, part, ask, slots);
        }
        ask = better.ask;
    }
}

/* Returns true when a part of the job finds an ask that the budget covers; then the job goes on. */
static bool can_buy(struct exchange *exchange, struct job *job)
{
    for (uint32_t i = 0; i < job->part_count; i++) {
        if (best_ask(exchange, &job->parts[i]).ask != NULL) {
            return true;
        }
    }
    return false;
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
    const int64_t price = price_between(exchange, part, standing);
    return book_class_accepts(exchange->book, part->class_id, lease->device->cell) &&
           ask.price_micro <= part_limit_in(exchange, part, lease->device->cell) &&
           (ask.max_term_ns == 0 || ask.max_term_ns >= part->term_ns) &&
           part_may_take(exchange, part, lease->device->ask) &&
           escrow_micro(price, part->width, part->term_ns) <=
               job_free_micro(part->job) + lease->reserved_micro;
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
    const bool is_filled = job_fill_whole(exchange, job);
    if (job->type == EXCHANGE_FOK && !is_filled) {
        job_close(exchange, job, JOB_PHASE_CANCELLED, XREASON_NOT_FILLED);
        return;
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct part *part = &job->parts[i];
        if (job->type == EXCHANGE_FOK) {
            part_stand_down(exchange, part);
        } else if (!book_rests(exchange->book, part->handle)) {
            part_rest(exchange, part);
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
        found = best_ask(exchange, part);
    } while (found.ask != NULL && (rests ? trade_from(exchange, found.ask)
                                         : grant_between(exchange, part, found.ask, found.slots)));
    if (part->job->type == EXCHANGE_IOC) {
        part_stand_down(exchange, part);
        look_at_leases(exchange, part->job, XREASON_NOT_FILLED);
        return;
    }
    if (!rests) {
        part_rest(exchange, part);
    }
    if (found.is_short && is_used_up(part->job) && !can_buy(exchange, part->job)) {
        job_close(exchange, part->job, JOB_PHASE_FAILED, XREASON_BUDGET);
    } else if (part->job->part_count > 1) {
        take_idle(exchange, part);
    }
    part_challenges(exchange, part);
}

static bool fill_arriving_ask(struct exchange *exchange, struct ask *ask)
{
    uint32_t slots;
    struct part *part = best_part(exchange, ask, &slots);
    return part != NULL && grant_between(exchange, part, ask, slots);
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

/* ---------------------------------------------------------------- the turns of a step */

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

/* Counts the part's leases with a free lane, and lists them in `ret_idle` unless NULL. */
static size_t find_idle(const struct part *part, struct idle_lease *ret_idle)
{
    const struct job *job = part->job;
    const struct usual usual = part_usual(part);
    size_t count = 0;
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        if (lease->part == part && lease->state == LEASE_ACTIVE && lease_idle_lanes(lease) > 0) {
            if (ret_idle != NULL) {
                ret_idle[count] = (struct idle_lease){lease, lease_takes_ns(lease, &usual)};
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
    struct idle_lease *idle = count == 0 ? NULL : allocate(exchange, count * sizeof *idle);
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
            part_place_retries(exchange, part);
        } else if (!list_empty(&exchange->refills)) {
            struct lease *lease = LIST_ELEMENT(exchange->refills.next, struct lease, refill);
            list_remove(&lease->refill);
            lease_refill(exchange, lease);
        } else if (!list_empty(&exchange->fronts)) {
            struct part *part = LIST_ELEMENT(exchange->fronts.next, struct part, front);
            list_remove(&part->front);
            part_place_retries(exchange, part);
        } else if (!spot_turn(exchange)) { /* runs when no bid fills from free slots */
            return;
        }
    }
}
