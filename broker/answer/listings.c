#include "broker/answer/listings.h"

#include "base/checked.h"
#include "base/text.h"
#include "broker/answer/page.h"
#include "broker/answer/standing.h"
#include "broker/answer/wire_view.h"
#include "broker/challenge/challenge_wire.h"
#include "exchange/lifecycle.h"
#include "exchange/view/listings.h"
#include "protocol/codec.h"
#include "protocol/limits.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOOK_NEEDS = 256 }; /* different requirements in one page of the book */

static char *packed(const char *text)
{
    return (char *)(uintptr_t)text; /* packed, never written */
}

const char *listings_provider_state(uint8_t state)
{
    switch ((enum provider_state)state) {
    case PROVIDER_AWAY:
        return "away";
    case PROVIDER_PRESENT:
        return "present";
    case PROVIDER_SUSPECT:
        return "suspect";
    }
    return "unknown";
}

/* ---------------------------------------------------------------- devices */

static bool is_instrument(const struct attribute *attribute)
{
    return attribute->is_text && strcmp(attribute->name, "instrument") == 0;
}

/* The instrument has a field of its own in the row. */
static bool attributes_to_wire(struct page *page, const struct exchange_device_row *row,
                               Bourse__V1__DeviceRow *wire)
{
    Bourse__V1__Attribute *attributes = page_take(page, row->attribute_count, sizeof *attributes);
    Bourse__V1__Attribute **pointers =
        page_take(page, row->attribute_count, sizeof(Bourse__V1__Attribute *));
    if (attributes == NULL || pointers == NULL) {
        return false;
    }
    wire->instrument = packed("");
    wire->attributes = pointers;
    bool has_instrument = false;
    for (size_t i = 0; i < row->attribute_count; i++) {
        const struct attribute *from = &row->attributes[i];
        if (is_instrument(from) && !has_instrument) {
            wire->instrument = packed(from->text);
            has_instrument = true;
            continue;
        }
        Bourse__V1__Attribute *to = &attributes[wire->n_attributes];
        bourse__v1__attribute__init(to);
        to->name = packed(from->name);
        to->text = from->is_text ? packed(from->text) : NULL;
        to->has_number = !from->is_text;
        to->number = from->number;
        pointers[wire->n_attributes++] = to;
    }
    return true;
}

struct device_wire { /* the memory of one row */
    Bourse__V1__DeviceRow wire;
    struct exchange_account_row provider;
    struct exchange_device_row row;
    struct standing_wire standing;
    Bourse__V1__DeviceFigures figures;
    Bourse__V1__ChallengeFact challenge;
};

struct device_list {
    struct page page;
    const struct listings_sources *sources;
};

static bool add_device(void *context, const struct exchange_device_row *row)
{
    struct device_list *list = context;
    struct page *page = &list->page;
    struct device_wire *device = page_take(page, 1, sizeof *device);
    if (device == NULL) {
        return false;
    }
    device->row = *row;
    bool is_known = exchange_account(page->exchange, row->provider, &device->provider);
    assert(is_known); /* an advertising provider has an account */
    Bourse__V1__DeviceRow *wire = &device->wire;
    bourse__v1__device_row__init(wire);
    wire->account = wire_view(&device->provider.key, sizeof device->provider.key);
    wire->provider = device->provider.name;
    wire->state = packed(listings_provider_state(row->state));
    wire->device = wire_view(&device->row.device, sizeof device->row.device);
    wire->label = device->row.label;
    wire->slots = row->slots;
    wire->leased = row->leased;
    wire->free = row->free;
    wire->has_price_micro = row->price_micro >= 0;
    wire->price_micro = row->price_micro;
    wire->has_max_term_ms = row->max_term_ns > 0;
    wire->max_term_ms = row->max_term_ns / NS_PER_MS;
    wire->standing = standing_to_wire(page->exchange, row->provider, &device->standing);
    const struct listings_sources *sources = list->sources;
    wire->figures = figures_board_find(sources->figures, row->provider, &device->row.device,
                                       sources->now_ns, &device->figures)
                        ? &device->figures
                        : NULL;
    wire->challenge = challenge_wire_of(sources->challenges, row->provider, &row->device,
                                        sources->log_ns, &device->challenge);
    return attributes_to_wire(page, row, wire) && page_add(page, &wire->base);
}

