#include "exchange/market/promises.h"

#include "exchange/lifecycle.h"
#include "exchange/market/daily.h"
#include "exchange/market/devices.h"
#include "exchange/market/donations.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/tracking.h"

#include <assert.h>

/* Starts to count the time that the device's standing leases may still use. */
static void count_leases(struct exchange *exchange, struct device *device)
{
    const struct provider *provider = daily_provider(exchange, device->key.provider);
    for (struct list_link *at = provider->leases.next; at != &provider->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_provider);
        if (lease->device == device) {
            device->promised_ns += lease->promised_ns;
            promise_term(exchange, lease);
            tracking_touch(exchange, &lease->tracked);
        }
    }
}

bool promise_count_days(struct exchange *exchange, const struct ask *ask)
{
    struct device *device = ask->device;
    struct provider *provider = daily_provider(exchange, device->key.provider);
    const int32_t offset_min = ask->hours.offset_min;
    if (ask->daily_ns == 0) {
        return true;
    }
    /* The device's earlier ask may have named another time zone. Today's use then counts for the
     * day of the new zone. */
    if (device->day_use != NULL) {
        struct day_use *use = device->day_use;
        const int64_t used_ns = daily_used_ns(exchange, device);
        use->offset_min = offset_min;
        use->day = hours_day(offset_min, exchange->now_ns);
        use->used_ns = used_ns;
        tracking_touch(exchange, &provider->tracked);
        return true;
    }
    struct day_use *use = memory_allocate(exchange, sizeof *use);
    if (use == NULL) {
        return false;
    }
    while (provider->day_use_count >= exchange->limits.devices_per_provider &&
           daily_forget_one(exchange, provider)) {
    }
    use->device = device->key.device;
    use->offset_min = offset_min;
    use->day = hours_day(offset_min, exchange->now_ns);
    daily_put(provider, use);
    device->day_use = use;
    count_leases(exchange, device);
    tracking_touch(exchange, &provider->tracked);
    return true;
}

void promise_add_to_day(struct exchange *exchange, struct device *device, int128 more_ns)
{
    if (device->day_use != NULL) {
        device->promised_ns += more_ns;
        assert(device->promised_ns >= 0);
        device_slots_changed(exchange, device);
    }
}

/* Adds times of 0 or more; the sum stops at INT64_MAX. */
static int64_t add_saturating(int64_t before_ns, int64_t more_ns)
{
    return more_ns < INT64_MAX - before_ns ? before_ns + more_ns : INT64_MAX;
}

static void settle_day(struct exchange *exchange, const struct lease *lease, int64_t paid_ns)
{
    struct provider *provider = daily_provider(exchange, lease->provider);
    struct day_use *use =
        lease->device != NULL ? lease->device->day_use : daily_find(provider, &lease->device_id);
    if (use == NULL) {
        return;
    }
    const int64_t day = hours_day(use->offset_min, exchange->now_ns);
    const int64_t before_ns = use->day == day ? use->used_ns : 0;
    use->used_ns = add_saturating(before_ns, paid_ns);
    use->day = day;
    tracking_touch(exchange, &provider->tracked);
    if (lease->device == NULL) { /* the lease has ended and holds no promise, but its use counts */
        struct device *device = daily_device(exchange, provider, use);
        if (device != NULL) {
            device_slots_changed(exchange, device);
        }
    }
}

static void set_promise(struct exchange *exchange, struct lease *lease, int64_t promised_ns)
{
    const int128 more_ns = (int128)promised_ns - lease->promised_ns;
    lease->promised_ns = promised_ns;
    if (lease->price_micro == 0) {
        struct member *owner = lookup_member(exchange, lease->job->owner);
        owner->promised_ns += more_ns;
        assert(owner->promised_ns >= 0);
    }
    if (lease->device != NULL) {
        promise_add_to_day(exchange, lease->device, more_ns);
    }
}

void promise_term(struct exchange *exchange, struct lease *lease)
{
    if (lease->price_micro == 0 || lease->device->day_use != NULL) {
        set_promise(exchange, lease, donation_promised_till(exchange, lease, lease->term_end_ns));
    }
}

void promise_end(struct exchange *exchange, struct lease *lease)
{
    set_promise(exchange, lease, 0);
}

void promise_settle(struct exchange *exchange, struct lease *lease, int64_t paid_ns)
{
    if (paid_ns == 0) {
        return;
    }
    if (lease->price_micro == 0) {
        struct member *owner = lookup_member(exchange, lease->job->owner);
        struct member *giver = lookup_member(exchange, lease->provider);
        owner->donated_ns = add_saturating(donation_used_ns(exchange, owner), paid_ns);
        owner->donated_day = donation_day(exchange);
        giver->given_ns = add_saturating(giver->given_ns, paid_ns);
        tracking_touch(exchange, &owner->tracked);
        tracking_touch(exchange, &giver->tracked);
    }
    settle_day(exchange, lease, paid_ns);
    set_promise(exchange, lease, lease->promised_ns > paid_ns ? lease->promised_ns - paid_ns : 0);
}
