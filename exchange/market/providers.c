/* A provider advertises devices, places asks on them, and comes and goes. */
#include "exchange/state.h"

#include "base/checked.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- asks and free slots */

/* Counts none outside the ask's hours, and no more than the day has left. */
static uint32_t free_slots(const struct exchange *exchange, const struct ask *ask)
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
    touch(exchange, &device->tracked);
    struct ask *ask = device->ask;
    if (ask == NULL || !book_rests(exchange->book, ask->handle)) {
        return;
    }
    uint32_t before = book_slots(exchange->book, ask->handle);
    uint32_t now = free_slots(exchange, ask);
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
    untrack(exchange, &device->tracked);
    cell_give(exchange, device->cell);
    free(device);
}

/* The agent may not know of the ask: other sessions of the account place and cancel orders too. */
static void tell_of_ask(struct exchange *exchange, const struct ask *ask, bool stands)
{
    struct exchange_effect *effect = emit(exchange, EFFECT_ASK, ask->device->key.provider);
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
    struct ledger_record *record = emit_ledger(exchange, LEDGER_CANCEL);
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
    untrack(exchange, &ask->tracked);
    free(ask);
    device_expose_leases(exchange, device);
}

void provider_asks_cancel(struct exchange *exchange, struct provider *provider, uint8_t reason)
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
        .slots = free_slots(exchange, ask),
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
    return bid_waits_for_all(suiting->exchange, handle) || is_unsuited(context, handle);
}

uint32_t ask_refusal(const struct exchange *exchange, const struct ask *ask,
                     int64_t *ret_price_micro)
{
    struct book_order order = ask_order(exchange, ask);
    struct book_match match;
    struct suiting suiting = {.exchange = exchange, .ask = ask};
    if (ask_match(exchange, &order, is_unsuited, &suiting, &match) && match.is_own) {
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
    struct ask *ask = allocate(exchange, sizeof *ask);
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
    ask->terms = cell_terms(exchange, ask->device->cell);
    exchange->ask_count++;
    track(exchange, &ask->tracked, RECORD_ASK);
    return ask;
}

/* ---------------------------------------------------------------- leases of a provider */

typedef void on_lease(struct exchange *exchange, struct lease *lease, const void *context);

/* Visits leases oldest first. An action may end further leases, so each is looked up again. */
static void for_leases_of(struct exchange *exchange, const struct provider *provider,
                          on_lease *action, const void *context)
{
    size_t count = 0;
    uint64_t *numbers = allocate(exchange, (provider->lease_count + 1) * sizeof *numbers);
    if (numbers == NULL) {
        return;
    }
    for (struct list_link *at = provider->leases.next; at != &provider->leases; at = at->next) {
        numbers[count++] = LIST_ELEMENT(at, struct lease, of_provider)->id;
    }
    for (size_t i = 0; i < count; i++) {
        struct lease *lease = lease_by_id(exchange, numbers[i]);
        if (lease != NULL && lease->state != LEASE_ENDED) {
            action(exchange, lease, context);
        }
    }
    free(numbers);
}

static void suspect(struct exchange *exchange, struct lease *lease, const void *context)
{
    (void)context;
    lease_suspect(exchange, lease);
}

static void returned(struct exchange *exchange, struct lease *lease, const void *context)
{
    (void)context;
    lease_returned(exchange, lease);
}

static void revoke(struct exchange *exchange, struct lease *lease, const void *context)
{
    (void)context;
    lease_end(exchange, lease, XEND_REVOKED, true);
    job_check(exchange, lease->job); /* it may have been the last attempt of the last subtask */
}

/* A provider that left hears nothing. A job that loses work avoids it for a while; otherwise a
 * provider that comes and goes could use up all attempts of a subtask. */
static void leave(struct exchange *exchange, struct lease *lease, const void *context)
{
    (void)context;
    if (lease->live > 0 && !job_avoids(exchange, lease->job, lease->provider)) {
        job_avoid(exchange, lease->job, lease->provider, AVOID_NS);
    }
    lease_end(exchange, lease, XEND_TERM, false);
    job_check(exchange, lease->job);
}

/* Another part of the job may have the idle slots now that the device is on offer. */
static void offer_idle_leases(struct exchange *exchange, const struct device *device)
{
    const struct provider *provider = member_by_number(exchange, device->key.provider)->provider;
    for (struct list_link *at = provider->leases.next; at != &provider->leases; at = at->next) {
        struct lease *lease = LIST_ELEMENT(at, struct lease, of_provider);
        if (lease->device == device && lease->live == 0 && lease->job->part_count > 1) {
            lease_refill_later(exchange, lease);
        }
    }
}

void provider_leases_revoke(struct exchange *exchange, struct provider *provider)
{
    for_leases_of(exchange, provider, revoke, NULL);
}

/* ---------------------------------------------------------------- devices */

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
    struct provider *provider = allocate(exchange, sizeof *provider);
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
    track(exchange, &provider->tracked, RECORD_PROVIDER);
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
        device = allocate(exchange, sizeof *device);
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
        track(exchange, &device->tracked, RECORD_DEVICE);
    }
    if (!is_new) {
        cell_give(exchange, device->cell); /* its asks are gone */
    }
    device->slots = given->slots;
    device->cell = cell;
    device->is_advertised = true;
    copy_name(device->label, given->label);
    touch(exchange, &device->tracked);
}