/* Returns the refusal of a page, or NULL when there is one. */
static struct outgoing *refuse(const struct request *request, enum exchange_listing listing)
{
    switch (listing) {
    case LISTING_NO_PLACE:
        return outgoing_refuse(request, REJECT_NOT_FOUND, "from", 0, 0);
    case LISTING_BAD_NEEDS:
        return outgoing_refuse(request, REJECT_REQUIREMENT, "needs", 0, 0);
    case LISTING_END:
    case LISTING_MORE:
        break;
    }
    return NULL;
}

static struct outgoing *devices_reply(const struct request *request, const struct page *page,
                                      const struct exchange_place *next)
{
    Bourse__V1__DevicesReply answer = BOURSE__V1__DEVICES_REPLY__INIT;
    answer.n_rows = page->count;
    answer.rows = (Bourse__V1__DeviceRow **)(void *)page->rows;
    answer.index = exchange_index(page->exchange);
    Bourse__V1__DevicePlace place = BOURSE__V1__DEVICE_PLACE__INIT;
    if (next != NULL) {
        place.provider = next->provider;
        place.device = next->device;
        answer.next = &place;
    }
    return outgoing_reply(request, MESSAGE_DEVICES_REPLY, &answer.base);
}

struct outgoing *listings_devices(const struct exchange *exchange,
                                  const struct listings_sources *sources,
                                  const struct request *request)
{
    const Bourse__V1__DevicesRequest *body = (const void *)request->translation.body;
    struct requirement needs;
    if (body->needs != NULL && !codec_requirement_from_wire(body->needs, &needs)) {
        return refuse(request, LISTING_BAD_NEEDS);
    }
    struct exchange_place from = {0};
    if (body->from != NULL) {
        from = (struct exchange_place){body->from->provider, body->from->device};
    }
    struct device_list list = {.sources = sources};
    struct page *page = &list.page;
    struct exchange_place next;
    struct outgoing *outgoing = NULL;
    if (page_open(page, exchange, body->has_limit, body->limit)) {
        enum exchange_listing listing =
            exchange_list_devices(exchange, body->needs == NULL ? NULL : &needs,
                                  body->from == NULL ? NULL : &from, add_device, &list, &next);
        outgoing = refuse(request, listing);
        if (outgoing == NULL && !page->is_out_of_memory) {
            outgoing = devices_reply(request, page, listing == LISTING_MORE ? &next : NULL);
        }
    }
    arena_fini(&page->arena);
    return outgoing;
}

/* ---------------------------------------------------------------- providers */

struct provider_wire {
    Bourse__V1__ProviderRow wire;
    struct exchange_account_row account;
    struct standing_wire standing;
};

static bool add_provider(void *context, const struct exchange_provider_row *row)
{
    struct page *page = context;
    struct provider_wire *provider = page_take(page, 1, sizeof *provider);
    if (provider == NULL) {
        return false;
    }
    bool is_known = exchange_account(page->exchange, row->provider, &provider->account);
    assert(is_known); /* an advertising provider has an account */
    Bourse__V1__ProviderRow *wire = &provider->wire;
    bourse__v1__provider_row__init(wire);
    wire->account = wire_view(&provider->account.key, sizeof provider->account.key);
    wire->name = provider->account.name;
    wire->state = packed(listings_provider_state(row->state));
    wire->devices = row->devices;
    wire->slots = row->slots;
    wire->leased = row->leased;
    wire->free = row->free;
    wire->has_frozen = wire->frozen = row->is_frozen;
    wire->standing = standing_to_wire(page->exchange, row->provider, &provider->standing);
    return page_add(page, &wire->base);
}

