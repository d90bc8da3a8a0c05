#include "exchange/view/listings.h"

#include "exchange/lifecycle.h"
#include "exchange/market/bids.h"
#include "exchange/market/daily.h"
#include "exchange/state/handles.h"
#include "exchange/state/instruments.h"
#include "exchange/state/lookup.h"
#include "exchange/state/names.h"
#include "exchange/state/steps.h"
#include "matching/book_walk.h"

#include <string.h>

static struct provider *provider_numbered(const struct exchange *exchange, uint32_t number)
{
    const struct member *member = lookup_member(exchange, number);
    return member == NULL ? NULL : member->provider;
}

/* ---------------------------------------------------------------- devices */

struct device_page {
    const struct exchange *exchange;
    const struct requirement *needs;
    exchange_device_visit *visit;
    void *context;
    size_t steps;
};

static struct exchange_device_row device_row(const struct exchange *exchange,
                                             const struct provider *provider,
                                             const struct device *device)
{
    struct exchange_device_row row = {
        .provider = provider->number,
        .state = provider->state,
        .device = device->key.device,
        .slots = device->slots,
        .leased = device->leased,
        .price_micro = -1,
    };
    name_copy(row.label, device->label);
    row.attributes = book_cell_attributes(exchange->book, device->cell, &row.attribute_count);
    if (device->ask != NULL) {
        row.free = book_slots(exchange->book, device->ask->handle);
        row.price_micro = device->ask->price_micro;
        row.max_term_ns = device->ask->max_term_ns;
    }
    return row;
}

/* Returns false when the page ends before this device. */
static bool take_device(struct device_page *page, const struct provider *provider,
                        const struct device *device)
{
    if (page->steps >= EXCHANGE_LISTING_STEPS) {
        return false;
    }
    page->steps++;
    if (!device->is_advertised) {
        return true; /* withdrawn; leases alone hold it */
    }
    struct exchange_device_row row = device_row(page->exchange, provider, device);
    if (page->needs != NULL) {
        page->steps += page->needs->count * row.attribute_count;
        if (!requirement_satisfied(page->needs, row.attributes, row.attribute_count)) {
            return true;
        }
    }
    return page->visit(page->context, &row);
}

/* Takes the provider's devices from age `from` on. Returns false when the page ends at
 * *ret_device. */
static bool take_devices(struct device_page *page, const struct provider *provider, uint64_t from,
                         uint64_t *ret_device)
{
    for (const struct list_link *at = provider->devices.next; at != &provider->devices;
         at = at->next) {
        const struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        if (device->order >= from && !take_device(page, provider, device)) {
            *ret_device = device->order;
            return false;
        }
    }
    return true;
}

enum exchange_listing exchange_list_devices(const struct exchange *exchange,
                                            const struct requirement *needs,
                                            const struct exchange_place *from,
                                            exchange_device_visit *visit, void *context,
                                            struct exchange_place *ret_next)
{
    if (needs != NULL && !requirement_well_formed(needs)) {
        return LISTING_BAD_NEEDS;
    }
    const struct provider *first =
        from == NULL ? NULL : provider_numbered(exchange, from->provider);
    if (from != NULL && first == NULL) {
        return LISTING_NO_PLACE;
    }
    struct device_page page = {
        .exchange = exchange, .needs = needs, .visit = visit, .context = context};
    const struct list_link *head = &exchange->provider_list;
    for (const struct list_link *at = first == NULL ? head->next : &first->all; at != head;
         at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        struct exchange_place stop = {.provider = provider->number};
        bool is_over = page.steps >= EXCHANGE_LISTING_STEPS;
        page.steps++;
        if (is_over ||
            !take_devices(&page, provider, provider == first ? from->device : 0, &stop.device)) {
            *ret_next = stop;
            steps_add(exchange, page.steps);
            return LISTING_MORE;
        }
    }
    steps_add(exchange, page.steps);
    return LISTING_END;
}

void exchange_visit_devices(const struct exchange *exchange, uint32_t account,
                            exchange_device_visit *visit, void *context)
{
    const struct provider *provider = provider_numbered(exchange, account);
    if (provider == NULL) {
        return;
    }
    bool goes_on = true;
    for (const struct list_link *at = provider->devices.next; goes_on && at != &provider->devices;
         at = at->next) {
        const struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        if (device->is_advertised) {
            const struct exchange_device_row row = device_row(exchange, provider, device);
            goes_on = visit(context, &row);
        }
    }
}

/* ---------------------------------------------------------------- providers */

static struct exchange_provider_row provider_row(const struct exchange *exchange,
                                                 const struct provider *provider, size_t *steps)
{
    struct exchange_provider_row row = {.provider = provider->number,
                                        .state = provider->state,
                                        .is_frozen =
                                            lookup_member(exchange, provider->number)->is_frozen};
    for (const struct list_link *at = provider->devices.next; at != &provider->devices;
         at = at->next) {
        const struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        (*steps)++;
        if (device->is_advertised) {
            row.devices++;
            row.slots += device->slots;
            row.leased += device->leased;
            row.free += device->ask == NULL ? 0 : book_slots(exchange->book, device->ask->handle);
        }
    }
    return row;
}

