/* devices, providers, book, trades: what the market looks like. */
#include "consumer/command/catalogue.h"
#include "consumer/command/follow.h"
#include "consumer/command/instruments.h"
#include "consumer/command/output.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "formats/units.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- devices */

static const struct bourse_attribute *number_named(const struct bourse_device *device,
                                                   const char *name)
{
    for (size_t i = 0; i < device->attribute_count; i++) {
        const struct bourse_attribute *attribute = &device->attributes[i];
        if (attribute->text == NULL && strcmp(attribute->name, name) == 0) {
            return attribute;
        }
    }
    return NULL;
}

static const char *size_named(const struct bourse_device *device, const char *name)
{
    const struct bourse_attribute *found = number_named(device, name);
    return found == NULL || found->number < 0 ? "-" : bytes_text((uint64_t)found->number);
}

#define GIGA INT64_C(1000000000)

/* What is known of its speed: "12 GFLOPS, 9.3 GiB/s". */
static void figures_text(const struct bourse_device *device, char *ret_text, size_t capacity)
{
    const struct bourse_attribute *gflops = number_named(device, "gflops");
    const struct bourse_attribute *bandwidth = number_named(device, "bandwidth");
    size_t used = 0;
    ret_text[0] = '\0';
    if (gflops != NULL) {
        char flops[UNITS_TEXT_SIZE];
        int64_t rate;
        units_short(UNITS_FLOPS, checked_mul(gflops->number, GIGA, &rate) ? rate : INT64_MAX,
                    flops);
        used = (size_t)snprintf(ret_text, capacity, "%s", flops);
    }
    if (bandwidth != NULL && used < capacity) {
        (void)snprintf(ret_text + used, capacity - used, "%s%s/s", used > 0 ? ", " : "",
                       size_named(device, "bandwidth"));
    }
}

/* Why nobody can buy it, where that is so. */
static const char *price_cell(const struct bourse_device *device)
{
    if (device->price_micro >= 0) {
        return money_text(device->price_micro);
    }
    return strcmp(device->state, "present") == 0 ? "no ask" : device->state;
}

static json_t *json_device(const struct bourse_device *device)
{
    json_t *attributes = json_array();
    for (size_t i = 0; i < device->attribute_count; i++) {
        const struct bourse_attribute *attribute = &device->attributes[i];
        json_t *value = attribute->text != NULL ? json_string(attribute->text)
                                                : json_integer((json_int_t)attribute->number);
        (void)json_array_append_new(
            attributes, json_pack("{s:s, s:o}", "name", attribute->name, "value", value));
    }
    json_t *price =
        device->price_micro >= 0 ? json_integer((json_int_t)device->price_micro) : json_null();
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:o, s:I, s:o}",
                     "device", device->id, "provider", device->provider, "account", device->account,
                     "state", device->state, "label", device->label, "instrument",
                     device->instrument, "kind", device->kind, "simulated", device->simulated,
                     "slots", (json_int_t)device->slots, "leased", (json_int_t)device->leased,
                     "free", (json_int_t)device->free, "price_micro", price, "max_term_ms",
                     (json_int_t)device->max_term_ms, "attributes", attributes);
}

static bool add_device(void *context, const struct bourse_device *device)
{
    struct listing *listing = context;
    if (listing->list != NULL) {
        return json_array_append_new(listing->list, json_device(device)) == 0;
    }
    if (listing->quiet) {
        (void)puts(device->id);
        return true;
    }
    char kind[CELL_SIZE];
    char figures[CELL_SIZE];
    (void)snprintf(kind, sizeof kind, "%s%s", device->kind, device->simulated ? " SIMULATED" : "");
    figures_text(device, figures, sizeof figures);
    const char *cells[] = {device->provider,
                           device->label,
                           device->instrument,
                           kind,
                           count_text(device->slots),
                           count_text(device->free),
                           price_cell(device),
                           size_named(device, "memory"),
                           figures};
    grid_add(&listing->table, cells);
    return true;
}