struct outgoing *listings_providers(const struct exchange *exchange, const struct request *request)
{
    const Bourse__V1__ProvidersRequest *body = (const void *)request->translation.body;
    struct page page;
    struct outgoing *outgoing = NULL;
    if (page_open(&page, exchange, body->has_limit, body->limit)) {
        Bourse__V1__ProvidersReply answer = BOURSE__V1__PROVIDERS_REPLY__INIT;
        enum exchange_listing listing = exchange_list_providers(
            exchange, body->has_from ? body->from : 0, add_provider, &page, &answer.next);
        outgoing = refuse(request, listing);
        if (outgoing == NULL && !page.is_out_of_memory) {
            answer.has_next = listing == LISTING_MORE;
            answer.n_rows = page.count;
            answer.rows = (Bourse__V1__ProviderRow **)(void *)page.rows;
            answer.index = exchange_index(exchange);
            outgoing = outgoing_reply(request, MESSAGE_PROVIDERS_REPLY, &answer.base);
        }
    }
    arena_fini(&page.arena);
    return outgoing;
}

/* ---------------------------------------------------------------- the book */

struct book_page {
    struct page asks, needs, bids; /* the arena of `asks` holds all rows */
    size_t limit;                  /* number of orders */
    uint32_t reader;               /* account */
};

/* Returns false when memory is short. */
static bool hours_to_wire(struct page *page, const struct hours *hours, size_t *ret_count,
                          Bourse__V1__AskHours ***ret_list)
{
    Bourse__V1__AskHours *windows = page_take(page, hours->count, sizeof *windows);
    Bourse__V1__AskHours **list = page_take(page, hours->count, sizeof *list);
    if (windows == NULL || list == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < hours->count; i++) {
        bourse__v1__ask_hours__init(&windows[i]);
        windows[i].days = hours->windows[i].days;
        windows[i].from_min = hours->windows[i].from_min;
        windows[i].till_min = hours->windows[i].till_min;
        list[i] = &windows[i];
    }
    *ret_count = hours->count;
    *ret_list = list;
    return true;
}

/* The accounts that an ask is for are known only to them and its owner. The reader learns how many
 * they are, and whether it is one of them. */
static bool book_conditions(struct book_page *book, const struct exchange_book_row *row,
                            Bourse__V1__BookAsk *wire)
{
    for (uint32_t i = 0; i < row->to_count; i++) {
        wire->for_you = wire->for_you || row->to[i] == book->reader;
    }
    wire->has_to = row->to_count > 0;
    wire->to = row->to_count;
    wire->has_for_you = wire->for_you;
    wire->has_offset_min = row->hours->offset_min != 0;
    wire->offset_min = row->hours->offset_min;
    wire->has_daily_ms = wire->has_left_ms = row->daily_ns > 0;
    wire->daily_ms = row->daily_ns / NS_PER_MS;
    wire->left_ms = row->left_ns / NS_PER_MS;
    return row->hours->count == 0 ||
           hours_to_wire(&book->asks, row->hours, &wire->n_hours, &wire->hours);
}

static bool add_book_ask(struct book_page *book, const struct exchange_book_row *row)
{
    struct book_ask_wire {
        Bourse__V1__BookAsk wire;
        char instrument[ATTRIBUTE_TEXT_SIZE];
    } *ask = page_take(&book->asks, 1, sizeof *ask);
    if (ask == NULL) {
        return false;
    }
    memcpy(ask->instrument, row->instrument, sizeof ask->instrument);
    bourse__v1__book_ask__init(&ask->wire);
    ask->wire.provider = row->provider;
    ask->wire.instrument = ask->instrument;
    ask->wire.price_micro = row->price_micro;
    ask->wire.slots = row->slots;
    ask->wire.free = row->free;
    return book_conditions(book, row, &ask->wire) && page_add(&book->asks, &ask->wire.base);
}

