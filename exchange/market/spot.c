/* The spot market lets bids take interruptible leases from their holders.
 *
 * A lease beyond its minimum run is exposed at its holder's limit plus the increment. Exposed
 * leases are asks in a book of their own, with the same cells and classes; the best price is the
 * lowest rank. A bid that found nothing to fill from looks there, and a newly exposed lease looks
 * for the best bid of the market. Two that are best for each other trade. The lease is then
 * promised to the bid, and its holder is told; running work may end within the notice. Each trade
 * needs a higher limit than the one before, so two bids cannot take a lease from each other in
 * turn. */
#include "exchange/state.h"

#include <stdlib.h>

enum { EXPOSED_LEAST = 64 };

struct spot {
    struct book *book;
    struct lease **leases; /* indexed by handle */
    uint32_t *free_handles;
    uint32_t free_count, capacity;
};

void spot_destroy(struct spot **self)
{
    struct spot *spot = *self;
    if (spot != NULL) {
        book_destroy(&spot->book);
        free(spot->leases);
        free(spot->free_handles);
        free(spot);
        *self = NULL;
    }
}

static bool spot_grow(struct spot *spot)
{
    const uint32_t old = spot->capacity;
    const uint32_t capacity = old == 0 ? EXPOSED_LEAST : 2 * old;
    struct lease **leases = realloc(spot->leases, capacity * sizeof *leases);
    spot->leases = leases != NULL ? leases : spot->leases;
    uint32_t *handles = realloc(spot->free_handles, capacity * sizeof *handles);
    spot->free_handles = handles != NULL ? handles : spot->free_handles;
    if (leases == NULL || handles == NULL || !book_grow(spot->book, capacity)) {
        return false;
    }
    for (uint32_t i = old; i < capacity; i++) {
        spot->free_handles[spot->free_count++] = capacity - 1 - (i - old);
    }
    spot->capacity = capacity;
    return true;
}

/* Returns NULL when memory is short. */
static struct spot *spot_of(struct exchange *exchange)
{
    if (exchange->spot != NULL) {
        return exchange->spot;
    }
    struct spot *spot = allocate(exchange, sizeof *spot);
    if (spot == NULL) {
        return NULL;
    }
    spot->book = book_create((struct book_limits){.orders = EXPOSED_LEAST,
                                                  .cells = exchange->limits.cells,
                                                  .classes = exchange->limits.classes});
    if (spot->book == NULL || !spot_grow(spot)) {
        exchange->is_out_of_memory = true;
        spot_destroy(&spot);
    }
    exchange->spot = spot;
    return spot;
}

/* Cells and classes have the same numbers as in the market's book. They exist here while an order
 * uses them. */
static bool hold_cell(struct exchange *exchange, uint32_t cell)
{
    struct book *book = exchange->spot->book;
    if (book_cell_references(book, cell) > 0) {
        book_cell_hold(book, cell);
        return true;
    }
    size_t count;
    const struct attribute *attributes = book_cell_attributes(exchange->book, cell, &count);
    return book_cell_at(book, cell, attributes, count) == BOOK_OK;
}

static bool has_class(struct exchange *exchange, uint32_t class_id)
{
    struct book *book = exchange->spot->book;
    return book_class_references(book, class_id) > 0 ||
           book_class_at(book, class_id, book_class_requirement(exchange->book, class_id),
                         book_class_rate(exchange->book, class_id)) == BOOK_OK;
}

void spot_class_gone(struct exchange *exchange, uint32_t class_id)
{
    if (exchange->spot != NULL && book_class_references(exchange->spot->book, class_id) > 0) {
        book_class_release(exchange->spot->book, class_id);
    }
}

/* ---------------------------------------------------------------- what may be taken */

int64_t lease_exposed_ns(const struct lease *lease)
{
    return lease->terms.is_interruptible ? lease->granted_ns + lease->terms.minimum_run_ns
                                         : INT64_MAX;
}

/* Returns the holder's limit per slot-hour, or the lease's price when its job bids no more. */
static int64_t rank_of(const struct exchange *exchange, const struct lease *lease)
{
    const struct part *part = lease->part;
    return part->class_id == NO_CLASS ? lease->price_micro
                                      : part_limit_in(exchange, part, lease->device->cell);
}

/* A lease at price 0 is never exposed. */
static bool is_exposed(const struct exchange *exchange, const struct lease *lease)
{
    return lease->state == LEASE_ACTIVE && lease_exposed_ns(lease) <= exchange->now_ns &&
           lease->device->ask != NULL && lease->device->ask->is_open &&
           lease->device->ask->price_micro > 0 &&
           rank_of(exchange, lease) <= exchange->price_band_micro - EXCHANGE_INCREMENT_MICRO;
}

