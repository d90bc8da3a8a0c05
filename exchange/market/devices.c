#include "exchange/market/devices.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"
#include "exchange/market/daily.h"
#include "exchange/market/interning.h"
#include "exchange/state/feed_upkeep.h"
#include "exchange/state/tracking.h"

#include <assert.h>
#include <stdlib.h>

uint32_t device_free_slots(const struct exchange *exchange, const struct ask *ask)
{
    const struct device *device = ask->device;
    if (!ask->is_open) {
        return 0;
    }
    uint32_t offered = ask->slots < device->slots ? ask->slots : device->slots;
    const uint32_t left = offered > device->leased ? offered - device->leased : 0;
    const uint32_t of_day = daily_slots(exchange, ask);
    return left < of_day ? left : of_day;
}

void device_slots_changed(struct exchange *exchange, struct device *device)
{
    tracking_touch(exchange, &device->tracked);
    struct ask *ask = device->ask;
    if (ask == NULL || !book_rests(exchange->book, ask->handle)) {
        return;
    }
    uint32_t before = book_slots(exchange->book, ask->handle);
    uint32_t now = device_free_slots(exchange, ask);
    book_set_slots(exchange->book, ask->handle, now);
    feed_note(exchange, ask->handle);
    exchange->slots_freed += now > before ? now - before : 0;
    if (now > before && list_empty(&ask->wanting)) {
        list_append(&exchange->wanting_asks, &ask->wanting);
    }
}

void device_drop_if_gone(struct exchange *exchange, struct device *device)
{
    if (device->is_advertised || device->leased > 0) {
        return;
    }
    assert(device->ask == NULL);
    table_remove(&exchange->devices, &device->key);
    list_remove(&device->of_provider);
    tracking_remove(exchange, &device->tracked);
    interning_give_cell(exchange, device->cell);
    free(device);
}