/* Each requirement of bids is in a reply once, under its number. */
static bool add_book_needs(struct book_page *book, const struct exchange_book_row *row)
{
    for (size_t i = 0; i < book->needs.count; i++) {
        const Bourse__V1__BookNeeds *known = book->needs.rows[i];
        if (known->number == row->class_id) {
            return true;
        }
    }
    Bourse__V1__BookNeeds *needs = page_take(&book->asks, 1, sizeof *needs);
    if (needs == NULL) {
        return false;
    }
    bourse__v1__book_needs__init(needs);
    needs->number = row->class_id;
    needs->has_rate = row->rate != RATE_NONE;
    needs->rate = row->rate;
    needs->needs = codec_requirement_to_wire(row->needs);
    book->asks.is_out_of_memory = book->asks.is_out_of_memory || needs->needs == NULL;
    if (needs->needs == NULL || !page_add(&book->needs, &needs->base)) {
        codec_requirement_free(&needs->needs);
        return false;
    }
    return true;
}

static bool add_book_bid(struct book_page *book, const struct exchange_book_row *row)
{
    Bourse__V1__BookBid *bid = page_take(&book->asks, 1, sizeof *bid);
    if (bid == NULL || !add_book_needs(book, row)) {
        return false;
    }
    bourse__v1__book_bid__init(bid);
    bid->needs = row->class_id;
    bid->limit_micro = row->price_micro;
    bid->slots = row->slots;
    return page_add(&book->bids, &bid->base);
}

static bool add_book_row(void *context, const struct exchange_book_row *row)
{
    struct book_page *book = context;
    if (book->asks.bytes + book->needs.bytes + book->bids.bytes >= PAGE_BYTES ||
        book->asks.count + book->bids.count == book->limit) {
        return false;
    }
    return row->is_bid ? add_book_bid(book, row) : add_book_ask(book, row);
}

static bool book_open(struct book_page *book, const struct exchange *exchange,
                      const Bourse__V1__BookRequest *body)
{
    bool asks = page_open(&book->asks, exchange, body->has_limit, body->limit);
    bool needs = page_open(&book->needs, exchange, true, BOOK_NEEDS);
    bool bids = page_open(&book->bids, exchange, body->has_limit, body->limit);
    book->limit = book->asks.limit;
    return asks && needs && bids;
}

static void book_close(struct book_page *book)
{
    for (size_t i = 0; i < book->needs.count; i++) {
        Bourse__V1__BookNeeds *needs = book->needs.rows[i];
        codec_requirement_free(&needs->needs);
    }
    arena_fini(&book->asks.arena);
    arena_fini(&book->needs.arena);
    arena_fini(&book->bids.arena);
}

struct outgoing *listings_book(const struct exchange *exchange, const struct request *request)
{
    const Bourse__V1__BookRequest *body = (const void *)request->translation.body;
    struct requirement needs;
    if (body->needs != NULL && !codec_requirement_from_wire(body->needs, &needs)) {
        return refuse(request, LISTING_BAD_NEEDS);
    }
    struct book_page book = {.reader = request->account};
    struct outgoing *outgoing = NULL;
    if (book_open(&book, exchange, body)) {
        Bourse__V1__BookReply answer = BOURSE__V1__BOOK_REPLY__INIT;
        enum exchange_listing listing =
            exchange_list_book(exchange, body->needs == NULL ? NULL : &needs,
                               body->has_from ? body->from : 0, add_book_row, &book, &answer.next);
        outgoing = refuse(request, listing);
        if (outgoing == NULL && !book.asks.is_out_of_memory) {
            answer.has_next = listing == LISTING_MORE;
            answer.n_asks = book.asks.count;
            answer.asks = (Bourse__V1__BookAsk **)(void *)book.asks.rows;
            answer.n_needs = book.needs.count;
            answer.needs = (Bourse__V1__BookNeeds **)(void *)book.needs.rows;
            answer.n_bids = book.bids.count;
            answer.bids = (Bourse__V1__BookBid **)(void *)book.bids.rows;
            answer.index = exchange_index(exchange);
            const struct exchange_bands bands = exchange_bands_now(exchange);
            answer.has_least_micro = answer.has_most_micro = answer.has_notional_micro = true;
            answer.least_micro = bands.least_micro;
            answer.most_micro = bands.most_micro;
            answer.notional_micro = bands.notional_micro;
            outgoing = outgoing_reply(request, MESSAGE_BOOK_REPLY, &answer.base);
        }
    }
    book_close(&book);
    return outgoing;
}