static void replace_devices(struct exchange *exchange, struct member *member,
                            const struct exchange_advertise *advertise, const uint32_t *cells)
{
    struct provider *provider = provider_of(exchange, member);
    if (provider == NULL) {
        return;
    }
    provider_asks_cancel(exchange, provider, CANCEL_REPLACED);
    for (struct list_link *at = provider->devices.next; at != &provider->devices; at = at->next) {
        struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        device->is_advertised = false;
        touch(exchange, &device->tracked);
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
    touch(exchange, &provider->tracked);
    for_leases_of(exchange, provider, returned, NULL);
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
    return checks_is_attribute(attribute) || terms_is_attribute(attribute) ||
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
        allocate(exchange, sizeof *whole + said->count * sizeof(struct exchange_device) +
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
            checks_attribute(next++);
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
    struct member *member = sender(exchange);
    if ((member->roles & XROLE_PROVIDER) == 0) {
        reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    if (advertise->count > exchange->limits.devices_per_provider) {
        reject(exchange, XREJECT_LIMIT, "devices", (int64_t)advertise->count,
               exchange->limits.devices_per_provider);
        return;
    }
    if (!devices_distinct(advertise)) {
        reject(exchange, XREJECT_EXISTS, "devices.device", 0, 0);
        return;
    }
    for (size_t i = 0; i < advertise->count; i++) {
        if (advertise->devices[i].slots == 0) {
            reject(exchange, XREJECT_QUANTITY, "devices.slots", 0, 1);
            return;
        }
    }
    struct exchange_advertise *whole = with_roles(exchange, advertise, member->roles);
    uint32_t *cells = allocate(exchange, (advertise->count + 1) * sizeof *cells);
    if (whole != NULL && cells != NULL && cells_take(exchange, whole, cells)) {
        replace_devices(exchange, member, whole, cells);
    }
    free(cells);
    free(whole);
}

void ask_placed(struct exchange *exchange, struct ask *ask)
{
    struct ledger_record *record = emit_ledger(exchange, LEDGER_ASK);
    record->order = ask->order;
    record->owner = member_by_number(exchange, ask->device->key.provider)->key;
    record->device = ask->device->key.device;
    record->slots = ask->slots;
    record->price_micro = ask->price_micro;
    tell_of_ask(exchange, ask, true);
    if (list_empty(&ask->wanting)) {
        list_append(&exchange->wanting_asks, &ask->wanting);
    }
    offer_idle_leases(exchange, ask->device); /* the former terms kept them from other parts */
    device_expose_leases(exchange, ask->device);
}

static bool terms_in_range(struct exchange *exchange, const struct exchange_terms *terms)
{
    const int64_t notice_ns = terms->is_interruptible ? terms->notice_ns : 0;
    const int64_t run_ns = terms->is_interruptible ? terms->minimum_run_ns : 0;
    if (notice_ns < 0 || notice_ns > EXCHANGE_NOTICE_MOST_NS) {
        reject(exchange, XREJECT_QUANTITY, "notice_ms", notice_ns / NS_PER_MS,
               EXCHANGE_NOTICE_MOST_NS / NS_PER_MS);
        return false;
    }
    if (run_ns < 0 || run_ns > EXCHANGE_RUN_MOST_NS) {
        reject(exchange, XREJECT_QUANTITY, "minimum_run_ms", run_ns / NS_PER_MS,
               EXCHANGE_RUN_MOST_NS / NS_PER_MS);
        return false;
    }
    return true;
}

void apply_ask(struct exchange *exchange, const struct exchange_ask *given)
{
    const struct member *member = sender(exchange);
    if ((member->roles & XROLE_PROVIDER) == 0) {
        reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    if (exchange->is_halted) {
        reject(exchange, XREJECT_HALTED, "market", 0, 0);
        return;
    }
    if (member->provider == NULL || member->provider->state != PROVIDER_PRESENT) {
        reject(exchange, XREJECT_STATE, "provider", 0, 0);
        return;
    }
    struct device_key key = {.device = given->device, .provider = member->number};
    struct device *device = table_find(&exchange->devices, &key);
    if (device == NULL || !device->is_advertised) {
        reject(exchange, XREJECT_DEVICE, "device", 0, 0);
        return;
    }
    if (given->slots == 0 || given->slots > device->slots) {
        reject(exchange, XREJECT_QUANTITY, "slots", given->slots, device->slots);
        return;
    }
    if (!price_in_band(exchange, "price_micro", given->price_micro)) {
        return;
    }
    if (given->price_micro > INT64_MAX / given->slots) {
        reject(exchange, XREJECT_PRICE, "price_micro", given->price_micro,
               INT64_MAX / given->slots);
        return;
    }
    if (given->type != EXCHANGE_LIMIT && given->type != EXCHANGE_IOC &&
        given->type != EXCHANGE_POST_ONLY) {
        reject(exchange, XREJECT_QUANTITY, "order", given->type, EXCHANGE_POST_ONLY);
        return;
    }
    if (given->max_term_ns < 0) {
        reject(exchange, XREJECT_QUANTITY, "max_term_ms", given->max_term_ns / NS_PER_MS, 0);
        return;
    }
    if (!notional_in_bounds(exchange, "notional_micro",
                            ask_notional(given->price_micro, given->slots, given->max_term_ns))) {
        return;
    }
    if (given->good_till_ns < 0 ||
        (given->good_till_ns != 0 && given->good_till_ns <= exchange->now_ns)) {
        reject(exchange, XREJECT_QUANTITY, "good_till_ms", given->good_till_ns / NS_PER_MS,
               exchange->now_ns / NS_PER_MS);
        return;
    }
    if (device->ask == NULL && exchange->ask_count >= exchange->limits.asks) {
        reject(exchange, XREJECT_LIMIT, "asks", exchange->ask_count, exchange->limits.asks);
        return;
    }
    if (table_find(&exchange->asks, &exchange->command->id) != NULL) {
        reject(exchange, XREJECT_EXISTS, "id", 0, 0); /* another account's order has that id */
        return;
    }
    if (!terms_in_range(exchange, &given->terms)) {
        return;
    }
    struct ask fields = {
        .order = exchange->command->id,
        .device = device,
        .slots = given->slots,
        .price_micro = given->price_micro,
        .good_till_ns = given->good_till_ns,
        .max_term_ns = given->max_term_ns,
        .type = (uint8_t)given->type,
        .sequence = exchange->sequence,
    };
    if (!conditions_read(exchange, given, &fields)) {
        return;
    }
    const uint32_t cell_before = device->cell;
    uint32_t cell;
    if (!cell_take_with_terms(exchange, device, &given->terms, &cell)) {
        return;
    }
    device->cell = cell;
    fields.terms = cell_terms(exchange, cell);
    int64_t bid_micro = 0;
    const uint32_t code = ask_refusal(exchange, &fields, &bid_micro);
    if (code != 0) {
        device->cell = cell_before;
        cell_give(exchange, cell);
        reject(exchange, code, "price_micro", given->price_micro, bid_micro);
        return;
    }
    if (device->ask != NULL) {
        ask_cancel(exchange, device->ask, CANCEL_REPLACED);
    }
    struct ask *ask = ask_create(exchange, &fields);
    if (ask == NULL || !daily_begin(exchange, ask)) {
        return;
    }
    cell_give(exchange, cell_before);
    touch(exchange, &device->tracked);
    exchange->sequence++;
    ask_arm(exchange, ask);
    ask_placed(exchange, ask);
}

void apply_cancel_order(struct exchange *exchange, const struct exchange_cancel_order *cancel)
{
    uint32_t account = exchange->command->account;
    struct ask *ask = table_find(&exchange->asks, &cancel->order);
    if (ask != NULL && ask->device->key.provider == account) {
        ask_cancel(exchange, ask, CANCEL_BY_OWNER);
        return;
    }
    const struct job *job = table_find(&exchange->jobs, &cancel->order);
    if (job != NULL && job->owner == account) {
        reject(exchange, XREJECT_STATE, "order", 0, 0); /* a job's own order ends with the job */
        return;
    }
    reject(exchange, XREJECT_NOT_FOUND, "order", 0, 0);
}

/* ---------------------------------------------------------------- coming and going */

static struct provider *provider_by_number(struct exchange *exchange, uint32_t number)
{
    const struct member *member = member_by_number(exchange, number);
    return member != NULL ? member->provider : NULL;
}

void apply_suspect(struct exchange *exchange, uint32_t number)
{
    struct provider *provider = provider_by_number(exchange, number);
    if (provider == NULL || provider->state != PROVIDER_PRESENT) {
        return;
    }
    provider_move(&provider->state, PROVIDER_SUSPECT);
    touch(exchange, &provider->tracked);
    provider_asks_cancel(exchange, provider, CANCEL_DISCONNECT);
    for_leases_of(exchange, provider, suspect, NULL);
}

void apply_returned(struct exchange *exchange, uint32_t number)
{
    struct provider *provider = provider_by_number(exchange, number);
    if (provider == NULL || provider->state != PROVIDER_SUSPECT) {
        return;
    }
    provider_move(&provider->state, PROVIDER_PRESENT);
    touch(exchange, &provider->tracked);
    for_leases_of(exchange, provider, returned, NULL);
}

void apply_goodbye(struct exchange *exchange, uint32_t number)
{
    struct provider *provider = provider_by_number(exchange, number);
    if (provider == NULL || provider->state == PROVIDER_AWAY) {
        return;
    }
    provider_move(&provider->state, PROVIDER_AWAY);
    touch(exchange, &provider->tracked);
    provider_asks_cancel(exchange, provider, CANCEL_DISCONNECT);
    for_leases_of(exchange, provider, leave, NULL);
    for (struct list_link *at = provider->devices.next; at != &provider->devices;) {
        struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        at = at->next;
        device->is_advertised = false;
        touch(exchange, &device->tracked);
        device_drop_if_gone(exchange, device);
    }
}

/* ---------------------------------------------------------------- reconciliation, both ways */

static int compare_held(const void *left, const void *right)
{
    const struct exchange_held *a = left;
    const struct exchange_held *b = right;
    if (a->lease != b->lease) {
        return a->lease < b->lease ? -1 : 1;
    }
    if (a->index != b->index) {
        return a->index < b->index ? -1 : 1;
    }
    return (a->attempt > b->attempt) - (a->attempt < b->attempt);
}

struct held_list {
    const struct exchange_held *items; /* sorted */
    size_t count;
    int64_t as_of_ns; /* time of the agent's Welcome */
};

static const struct exchange_held *held_first_of(const struct held_list *held, uint64_t lease)
{
    size_t low = 0;
    for (size_t high = held->count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (held->items[middle].lease < lease) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < held->count && held->items[low].lease == lease ? &held->items[low] : NULL;
}

static bool held_has(const struct held_list *held, uint64_t lease, uint32_t index, uint32_t attempt)
{
    const struct exchange_held key = {.lease = lease, .index = index, .attempt = attempt};
    return bsearch(&key, held->items, held->count, sizeof key, compare_held) != NULL;
}

/* The broker counts on the attempt and the agent does not have it. An attempt sent before the
 * agent's Welcome is lost, and its subtask is queued again. A later one may be on its way, so
 * sending it again does no harm, unless the provider may not run it any more. A doubted one was
 * queued before. Returns true when the agent has lost work. */
static bool tell_missing(struct exchange *exchange, struct lease *lease, struct attempt *attempt,
                         int64_t as_of_ns)
{
    bool was_sent_before = attempt->dispatched_ns < as_of_ns;
    bool is_wanted = !attempt->is_fenced && !attempt->is_withdrawn && !attempt->is_doubted;
    bool may_run = provider_may_run(exchange, lease->job, attempt->key.index, lease->provider);
    if (was_sent_before || attempt->is_doubted || (is_wanted && !may_run)) {
        attempt_missing(exchange, lease, attempt);
    } else if (is_wanted) {
        work_effect(exchange, lease, attempt, EFFECT_DISPATCH);
    }
    return was_sent_before && is_wanted;
}

/* Compares the broker's view of the lease with the agent's. Any loss is one failure, since one
 * restart causes it. */
static void reconcile(struct exchange *exchange, struct lease *lease, const void *context)
{
    const struct held_list *held = context;
    bool is_held = held_first_of(held, lease->id) != NULL;
    bool has_lost = false;
    if (lease->state == LEASE_PROMISED) {
        return; /* its agent hears of it when it begins */
    }
    if (!is_held) {
        lease_effect(exchange, lease, EFFECT_LEASE_GRANT);
    }
    if (lease->is_noticed) {
        lease_effect(exchange, lease, EFFECT_LEASE_NOTICE);
    }
    for (struct list_link *at = lease->attempts.next; at != &lease->attempts;) {
        struct attempt *attempt = LIST_ELEMENT(at, struct attempt, of_lease);
        at = at->next;
        if (!held_has(held, lease->id, attempt->key.index, attempt->key.attempt)) {
            has_lost = tell_missing(exchange, lease, attempt, held->as_of_ns) || has_lost;
        } else if (attempt->is_fenced || attempt->is_withdrawn) {
            work_effect(exchange, lease, attempt, EFFECT_WITHDRAW);
        }
    }
    if (has_lost) {
        lease->failures_in_row++;
        touch(exchange, &lease->tracked);
    }
    lease_end_if_failing(exchange, lease);
    if (lease->state != LEASE_ENDED) {
        lease_refill_later(exchange, lease);
    }
    job_check(exchange, lease->job);
}

/* The agent holds a lease that is not its own or has ended, or a decided attempt. The lease or
 * attempt ends without a result. */
static void tell_unknown(struct exchange *exchange, const struct held_list *held)
{
    uint32_t number = exchange->command->account;
    for (size_t i = 0; i < held->count; i++) {
        const struct exchange_held *item = &held->items[i];
        bool is_first = i == 0 || item->lease != held->items[i - 1].lease;
        const struct lease *lease = lease_by_id(exchange, item->lease);
        if (lease == NULL || lease->provider != number || lease->state == LEASE_ENDED) {
            if (is_first) {
                struct exchange_effect *effect = emit(exchange, EFFECT_LEASE_END, number);
                effect->lease.lease = item->lease;
                effect->lease.reason = XEND_UNKNOWN;
            }
        } else if (item->attempt != 0 &&
                   attempt_find(exchange, lease, item->index, item->attempt) == NULL) {
            emit(exchange, EFFECT_WITHDRAW, number)->work = (struct exchange_work){
                .lease = item->lease, .index = item->index, .attempt = item->attempt};
        }
    }
}

void apply_statement(struct exchange *exchange, const struct exchange_statement *statement)
{
    const struct member *member = sender(exchange);
    if ((member->roles & XROLE_PROVIDER) == 0) {
        reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return;
    }
    struct exchange_held *sorted = allocate(exchange, (statement->count + 1) * sizeof *sorted);
    if (sorted == NULL) {
        return;
    }
    if (statement->count > 0) {
        memcpy(sorted, statement->held, statement->count * sizeof *sorted);
        qsort(sorted, statement->count, sizeof *sorted, compare_held);
    }
    /* A time in the future is wrong: nobody has seen messages that are not sent yet. */
    int64_t as_of_ns =
        statement->as_of_ns < exchange->now_ns ? statement->as_of_ns : exchange->now_ns;
    const struct held_list held = {
        .items = sorted, .count = statement->count, .as_of_ns = as_of_ns};
    tell_unknown(exchange, &held);
    if (member->provider != NULL) {
        for_leases_of(exchange, member->provider, reconcile, &held);
    }
    free(sorted);
}