static void conceal(struct exchange *exchange, struct lease *lease)
{
    struct spot *spot = exchange->spot;
    assert(spot != NULL); /* an exposed lease stands there */
    book_remove(spot->book, lease->exposed);
    book_cell_release(spot->book, lease->exposed_cell);
    spot->free_handles[spot->free_count++] = lease->exposed;
    lease->exposed = BOOK_NONE;
    list_remove(&lease->exposing);
}

void lease_expose(struct exchange *exchange, struct lease *lease)
{
    if (lease->exposed != BOOK_NONE) {
        conceal(exchange, lease);
    }
    if (!is_exposed(exchange, lease)) {
        return;
    }
    struct spot *spot = spot_of(exchange);
    if (spot == NULL || (spot->free_count == 0 && !spot_grow(spot)) ||
        !hold_cell(exchange, lease->device->cell)) {
        exchange->is_out_of_memory = true;
        return;
    }
    lease->exposed = spot->free_handles[--spot->free_count];
    lease->exposed_cell = lease->device->cell;
    lease->exposed_micro = rank_of(exchange, lease) + EXCHANGE_INCREMENT_MICRO;
    spot->leases[lease->exposed] = lease;
    const struct book_order ask = {
        .owner = lease->job->owner,
        .kind = lease->exposed_cell,
        .slots = lease->slots,
        .width = 1,
        .price_micro = lease->exposed_micro,
        .term_ns = lease->device->ask->max_term_ns,
        .sequence = lease->id,
    };
    (void)book_rest(spot->book, lease->exposed, &ask); /* the handle is within its limit */
    list_append(&exchange->exposures, &lease->exposing);
}

void device_expose_leases(struct exchange *exchange, const struct device *device)
{
    const struct provider *provider = member_by_number(exchange, device->key.provider)->provider;
    for (struct list_link *at = provider->leases.next; at != &provider->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_provider);
        if (lease->device == device && lease->terms.is_interruptible) {
            lease_expose(exchange, lease);
        }
    }
}

void job_expose_leases(struct exchange *exchange, const struct job *job)
{
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        lease_expose(exchange, LIST_ELEMENT(at, struct lease, of_job));
    }
}

/* ---------------------------------------------------------------- who takes what */

struct challenge {
    struct exchange *exchange;
    const struct part *part;
    struct lease *lease;
};

/* Counts lanes that the budget covers for a term and the device's day has left. */
static uint32_t lanes_to_take(const struct exchange *exchange, const struct part *part,
                              const struct lease *lease)
{
    const uint32_t lanes = part_affordable_lanes(part, lease->exposed_micro);
    const int128 lane_ns = (int128)part->term_ns * part->width;
    const int128 of_day = lease->device->ask->daily_ns == 0
                              ? lanes
                              : daily_left_ns(exchange, lease->device->ask) / lane_ns;
    return lanes < of_day ? lanes : (uint32_t)of_day;
}

/* The new lease has the terms of the ask as it stands now. */
bool lease_may_be_taken(const struct exchange *exchange, const struct part *part,
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
           lease_may_be_taken(exchange, part, lease);
}

static bool may_take(const struct exchange *exchange, const struct part *part,
                     const struct lease *lease)
{
    return may_challenge(exchange, part, lease) && lanes_to_take(exchange, part, lease) > 0;
}

static bool wants(const struct part *part)
{
    return part->handle != BOOK_NONE && part_order(part).slots > 0;
}

uint32_t spot_bound(const struct exchange *exchange)
{
    return exchange->spot == NULL ? 0 : exchange->spot->capacity;
}

const struct lease *spot_lease(const struct exchange *exchange, uint32_t handle)
{
    const struct spot *spot = exchange->spot;
    return book_rests(spot->book, handle) ? spot->leases[handle] : NULL;
}

void spot_walk(const struct exchange *exchange, const struct requirement *needs, enum rate rate,
               book_visit *visit, void *context)
{
    if (exchange->spot != NULL) {
        book_walk_asks(exchange->spot->book, needs, rate, visit, context);
    }
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
    const struct book_order order = part_order(part);
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
    touch(exchange, &lease->tracked);
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
    touch(exchange, &job->tracked);
    report_job(exchange, job);
    job_wants(exchange, job);
}

/* Returns false when there is no room for one more lease. */
static bool promise(struct exchange *exchange, struct part *part, struct lease *lease)
{
    const int64_t price_micro = lease->exposed_micro;
    const uint32_t wanted = part_order(part).slots / part->width;
    uint32_t lanes = lanes_to_take(exchange, part, lease);
    lanes = lanes < wanted ? lanes : wanted;
    lanes = lanes < lease->slots / part->width ? lanes : lease->slots / part->width;
    assert(lanes > 0);
    if (exchange->lease_count >= exchange->limits.leases) {
        leases_make_room(exchange);
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
 * than the last, as with asks in trade_from (fills.c). Returns false when no bid takes any. */
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

void part_challenges(struct exchange *exchange, struct part *part)
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
            part_challenges(exchange, part); /* the bid may want more slots */
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