/* ---------------------------------------------------------------- own orders */

struct order_wire {
    Bourse__V1__OrderRow wire;
    Bourse__V1__Value value;
    struct exchange_order_row row;
};

/* Writes the names that the ask is for, and its hours. Returns false when memory is short. */
static bool conditions_to_wire(struct page *page, const struct exchange_order_row *row,
                               Bourse__V1__OrderRow *wire)
{
    enum { TEXT = 65 }; /* holds a key in hex, and any name */
    char(*texts)[TEXT] = page_take(page, row->to_count, sizeof *texts);
    char **names = page_take(page, row->to_count, sizeof *names);
    if (texts == NULL || names == NULL ||
        !hours_to_wire(page, &row->hours, &wire->n_hours, &wire->hours)) {
        return false;
    }
    for (uint32_t i = 0; i < row->to_count; i++) {
        struct exchange_account_row account;
        bool is_known = exchange_account(page->exchange, row->to[i], &account);
        assert(is_known); /* accounts stay */
        (void)is_known;
        if (account.name[0] != '\0') {
            (void)snprintf(texts[i], TEXT, "%s", account.name);
        } else {
            text_hex(account.key.bytes, sizeof account.key.bytes, texts[i]);
        }
        names[i] = texts[i];
    }
    wire->n_to = row->to_count;
    wire->to = names;
    wire->has_offset_min = row->hours.count > 0 || row->hours.offset_min != 0;
    wire->offset_min = row->hours.offset_min;
    wire->has_daily_ms = wire->has_left_ms = row->daily_ns > 0;
    wire->daily_ms = row->daily_ns / NS_PER_MS;
    wire->left_ms = row->left_ns / NS_PER_MS;
    return true;
}

static bool add_order(void *context, const struct exchange_order_row *row)
{
    struct page *page = context;
    struct order_wire *order = page_take(page, 1, sizeof *order);
    if (order == NULL) {
        return false;
    }
    order->row = *row;
    Bourse__V1__OrderRow *wire = &order->wire;
    bourse__v1__order_row__init(wire);
    wire->order = wire_view(&order->row.order, sizeof order->row.order);
    wire->bid = row->is_bid;
    wire->name = order->row.name;
    wire->has_device = !row->is_bid;
    wire->device = wire_view(&order->row.device, sizeof order->row.device);
    wire->price_micro = row->price_micro;
    if (row->rate != RATE_NONE) {
        bourse__v1__value__init(&order->value);
        order->value.micro = row->price_micro;
        order->value.rate = row->rate;
        wire->value = &order->value;
        wire->price_micro = 0;
    }
    wire->slots = row->slots;
    wire->free = row->free;
    wire->place = row->ahead + 1;
    wire->has_good_till_ms = row->good_till_ns > 0;
    wire->good_till_ms = row->good_till_ns / NS_PER_MS;
    wire->has_max_term_ms = row->max_term_ns > 0;
    wire->max_term_ms = row->max_term_ns / NS_PER_MS;
    wire->has_interruptible = wire->interruptible = row->terms.is_interruptible;
    wire->has_notice_ms = wire->has_minimum_run_ms = row->terms.is_interruptible;
    wire->notice_ms = row->terms.notice_ns / NS_PER_MS;
    wire->minimum_run_ms = row->terms.minimum_run_ns / NS_PER_MS;
    wire->has_order_type = row->type != EXCHANGE_LIMIT;
    wire->order_type = row->type;
    wire->has_job = row->is_bid;
    wire->job = wire_view(&order->row.job, sizeof order->row.job);
    wire->has_part = row->is_bid;
    wire->part = row->part;
    return conditions_to_wire(page, row, wire) && page_add(page, &wire->base);
}

