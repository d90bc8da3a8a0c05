#include "exchange/market/asks.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/devices.h"
#include "exchange/market/donations.h"
#include "exchange/market/interning.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/effects.h"
#include "exchange/state/feed_upkeep.h"
#include "exchange/state/handles.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/tracking.h"
#include "exchange/work/lease_records.h"

#include <assert.h>
#include <stdlib.h>

/* The agent may not know of the ask: other sessions of the account place and cancel orders too. */
static void tell_of_ask(struct exchange *exchange, const struct ask *ask, bool stands)
{
    struct exchange_effect *effect = effect_emit(exchange, EFFECT_ASK, ask->device->key.provider);
    effect->ask = (struct exchange_ask_note){.device = ask->device->key.device,
                                             .order = ask->order,
                                             .stands = stands,
                                             .slots = ask->slots,
                                             .price_micro = ask->price_micro,
                                             .good_till_ns = ask->good_till_ns,
                                             .max_term_ns = ask->max_term_ns,
                                             .terms = ask->terms};
}

void ask_cancel(struct exchange *exchange, struct ask *ask, uint8_t reason)
{
    if (reason == CANCEL_BY_OWNER || reason == CANCEL_EXPIRED || reason == CANCEL_NOT_RESTING) {
        tell_of_ask(exchange, ask, false);
    }
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_CANCEL);
    record->order = ask->order;
    record->status = reason;
    assert(book_sequence(exchange->book, ask->handle) == ask->sequence);
    book_remove(exchange->book, ask->handle);
    feed_note(exchange, ask->handle);
    handle_give(exchange, ask->handle);
    list_remove(&ask->wanting);
    table_remove(&exchange->asks, &ask->order);
    struct device *device = ask->device;
    device->ask = NULL;
    exchange->ask_count--;
    tracking_remove(exchange, &ask->tracked);
    free(ask);
    spot_expose_device(exchange, device);
}

void asks_cancel_all(struct exchange *exchange, struct provider *provider, uint8_t reason)
{
    for (struct list_link *at = provider->devices.next; at != &provider->devices; at = at->next) {
        struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        if (device->ask != NULL) {
            ask_cancel(exchange, device->ask, reason);
        }
    }
}

struct book_order ask_order(const struct exchange *exchange, const struct ask *ask)
{
    return (struct book_order){
        .owner = ask->device->key.provider,
        .kind = ask->device->cell,
        .slots = device_free_slots(exchange, ask),
        .width = 1,
        .price_micro = ask->price_micro,
        .term_ns = ask->max_term_ns,
        .sequence = ask->sequence,
    };
}

void ask_rest(struct exchange *exchange, const struct ask *ask)
{
    const struct book_order order = ask_order(exchange, ask);
    (void)book_rest(exchange->book, ask->handle, &order); /* the cap of the book has room */
    exchange->slots_freed += order.slots;
    feed_note(exchange, ask->handle);
}

static bool skip_waiting(void *context, uint32_t handle)
{
    const struct suiting *suiting = context;
    return handle_waits_for_all(suiting->exchange, handle) || ask_is_unsuited(context, handle);
}

uint32_t ask_refusal(const struct exchange *exchange, const struct ask *ask,
                     int64_t *ret_price_micro)
{
    struct book_order order = ask_order(exchange, ask);
    struct book_match match;
    struct suiting suiting = {.exchange = exchange, .ask = ask};
    if (ask_match(exchange, &order, ask_is_unsuited, &suiting, &match) && match.is_own) {
        return XREJECT_SELF_MATCH;
    }
    if (ask->type != EXCHANGE_POST_ONLY ||
        !ask_match(exchange, &order, skip_waiting, &suiting, &match)) {
        return 0;
    }
    *ret_price_micro = match.price_micro;
    return XREJECT_WOULD_TRADE;
}

struct ask *ask_create(struct exchange *exchange, const struct ask *fields)
{
    struct ask *ask = memory_allocate(exchange, sizeof *ask);
    if (ask == NULL) {
        return NULL;
    }
    *ask = *fields;
    ask->handle = handle_take(exchange, ask);
    if (ask->handle == BOOK_NONE || !table_insert(&exchange->asks, ask)) {
        exchange->is_out_of_memory = true; /* the cap was checked before */
        free(ask);
        return NULL;
    }
    ask->device->ask = ask;
    list_init(&ask->wanting);
    ask->terms = interning_cell_terms(exchange, ask->device->cell);
    exchange->ask_count++;
    tracking_add(exchange, &ask->tracked, RECORD_ASK);
    return ask;
}

/* Another part of the job may have the idle slots now that the device is on offer. */
static void offer_idle_leases(struct exchange *exchange, const struct device *device)
{
    const struct provider *provider = lookup_member(exchange, device->key.provider)->provider;
    for (struct list_link *at = provider->leases.next; at != &provider->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_provider);
        if (lease->device == device && lease->live == 0 && lease->job->part_count > 1) {
            lease_refill_later(exchange, lease);
        }
    }
}

void ask_placed(struct exchange *exchange, struct ask *ask)
{
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_ASK);
    record->order = ask->order;
    record->owner = lookup_member(exchange, ask->device->key.provider)->key;
    record->device = ask->device->key.device;
    record->slots = ask->slots;
    record->price_micro = ask->price_micro;
    tell_of_ask(exchange, ask, true);
    if (list_empty(&ask->wanting)) {
        list_append(&exchange->wanting_asks, &ask->wanting);
    }
    offer_idle_leases(exchange, ask->device); /* the former terms kept them from other parts */
    spot_expose_device(exchange, ask->device);
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
