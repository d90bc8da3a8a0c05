#include "exchange/market/spot_index.h"

#include "exchange/lifecycle.h"
#include "exchange/market/part_limits.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"

#include <assert.h>
#include <stdlib.h>

enum { EXPOSED_LEAST = 64 };

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
    struct spot *spot = memory_allocate(exchange, sizeof *spot);
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

void spot_class_gone(struct exchange *exchange, uint32_t class_id)
{
    if (exchange->spot != NULL && book_class_references(exchange->spot->book, class_id) > 0) {
        book_class_release(exchange->spot->book, class_id);
    }
}

int64_t spot_exposed_ns(const struct lease *lease)
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
    return lease->state == LEASE_ACTIVE && spot_exposed_ns(lease) <= exchange->now_ns &&
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

void spot_expose(struct exchange *exchange, struct lease *lease)
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

void spot_expose_device(struct exchange *exchange, const struct device *device)
{
    const struct provider *provider = lookup_member(exchange, device->key.provider)->provider;
    for (struct list_link *at = provider->leases.next; at != &provider->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_provider);
        if (lease->device == device && lease->terms.is_interruptible) {
            spot_expose(exchange, lease);
        }
    }
}

void spot_expose_job(struct exchange *exchange, const struct job *job)
{
    for (struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        spot_expose(exchange, LIST_ELEMENT(at, struct lease, of_job));
    }
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