struct outgoing *listings_orders(const struct exchange *exchange, const struct request *request)
{
    const Bourse__V1__OrdersRequest *body = (const void *)request->translation.body;
    struct page page;
    struct outgoing *outgoing = NULL;
    if (page_open(&page, exchange, body->has_limit, body->limit)) {
        Bourse__V1__OrdersReply answer = BOURSE__V1__ORDERS_REPLY__INIT;
        enum exchange_listing listing =
            exchange_list_orders(exchange, request->account, body->has_from ? body->from : 0,
                                 add_order, &page, &answer.next);
        outgoing = refuse(request, listing);
        if (outgoing == NULL && !page.is_out_of_memory) {
            answer.has_next = listing == LISTING_MORE;
            answer.n_rows = page.count;
            answer.rows = (Bourse__V1__OrderRow **)(void *)page.rows;
            answer.index = exchange_index(exchange);
            outgoing = outgoing_reply(request, MESSAGE_ORDERS_REPLY, &answer.base);
        }
    }
    arena_fini(&page.arena);
    return outgoing;
}

/* ---------------------------------------------------------------- prices */

void listings_bar(const struct exchange_bar *bar, char *instrument, Bourse__V1__MarketBar *ret_wire)
{
    bourse__v1__market_bar__init(ret_wire);
    ret_wire->instrument = instrument;
    ret_wire->start_ms = bar->start_ns / NS_PER_MS;
    ret_wire->open_micro = bar->open_micro;
    ret_wire->high_micro = bar->high_micro;
    ret_wire->low_micro = bar->low_micro;
    ret_wire->close_micro = bar->close_micro;
    ret_wire->slots = bar->slots;
    ret_wire->trades = bar->trades;
}

static bool add_bar(void *context, const struct exchange_bar *bar)
{
    struct bar_wire {
        Bourse__V1__MarketBar wire;
        char instrument[ATTRIBUTE_TEXT_SIZE];
    } *kept = page_take(context, 1, sizeof *kept);
    if (kept == NULL) {
        return false;
    }
    memcpy(kept->instrument, bar->instrument, sizeof kept->instrument);
    listings_bar(bar, kept->instrument, &kept->wire);
    return page_add(context, &kept->wire.base);
}

struct outgoing *listings_prices(const struct exchange *exchange, const struct request *request)
{
    const Bourse__V1__PricesRequest *body = (const void *)request->translation.body;
    struct page page;
    struct outgoing *outgoing = NULL;
    if (page_of(&page, exchange, LIMIT_BARS)) {
        exchange_bars(exchange, body->instrument,
                      body->has_since_ms ? body->since_ms * NS_PER_MS : 0, add_bar, &page);
        if (!page.is_out_of_memory) {
            Bourse__V1__PricesReply answer = BOURSE__V1__PRICES_REPLY__INIT;
            answer.n_bars = page.count;
            answer.bars = (Bourse__V1__MarketBar **)(void *)page.rows;
            answer.index = exchange_index(exchange);
            answer.log_time_ms = exchange_log_time_ns(exchange) / NS_PER_MS;
            outgoing = outgoing_reply(request, MESSAGE_PRICES_REPLY, &answer.base);
        }
    }
    arena_fini(&page.arena);
    return outgoing;
}