/* `--operations` is about no device, and nothing else goes with it. */
static int list_operations(struct invocation *invocation)
{
    if (option_given(invocation, "catalogue") || option_given(invocation, "estimate") ||
        option_given(invocation, "samples") || invocation->word_count > 0) {
        return complain(invocation, BOURSE_USAGE,
                        "--operations lists what --estimate knows; it stands alone");
    }
    return show_operations(invocation);
}

int command_devices(struct invocation *invocation)
{
    static const char *const titles[] = {"PROVIDER", "DEVICE", "INSTRUMENT", "KIND",   "SLOTS",
                                         "FREE",     "PRICE",  "MEMORY",     "FIGURES"};
    const char *needs = option_text(invocation, "needs", NULL);
    int status = 0;
    static const char *const offline[] = {"operations", "catalogue", "estimate", "samples"};
    for (size_t i = 0; i < sizeof offline / sizeof offline[0]; i++) {
        if (!option_given(invocation, offline[i])) {
            continue;
        }
        if (needs != NULL) {
            return complain(invocation, BOURSE_USAGE,
                            "--needs is for devices on the market; it does not go with --%s",
                            offline[i]);
        }
        return i == 0 ? list_operations(invocation) : show_catalogue(invocation);
    }
    if (invocation->word_count > 0) {
        return complain(invocation, BOURSE_USAGE,
                        "an ID is one of the catalogue: say --catalogue, or --estimate OPERATION");
    }
    if (!connect_broker(invocation, &status)) {
        return status;
    }
    struct listing listing = {.list = invocation->json ? json_array() : NULL,
                              .quiet = invocation->quiet,
                              .table = grid_of(9, titles, "llllrrrrl")};
    struct bourse_error error;
    bool is_read = needs == NULL ? bourse_devices(invocation->bourse, add_device, &listing, &error)
                                 : bourse_devices_fitting(invocation->bourse, needs, add_device,
                                                          &listing, &error);
    if (is_read) {
        status = listing_show(invocation, &listing, "devices");
    } else {
        json_decref(listing.list);
        status = complain_with(invocation, &error);
    }
    grid_fini(&listing.table);
    return status;
}

/* ---------------------------------------------------------------- providers */

static bool add_provider(void *context, const struct bourse_provider *provider)
{
    struct listing *listing = context;
    if (listing->list != NULL) {
        return json_array_append_new(
                   listing->list,
                   json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "account", provider->account,
                             "name", provider->name, "state", provider->state, "devices",
                             (json_int_t)provider->devices, "slots", (json_int_t)provider->slots,
                             "leased", (json_int_t)provider->leased, "free",
                             (json_int_t)provider->free)) == 0;
    }
    if (listing->quiet) {
        (void)puts(provider->account);
        return true;
    }
    const char *cells[] = {provider->name,
                           provider->state,
                           count_text(provider->devices),
                           count_text(provider->slots),
                           count_text(provider->leased),
                           count_text(provider->free)};
    grid_add(&listing->table, cells);
    return true;
}

int command_providers(struct invocation *invocation)
{
    static const char *const titles[] = {"PROVIDER", "STATE", "DEVICES", "SLOTS", "LEASED", "FREE"};
    int status = 0;
    if (!connect_broker(invocation, &status)) {
        return status;
    }
    struct listing listing = {.list = invocation->json ? json_array() : NULL,
                              .quiet = invocation->quiet,
                              .table = grid_of(6, titles, "llrrrr")};
    struct bourse_error error;
    if (bourse_providers(invocation->bourse, add_provider, &listing, &error)) {
        status = listing_show(invocation, &listing, "providers");
    } else {
        json_decref(listing.list);
        status = complain_with(invocation, &error);
    }
    grid_fini(&listing.table);
    return status;
}

/* ---------------------------------------------------------------- the book */

