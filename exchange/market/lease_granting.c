#include "exchange/market/lease_granting.h"

#include "exchange/lifecycle.h"
#include "exchange/market/bids.h"
#include "exchange/market/devices.h"
#include "exchange/market/escrow.h"
#include "exchange/market/fill_prices.h"
#include "exchange/market/promises.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/effects.h"
#include "exchange/state/feed_upkeep.h"
#include "exchange/state/instruments.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/names.h"
#include "exchange/state/tracking.h"
#include "exchange/work/lease_records.h"

#include <assert.h>
#include <stdlib.h>

void lease_start_term(struct exchange *exchange, struct lease *lease)
{
    lease->device->leased += lease->slots;
    device_slots_changed(exchange, lease->device);
    lease_arm(exchange, lease);
}

static void emit_fill(struct exchange *exchange, const struct lease *lease)
{
    const struct part *part = lease->part;
    struct ledger_record *record = effect_emit_ledger(exchange, LEDGER_FILL);
    record->lease = lease->id;
    record->order = lease->ask;
    record->bid = bid_id(part);
    record->job = lease->job->id;
    record->provider = lookup_member(exchange, lease->provider)->key;
    record->owner = lookup_member(exchange, lease->job->owner)->key;
    record->device = lease->device_id;
    record->slots = lease->slots;
    record->width = part->width;
    record->price_micro = lease->price_micro;
    record->term_ns = part->term_ns;
    static_assert(sizeof record->name == ATTRIBUTE_TEXT_SIZE, "an instrument is a name");
    instrument_of_cell(exchange, lease->device->cell, record->name);
    feed_trade(exchange, record);
}

struct lease *lease_grant(struct exchange *exchange, struct part *part, struct ask *ask,
                          uint32_t slots, int64_t price_micro, struct lease *former)
{
    struct job *job = part->job;
    struct device *device = ask->device;
    exchange->market_changes++;
    struct lease *lease = memory_allocate(exchange, sizeof *lease);
    struct lane *lanes =
        lease == NULL ? NULL : memory_allocate(exchange, slots / part->width * sizeof *lanes);
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
    name_copy(lease->label, device->label);
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
    promise_term(exchange, lease);
    tracking_add(exchange, &lease->tracked, RECORD_LEASE);

    job->reserved_micro += lease->reserved_micro;
    assert(job->reserved_micro <= hold_left(&job->hold)); /* P5 */
    part->lanes += lease->lane_count;
    tracking_touch(exchange, &job->tracked);
    if (former == NULL) {
        lease_start_term(exchange, lease);
    }

    emit_fill(exchange, lease);
    if (former == NULL) {
        lease_effect(exchange, lease, EFFECT_LEASE_GRANT);
        lease_refill_later(exchange, lease);
        spot_expose(exchange, lease);
    }
    bid_wants(exchange, part);
    effect_report_job(exchange, job);
    return lease;
}

bool lease_grant_between(struct exchange *exchange, struct part *part, struct ask *ask,
                         uint32_t slots)
{
    if (exchange->lease_count >= exchange->limits.leases) {
        lease_make_room(exchange);
    }
    if (exchange->lease_count >= exchange->limits.leases) {
        return false;
    }
    const int64_t price = fill_price(exchange, part, ask);
    const uint32_t affordable = escrow_affordable_lanes(part, price);
    const uint32_t fillable = slots / part->width;
    const uint32_t lanes = affordable < fillable ? affordable : fillable;
    if (lanes == 0) {
        return false;
    }
    const bool is_foreseen = fill_price_begin(exchange, part, ask, lanes * part->width);
    const struct lease *lease = lease_grant(exchange, part, ask, lanes * part->width, price, NULL);
    fill_price_end(exchange, ask, is_foreseen);
    return lease != NULL;
}