enum exchange_listing exchange_list_providers(const struct exchange *exchange, uint32_t from,
                                              exchange_provider_visit *visit, void *context,
                                              uint32_t *ret_next)
{
    const struct provider *first = from == 0 ? NULL : provider_numbered(exchange, from);
    if (from != 0 && first == NULL) {
        return LISTING_NO_PLACE;
    }
    size_t steps = 0;
    const struct list_link *head = &exchange->provider_list;
    for (const struct list_link *at = first == NULL ? head->next : &first->all; at != head;
         at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        bool is_over = steps >= EXCHANGE_LISTING_STEPS;
        steps++;
        struct exchange_provider_row row = {0};
        if (!is_over) {
            row = provider_row(exchange, provider, &steps);
        }
        if (is_over || !visit(context, &row)) {
            *ret_next = provider->number;
            steps_add(exchange, steps);
            return LISTING_MORE;
        }
    }
    steps_add(exchange, steps);
    return LISTING_END;
}

/* ---------------------------------------------------------------- the book */

struct book_page {
    const struct exchange *exchange;
    const struct requirement *needs;
    exchange_book_visit *visit;
    void *context;
    size_t steps;
};

static bool take_ask(struct book_page *page, const struct ask *ask, const struct book_ask *resting)
{
    if (page->needs != NULL) {
        size_t count;
        const struct attribute *attributes =
            book_cell_attributes(page->exchange->book, resting->cell, &count);
        page->steps += page->needs->count * count;
        if (!requirement_satisfied(page->needs, attributes, count)) {
            return true;
        }
    }
    struct exchange_book_row row = {
        .price_micro = resting->price_micro,
        .slots = ask->slots,
        .free = resting->slots,
        .provider = resting->owner,
        .to_count = ask->to_count,
        .to = ask->to,
        .hours = &ask->hours,
        .daily_ns = ask->daily_ns,
        .left_ns = ask->daily_ns == 0 ? 0 : daily_left_ns(page->exchange, ask),
    };
    instrument_of_cell(page->exchange, resting->cell, row.instrument);
    return page->visit(page->context, &row);
}

static bool take_bid(struct book_page *page, const struct book_bid *resting)
{
    const struct exchange_book_row row = {
        .is_bid = true,
        .price_micro = resting->limit_micro,
        .slots = resting->slots,
        .class_id = resting->class_id,
        .rate = book_class_rate(page->exchange->book, resting->class_id),
        .needs = book_class_requirement(page->exchange->book, resting->class_id),
    };
    return row.slots == 0 || page->visit(page->context, &row);
}

/* Returns false when the page ends before this handle. */
static bool take_order(struct book_page *page, uint32_t handle)
{
    if (page->steps >= EXCHANGE_LISTING_STEPS) {
        return false;
    }
    page->steps++;
    struct book_ask ask;
    struct book_bid bid;
    if (book_ask(page->exchange->book, handle, &ask)) {
        return take_ask(page, page->exchange->orders_by_handle[handle], &ask);
    }
    return !book_bid(page->exchange->book, handle, &bid) ||
           handle_waits_for_all(page->exchange, handle) || take_bid(page, &bid);
}

enum exchange_listing exchange_list_book(const struct exchange *exchange,
                                         const struct requirement *needs, uint32_t from,
                                         exchange_book_visit *visit, void *context,
                                         uint32_t *ret_next)
{
    if (needs != NULL && !requirement_well_formed(needs)) {
        return LISTING_BAD_NEEDS;
    }
    if (from >= exchange->handle_capacity) {
        return LISTING_NO_PLACE;
    }
    struct book_page page = {
        .exchange = exchange, .needs = needs, .visit = visit, .context = context};
    for (uint32_t handle = book_next(exchange->book, from); handle != BOOK_NONE;
         handle = book_next(exchange->book, handle + 1)) {
        if (!take_order(&page, handle)) {
            *ret_next = handle;
            steps_add(exchange, page.steps);
            return LISTING_MORE;
        }
    }
    steps_add(exchange, page.steps);
    return LISTING_END;
}

/* ---------------------------------------------------------------- own orders */

