#include "exchange/listings.h"

#include "exchange/state.h"

static struct provider *provider_numbered(const struct exchange *exchange, uint32_t number)
{
    const struct member *member = member_by_number(exchange, number);
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
    copy_name(row.label, device->label);
    row.attributes = book_cell_attributes(exchange->book, device->cell, &row.attribute_count);
    if (device->ask != NULL) {
        row.free = book_ask(exchange->book, device->ask->handle)->slots;
        row.price_micro = device->ask->price_micro;
        row.max_term_ns = device->ask->max_term_ns;
    }
    return row;
}

/* False: the page ends before this device. */
static bool take_device(struct device_page *page, const struct provider *provider,
                        const struct device *device)
{
    if (page->steps >= EXCHANGE_LISTING_STEPS) {
        return false;
    }
    page->steps++;
    if (!device->is_advertised) {
        return true; /* leases hold it, and nobody else */
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

/* Its devices from that age on. False: the page ends at *ret_device. */
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
            return LISTING_MORE;
        }
    }
    return LISTING_END;
}
