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
#include "exchange/state.h"

#include <stdlib.h>
#include <string.h>

static struct provider *provider_of(const struct exchange *exchange, uint32_t number)
{
    return member_by_number(exchange, number)->provider;
}

static struct day_use *find(const struct provider *provider, const struct id128 *device)
{
    for (struct list_link *at = provider->day_uses.next; at != &provider->day_uses; at = at->next) {
        struct day_use *use = LIST_ELEMENT(at, struct day_use, of_provider);
        if (id128_equal(&use->device, device)) {
            return use;
        }
    }
    return NULL;
}

static struct device *device_of(const struct exchange *exchange, const struct provider *provider,
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

/* Drops the oldest record whose day is over and whose device is gone. Returns false when there is
 * none. */
static bool forget_one(struct exchange *exchange, struct provider *provider)
{
    for (struct list_link *at = provider->day_uses.next; at != &provider->day_uses; at = at->next) {
        struct day_use *use = LIST_ELEMENT(at, struct day_use, of_provider);
        if (use->day < hours_day(use->offset_min, exchange->now_ns) &&
            device_of(exchange, provider, use) == NULL) {
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
    device->day_use = find(provider_of(exchange, device->key.provider), &device->key.device);
}

/* Starts to count the time that the device's standing leases may still use. */
static void count_leases(struct exchange *exchange, struct device *device)
{
    const struct provider *provider = provider_of(exchange, device->key.provider);
    for (struct list_link *at = provider->leases.next; at != &provider->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_provider);
        if (lease->device == device) {
            device->promised_ns += lease->promised_ns;
            donation_promise(exchange, lease);
            touch(exchange, &lease->tracked);
        }
    }
}

bool daily_begin(struct exchange *exchange, const struct ask *ask)
{
    struct device *device = ask->device;
    struct provider *provider = provider_of(exchange, device->key.provider);
    const int32_t offset_min = ask->hours.offset_min;
    if (ask->daily_ns == 0) {
        return true;
    }
    /* The clock may be another one; today's use then counts on the new clock. */
    if (device->day_use != NULL) {
        struct day_use *use = device->day_use;
        const int64_t used_ns = daily_used_ns(exchange, device);
        use->offset_min = offset_min;
        use->day = hours_day(offset_min, exchange->now_ns);
        use->used_ns = used_ns;
        touch(exchange, &provider->tracked);
        return true;
    }
    struct day_use *use = allocate(exchange, sizeof *use);
    if (use == NULL) {
        return false;
    }
    while (provider->day_use_count >= exchange->limits.devices_per_provider &&
           forget_one(exchange, provider)) {
    }
    use->device = device->key.device;
    use->offset_min = offset_min;
    use->day = hours_day(offset_min, exchange->now_ns);
    daily_put(provider, use);
    device->day_use = use;
    count_leases(exchange, device);
    touch(exchange, &provider->tracked);
    return true;
}

void daily_promise(struct exchange *exchange, struct device *device, int128 more_ns)
{
    if (device->day_use != NULL) {
        device->promised_ns += more_ns;
        assert(device->promised_ns >= 0);
        device_slots_changed(exchange, device);
    }
}

void daily_settle(struct exchange *exchange, const struct lease *lease, int64_t paid_ns)
{
    struct provider *provider = provider_of(exchange, lease->provider);
    struct day_use *use =
        lease->device != NULL ? lease->device->day_use : find(provider, &lease->device_id);
    if (use == NULL) {
        return;
    }
    const int64_t day = hours_day(use->offset_min, exchange->now_ns);
    const int64_t before_ns = use->day == day ? use->used_ns : 0;
    use->used_ns = paid_ns < INT64_MAX - before_ns ? before_ns + paid_ns : INT64_MAX;
    use->day = day;
    touch(exchange, &provider->tracked);
    if (lease->device == NULL) { /* The lease has ended and holds no promise, but its use counts. */
        struct device *device = device_of(exchange, provider, use);
        if (device != NULL) {
            device_slots_changed(exchange, device);
        }
    }
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
    const struct provider *provider = provider_of(exchange, device->key.provider);
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

bool ask_is_spent(const struct exchange *exchange, const struct ask *ask)
{
    return daily_slots(exchange, ask) == 0;
}