static int book_as_json(const struct bourse_book *book)
{
    size_t count = 0;
    json_t *asks = json_array();
    const struct bourse_ask_level *levels = bourse_book_asks(book, &count);
    for (size_t i = 0; i < count; i++) {
        json_t *ask = json_pack(
            "{s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:s, s:I}", "instrument", levels[i].instrument,
            "price_micro", (json_int_t)levels[i].price_micro, "slots", (json_int_t)levels[i].slots,
            "free", (json_int_t)levels[i].free, "providers", (json_int_t)levels[i].providers, "to",
            (json_int_t)levels[i].to, "for_you", (int)(levels[i].to == 0 || levels[i].for_you),
            "hours", levels[i].hours, "daily_ms", (json_int_t)levels[i].daily_ms);
        if (levels[i].daily_ms > 0) {
            (void)json_object_set_new(ask, "left_ms", json_integer((json_int_t)levels[i].left_ms));
        }
        (void)json_array_append_new(asks, ask);
    }
    json_t *bids = json_array();
    const struct bourse_bid_level *wanted = bourse_book_bids(book, &count);
    for (size_t i = 0; i < count; i++) {
        json_t *bid = json_pack("{s:s, s:I, s:I, s:I}", "needs", wanted[i].needs, "limit_micro",
                                (json_int_t)wanted[i].limit_micro, "slots",
                                (json_int_t)wanted[i].slots, "bids", (json_int_t)wanted[i].bids);
        json_add_rate(bid, wanted[i].rate);
        (void)json_array_append_new(bids, bid);
    }
    return print_json(json_pack("{s:o, s:o, s:o}", "asks", asks, "bids", bids, "bands",
                                bands_as_json(bourse_book_bands(book))),
                      BOURSE_OK);
}

/* "to 2 accounts, you among them; mon-fri 22:00-07:00 (UTC+01:00); 8h a day, 3h left", or "". */
static void level_conditions(const struct bourse_ask_level *level, char *ret_text, size_t capacity)
{
    char to[CELL_SIZE] = "";
    char daily[CELL_SIZE] = "";
    if (level->to > 0) {
        (void)snprintf(to, sizeof to, "to %u account%s%s", level->to, text_plural(level->to),
                       !level->for_you  ? ", not you"
                       : level->to == 1 ? ": you"
                                        : ", you among them");
    }
    if (level->daily_ms > 0) {
        (void)snprintf(daily, sizeof daily, "%s a day", duration_text(level->daily_ms));
        (void)snprintf(daily + strlen(daily), sizeof daily - strlen(daily), ", %s left",
                       duration_text(level->left_ms));
    }
    const char *const parts[] = {to, level->hours, daily};
    size_t used = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i][0] != '\0' && used < capacity) {
            used += (size_t)snprintf(ret_text + used, capacity - used, "%s%s", used > 0 ? "; " : "",
                                     parts[i]);
        }
    }
}

/* A column for conditions only where an ask has some. */
static void print_book(const struct bourse_book *book, bool color)
{
    static const char *const ask_titles[] = {"INSTRUMENT", "ASK",       "FREE",
                                             "SLOTS",      "PROVIDERS", "CONDITIONS"};
    static const char *const bid_titles[] = {"BID", "WANTED", "JOBS", "NEEDS"};
    size_t ask_count = 0;
    const struct bourse_ask_level *all = bourse_book_asks(book, &ask_count);
    bool has_conditions = false;
    for (size_t i = 0; i < ask_count; i++) {
        has_conditions =
            has_conditions || all[i].to > 0 || all[i].hours[0] != '\0' || all[i].daily_ms > 0;
    }
    CLEANUP(grid_fini)
    struct grid asks =
        has_conditions ? grid_of(6, ask_titles, "lrrrrl") : grid_of(5, ask_titles, "lrrrr");
    CLEANUP(grid_fini) struct grid bids = grid_of(4, bid_titles, "rrrl");
    size_t count = 0;
    const struct bourse_ask_level *levels = bourse_book_asks(book, &count);
    for (size_t i = 0; i < count; i++) {
        char conditions[CONDITIONS_TEXT];
        level_conditions(&levels[i], conditions, sizeof conditions);
        const char *cells[] = {levels[i].instrument,
                               ask_text(levels[i].price_micro),
                               count_text(levels[i].free),
                               count_text(levels[i].slots),
                               count_text(levels[i].providers),
                               conditions};
        grid_add(&asks, cells);
    }
    const struct bourse_bid_level *wanted = bourse_book_bids(book, &count);
    for (size_t i = 0; i < count; i++) {
        const char *cells[] = {limit_text(wanted[i].limit_micro, wanted[i].rate),
                               count_text(wanted[i].slots), count_text(wanted[i].bids),
                               wanted[i].needs};
        grid_add(&bids, cells);
    }
    grid_print(&asks, stdout, color);
    (void)putchar('\n');
    grid_print(&bids, stdout, color);
    (void)putchar('\n');
    print_bands(bourse_book_bands(book));
}