static struct exchange_order_row own_ask(const struct exchange *exchange, const struct ask *ask)
{
    struct exchange_order_row row = {
        .order = ask->order,
        .device = ask->device->key.device,
        .price_micro = ask->price_micro,
        .slots = ask->slots,
        .free = book_slots(exchange->book, ask->handle),
        .good_till_ns = ask->good_till_ns,
        .max_term_ns = ask->max_term_ns,
        .to_count = ask->to_count,
        .hours = ask->hours,
        .daily_ns = ask->daily_ns,
        .left_ns = ask->daily_ns == 0 ? 0 : daily_left_ns(exchange, ask),
        .terms = ask->terms,
        .type = ask->type,
        .ahead = book_ahead(exchange->book, ask->handle, EXCHANGE_LISTING_STEPS),
    };
    name_copy(row.name, ask->device->label);
    memcpy(row.to, ask->to, sizeof row.to);
    return row;
}

static struct exchange_order_row own_bid(const struct exchange *exchange, const struct part *part)
{
    struct book_bid resting;
    bool rests = book_bid(exchange->book, part->handle, &resting);
    assert(rests); /* the bid rests while its job is open */
    (void)rests;
    struct exchange_order_row row = {
        .is_bid = true,
        .order = bid_id(part),
        .job = part->job->id,
        .part = part->number,
        .price_micro = resting.limit_micro,
        .rate = book_class_rate(exchange->book, resting.class_id),
        .slots = resting.slots,
        .good_till_ns = part->job->good_till_ns,
        .type = part->job->type,
        .ahead = book_ahead(exchange->book, part->handle, EXCHANGE_LISTING_STEPS),
    };
    name_copy(row.name, part->job->name);
    return row;
}

/* The walk merges two lists by age, since devices and jobs are numbered together. A job has one bid
 * for each part. */
struct order_walk {
    const struct list_link *device; /* the next device; `devices` after the last */
    const struct list_link *devices;
    const struct list_link *job; /* the next job; `jobs` after the last */
    const struct list_link *jobs;
    uint32_t part; /* next part of that job */
};

static const struct device *next_device(const struct order_walk *walk)
{
    return walk->device == walk->devices ? NULL
                                         : LIST_ELEMENT(walk->device, struct device, of_provider);
}

static const struct job *next_job(const struct order_walk *walk)
{
    return walk->job == walk->jobs ? NULL : LIST_ELEMENT(walk->job, struct job, of_owner);
}

static struct order_walk walk_of(const struct member *member)
{
    static const struct list_link none = {0};
    struct order_walk walk = {
        .device = &none, .devices = &none, .job = member->jobs.next, .jobs = &member->jobs};
    if (member->provider != NULL) {
        walk.devices = &member->provider->devices;
        walk.device = walk.devices->next;
    }
    return walk;
}

static const struct part *take_part(struct order_walk *walk, const struct job *job)
{
    const struct part *part = &job->parts[walk->part++];
    if (walk->part == job->part_count) {
        walk->part = 0;
        walk->job = walk->job->next;
    }
    return part;
}

/* Finds the next order at this place or behind it. A place is an age number and the part of a job.
 * Returns false at the end. */
static bool next_order(const struct exchange *exchange, struct order_walk *walk, uint64_t from,
                       const struct ask **ret_ask, const struct part **ret_part,
                       uint64_t *ret_place)
{
    for (;;) {
        steps_add(exchange, 1); /* entries without an order or before that place count, too */
        const struct device *device = next_device(walk);
        const struct job *job = next_job(walk);
        if (device == NULL && job == NULL) {
            return false;
        }
        bool is_job = device == NULL || (job != NULL && job->order < device->order);
        const struct part *part = NULL;
        if (is_job) {
            *ret_place = job->order * PARTS_MOST + walk->part;
            part = take_part(walk, job);
        } else {
            *ret_place = device->order * PARTS_MOST;
            walk->device = walk->device->next;
        }
        *ret_part = is_job && part->handle != BOOK_NONE ? part : NULL;
        *ret_ask = is_job ? NULL : device->ask;
        if (*ret_place >= from && (*ret_part != NULL || *ret_ask != NULL)) {
            return true;
        }
    }
}

enum exchange_listing exchange_list_orders(const struct exchange *exchange, uint32_t account,
                                           uint64_t from, exchange_order_visit *visit,
                                           void *context, uint64_t *ret_next)
{
    const struct member *member = lookup_member(exchange, account);
    if (member == NULL) {
        return LISTING_NO_PLACE;
    }
    struct order_walk walk = walk_of(member);
    const struct ask *ask = NULL;
    const struct part *part = NULL;
    uint64_t place = 0;
    size_t steps = 0;
    while (next_order(exchange, &walk, from, &ask, &part, &place)) {
        struct exchange_order_row row = {0};
        bool is_over = steps >= EXCHANGE_LISTING_STEPS;
        if (!is_over) {
            row = part != NULL ? own_bid(exchange, part) : own_ask(exchange, ask);
            steps += 1 + row.ahead;
        }
        if (is_over || !visit(context, &row)) {
            *ret_next = place;
            steps_add(exchange, steps);
            return LISTING_MORE;
        }
    }
    steps_add(exchange, steps);
    return LISTING_END;
}
