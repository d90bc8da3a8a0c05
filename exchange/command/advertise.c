/* A provider advertises devices. A device that is advertised no longer leaves when its
 * leases end. */
#include "exchange/command/apply.h"
#include "exchange/lifecycle.h"
#include "exchange/market/asks.h"
#include "exchange/market/daily.h"
#include "exchange/market/devices.h"
#include "exchange/market/interning.h"
#include "exchange/market/providers.h"
#include "exchange/state/effects.h"
#include "exchange/state/lookup.h"
#include "exchange/state/memory.h"
#include "exchange/state/names.h"
#include "exchange/state/terms.h"
#include "exchange/state/tracking.h"
#include "exchange/work/check_roles.h"

#include <stdlib.h>
#include <string.h>

static bool devices_distinct(const struct exchange_advertise *advertise)
{
    for (size_t i = 0; i < advertise->count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (id128_equal(&advertise->devices[i].device, &advertise->devices[k].device)) {
                return false;
            }
        }
    }
    return true;
}

static struct provider *provider_of(struct exchange *exchange, struct member *member)
{
    if (member->provider != NULL) {
        return member->provider;
    }
    struct provider *provider = memory_allocate(exchange, sizeof *provider);
    if (provider == NULL) {
        return NULL;
    }
    provider->number = member->number;
    provider->order = exchange->next_order++;
    list_init(&provider->devices);
    list_init(&provider->day_uses);
    list_init(&provider->leases);
    list_append(&exchange->provider_list, &provider->all);
    member->provider = provider;
    tracking_add(exchange, &provider->tracked, RECORD_PROVIDER);
    return provider;
}

/* The device takes over the reference to `cell`. */
static void device_set(struct exchange *exchange, struct provider *provider,
                       const struct exchange_device *given, uint32_t cell)
{
    struct device_key key = {.device = given->device, .provider = provider->number};
    struct device *device = table_find(&exchange->devices, &key);
    bool is_new = device == NULL;
    if (is_new) {
        device = memory_allocate(exchange, sizeof *device);
        if (device == NULL) {
            return;
        }
        device->key = key;
        device->order = exchange->next_order++;
        if (!table_insert(&exchange->devices, device)) {
            exchange->is_out_of_memory = true;
            free(device);
            return;
        }
        list_append(&provider->devices, &device->of_provider);
        daily_recall(exchange, device);
        tracking_add(exchange, &device->tracked, RECORD_DEVICE);
    }
    if (!is_new) {
        interning_give_cell(exchange, device->cell); /* the device's asks are gone */
    }
    device->slots = given->slots;
    device->cell = cell;
    device->is_advertised = true;
    name_copy(device->label, given->label);
    tracking_touch(exchange, &device->tracked);
}

static void replace_devices(struct exchange *exchange, struct member *member,
                            const struct exchange_advertise *advertise, const uint32_t *cells)
{
    struct provider *provider = provider_of(exchange, member);
    if (provider == NULL) {
        return;
    }
    asks_cancel_all(exchange, provider, CANCEL_REPLACED);
    for (struct list_link *at = provider->devices.next; at != &provider->devices; at = at->next) {
        struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        device->is_advertised = false;
        tracking_touch(exchange, &device->tracked);
    }
    for (size_t i = 0; i < advertise->count; i++) {
        device_set(exchange, provider, &advertise->devices[i], cells[i]);
    }
    for (struct list_link *at = provider->devices.next; at != &provider->devices;) {
        struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        at = at->next;
        device_drop_if_gone(exchange, device);
    }
    provider_move(&provider->state, PROVIDER_PRESENT);
    tracking_touch(exchange, &provider->tracked);
    provider_for_leases(exchange, provider, provider_returned_lease, NULL);
}

enum { TRUST_OF_REFEREES = 1, TRUST_OF_OPERATORS = 2 };

static const char trust_name[] = "trust";

/* Returns the operator's trust in the account; 0: it may only trade. */
static int64_t trust_in(uint32_t roles)
{
    return (roles & XROLE_OPERATOR) != 0  ? TRUST_OF_OPERATORS
           : (roles & XROLE_REFEREE) != 0 ? TRUST_OF_REFEREES
                                          : 0;
}

static bool is_of_the_market(const struct attribute *attribute)
{
    return check_role_is_attribute(attribute) || terms_is_attribute(attribute) ||
           strcmp(attribute->name, trust_name) == 0;
}

/* Copies the advertisement with attributes that only the exchange may set: referee and trust as the
 * account has them, and firm leases until an ask says otherwise. The caller frees the one block;
 * NULL: memory is short. */
static struct exchange_advertise *with_roles(struct exchange *exchange,
                                             const struct exchange_advertise *said, uint32_t roles)
{
    const int64_t trust = trust_in(roles);
    size_t attributes = 0;
    for (size_t i = 0; i < said->count; i++) {
        attributes += said->devices[i].attribute_count + 2 + TERMS_ATTRIBUTES;
    }
    struct exchange_advertise *whole =
        memory_allocate(exchange, sizeof *whole + said->count * sizeof(struct exchange_device) +
                                      attributes * sizeof(struct attribute));
    if (whole == NULL) {
        return NULL;
    }
    struct exchange_device *devices = (struct exchange_device *)(void *)(whole + 1);
    struct attribute *next = (struct attribute *)(void *)(devices + said->count);
    const struct exchange_terms firm = {0};
    *whole = (struct exchange_advertise){.devices = devices, .count = said->count};
    for (size_t i = 0; i < said->count; i++) {
        const struct exchange_device *device = &said->devices[i];
        devices[i] = *device;
        devices[i].attributes = next;
        for (size_t k = 0; k < device->attribute_count; k++) {
            if (!is_of_the_market(&device->attributes[k])) {
                *next++ = device->attributes[k];
            }
        }
        if ((roles & XROLE_REFEREE) != 0) {
            check_role_attribute(next++);
        }
        if (trust > 0) {
            *next = (struct attribute){.number = trust};
            memcpy(next->name, trust_name, sizeof trust_name);
            next++;
        }
        terms_attributes(&firm, next);
        next += TERMS_ATTRIBUTES;
        devices[i].attribute_count = (size_t)(next - devices[i].attributes);
    }
    return whole;
}

void apply_advertise(struct exchange *exchange, const struct exchange_advertise *advertise)
{
    struct member *member = lookup_sender(exchange);
    if ((member->roles & XROLE_PROVIDER) == 0) {
        effect_reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    if (advertise->count > exchange->limits.devices_per_provider) {
        effect_reject(exchange, XREJECT_LIMIT, "devices", (int64_t)advertise->count,
                      exchange->limits.devices_per_provider);
        return;
    }
    if (!devices_distinct(advertise)) {
        effect_reject(exchange, XREJECT_EXISTS, "devices.device", 0, 0);
        return;
    }
    for (size_t i = 0; i < advertise->count; i++) {
        if (advertise->devices[i].slots == 0) {
            effect_reject(exchange, XREJECT_QUANTITY, "devices.slots", 0, 1);
            return;
        }
    }
    struct exchange_advertise *whole = with_roles(exchange, advertise, member->roles);
    uint32_t *cells = memory_allocate(exchange, (advertise->count + 1) * sizeof *cells);
    if (whole != NULL && cells != NULL && interning_take_cells(exchange, whole, cells)) {
        replace_devices(exchange, member, whole, cells);
    }
    free(cells);
    free(whole);
}
