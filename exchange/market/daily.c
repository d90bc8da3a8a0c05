/* A daily bound limits the slot-time that all leases of a device use on one day. The ask sets the
 * bound.
 *
 * The count has two parts: slot-time on the day when it was settled, and time that leases may still
 * use. No lease is granted or renewed beyond the rest, so no day gives more than its bound. The day
 * follows the clock that the ask names. The number of free slots follows from the rest of the day
 * and the ask's longest term. A bid may take a free slot for any term that the ask allows, so other
 * code need not know about days.
 *
 * The use is kept by the provider and outlives the ask and the device. An agent that comes back or
 * was paused does not begin another day. A record goes when room is needed and its day is over. */
#include "exchange/market/daily.h"

#include "exchange/market/donations.h"
#include "exchange/state/lookup.h"

#include <stdlib.h>

struct provider *daily_provider(const struct exchange *exchange, uint32_t number)
{
    return lookup_member(exchange, number)->provider;
}

struct day_use *daily_find(const struct provider *provider, const struct id128 *device)
{
    for (struct list_link *at = provider->day_uses.next; at != &provider->day_uses; at = at->next) {
        struct day_use *use = LIST_ELEMENT(at, struct day_use, of_provider);
        if (id128_equal(&use->device, device)) {
            return use;
        }
    }
    return NULL;
}

struct device *daily_device(const struct exchange *exchange, const struct provider *provider,
                            const struct day_use *use)
{
    const struct device_key key = {.device = use->device, .provider = provider->number};
    return table_find(&exchange->devices, &key);
}

static void drop(struct provider *provider, struct day_use *use)
{
    list_remove(&use->of_provider);
    provider->day_use_count--;
    free(use);
}

bool daily_forget_one(struct exchange *exchange, struct provider *provider)
{
    for (struct list_link *at = provider->day_uses.next; at != &provider->day_uses; at = at->next) {
        struct day_use *use = LIST_ELEMENT(at, struct day_use, of_provider);
        if (use->day < hours_day(use->offset_min, exchange->now_ns) &&
            daily_device(exchange, provider, use) == NULL) {
            drop(provider, use);
            return true;
        }
    }
    return false;
}

void daily_put(struct provider *provider, struct day_use *use)
{
    list_append(&provider->day_uses, &use->of_provider);
    provider->day_use_count++;
}

void daily_destroy(struct provider *provider)
{
    while (!list_empty(&provider->day_uses)) {
        drop(provider, LIST_ELEMENT(provider->day_uses.next, struct day_use, of_provider));
    }
}

void daily_recall(struct exchange *exchange, struct device *device)
{
    device->day_use =
        daily_find(daily_provider(exchange, device->key.provider), &device->key.device);
}

int64_t daily_used_ns(const struct exchange *exchange, const struct device *device)
{
    const struct day_use *use = device->day_use;
    return use != NULL && use->day == hours_day(use->offset_min, exchange->now_ns) ? use->used_ns
                                                                                   : 0;
}

/* Returns the promise also for an ask that brings the first bound; its leases are not counted
 * yet. */
static int128 promised_ns(const struct exchange *exchange, const struct device *device)
{
    int128 sum_ns = device->promised_ns;
    if (device->day_use != NULL) {
        return sum_ns;
    }
    const struct provider *provider = daily_provider(exchange, device->key.provider);
    for (struct list_link *at = provider->leases.next; at != &provider->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_provider);
        if (lease->device == device) {
            sum_ns += donation_promised_till(exchange, lease, lease->term_end_ns);
        }
    }
    return sum_ns;
}

int64_t daily_left_ns(const struct exchange *exchange, const struct ask *ask)
{
    if (ask->daily_ns == 0) {
        return INT64_MAX;
    }
    const int128 left_ns = (int128)ask->daily_ns - daily_used_ns(exchange, ask->device) -
                           promised_ns(exchange, ask->device);
    return left_ns > 0 ? (int64_t)left_ns : 0;
}

uint32_t daily_slots(const struct exchange *exchange, const struct ask *ask)
{
    if (ask->daily_ns == 0) {
        return UINT32_MAX;
    }
    const int64_t slots = daily_left_ns(exchange, ask) / ask->max_term_ns;
    return slots > UINT32_MAX ? UINT32_MAX : (uint32_t)slots;
}

bool daily_is_spent(const struct exchange *exchange, const struct ask *ask)
{
    return daily_slots(exchange, ask) == 0;
}