/* Both at once as one text, for free(); NULL: neither, or out of memory. */
static char *needs_of(const char *needs, const char *instrument)
{
    if (instrument == NULL) {
        return needs != NULL ? strdup(needs) : NULL;
    }
    size_t size = 2 * strlen(instrument) + (needs != NULL ? strlen(needs) : 0) + 64;
    char *text = malloc(size);
    if (text == NULL) {
        return NULL;
    }
    bool is_both = needs != NULL;
    size_t used = (size_t)snprintf(text, size, "%s%s%sinstrument = \"", is_both ? "(" : "",
                                   is_both ? needs : "", is_both ? ") and " : "");
    for (const char *c = instrument; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            text[used++] = '\\';
        }
        text[used++] = *c;
    }
    (void)snprintf(text + used, size - used, "\"");
    return text;
}

int command_book(struct invocation *invocation)
{
    const char *needs = option_text(invocation, "needs", NULL);
    const char *instrument = option_text(invocation, "instrument", NULL);
    int status = 0;
    if (option_given(invocation, "follow")) {
        return follow_book(invocation);
    }
    if (!connect_broker(invocation, &status)) {
        return status;
    }
    char *both = needs_of(needs, instrument);
    CLEANUP(bourse_book_destroy) struct bourse_book *book = NULL;
    struct bourse_error error;
    bool is_read = bourse_book(invocation->bourse, both, &book, &error);
    free(both);
    if (!is_read) {
        return complain_with(invocation, &error);
    }
    size_t asks = 0;
    (void)bourse_book_asks(book, &asks);
    if (asks == 0 && instrument != NULL && !instrument_is_known(invocation, instrument, &status)) {
        return status;
    }
    if (invocation->json) {
        return book_as_json(book);
    }
    print_book(book, invocation->color);
    return BOURSE_OK;
}

/* ---------------------------------------------------------------- trades */

enum { TRADES_SHOWN = 20, TRADES_MOST = 1 << 30 };

static bool add_trade(void *context, const struct bourse_trade *trade)
{
    struct listing *listing = context;
    if (listing->list != NULL) {
        return json_array_append_new(listing->list,
                                     json_pack("{s:I, s:I, s:I, s:s, s:I, s:I}", "entry",
                                               (json_int_t)trade->entry, "index",
                                               (json_int_t)trade->index, "time_ms",
                                               (json_int_t)trade->time_ms, "instrument",
                                               trade->instrument, "slots", (json_int_t)trade->slots,
                                               "price_micro", (json_int_t)trade->price_micro)) == 0;
    }
    if (listing->quiet) {
        (void)puts(count_text(trade->entry));
        return true;
    }
    const char *cells[] = {time_text(trade->time_ms), trade->instrument, count_text(trade->slots),
                           money_text(trade->price_micro)};
    grid_add(&listing->table, cells);
    return true;
}

int command_trades(struct invocation *invocation)
{
    static const char *const titles[] = {"TIME", "INSTRUMENT", "SLOTS", "PRICE"};
    int64_t limit = TRADES_SHOWN;
    int status = 0;
    if (!option_count(invocation, "limit", 1, TRADES_MOST, &limit)) {
        return BOURSE_USAGE;
    }
    if (option_given(invocation, "follow")) {
        return follow_trades(invocation, (uint64_t)limit);
    }
    if (!connect_broker(invocation, &status)) {
        return status;
    }
    struct listing listing = {.list = invocation->json ? json_array() : NULL,
                              .quiet = invocation->quiet,
                              .table = grid_of(4, titles, "llrr")};
    struct bourse_error error;
    if (bourse_trades(invocation->bourse, (uint64_t)limit, add_trade, &listing, &error)) {
        status = listing_show(invocation, &listing, "trades");
    } else {
        json_decref(listing.list);
        status = complain_with(invocation, &error);
    }
    grid_fini(&listing.table);
    return status;
}
