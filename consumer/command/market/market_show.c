/* This file runs providers, book and trades, which show the market. */
#include "consumer/command/market/challenged_show.h"
#include "consumer/command/market/follow.h"
#include "consumer/command/market/instruments.h"
#include "consumer/command/show.h"
#include "consumer/command/state.h"
#include "consumer/market/challenged.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "formats/units.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- providers */

/* The struct counts what challenges found of the devices of one provider. */
struct found {
    char account[BOURSE_HEX32_SIZE];
    struct bourse_challenged counts;
};

struct providers {
    struct listing listing;
    struct found *found; /* devices come by provider, so each has one entry */
    size_t count, capacity;
    bool no_memory;
};

static bool count_device(void *context, const struct bourse_device *device)
{
    struct providers *providers = context;
    if (providers->count == 0 ||
        strcmp(providers->found[providers->count - 1].account, device->account) != 0) {
        struct found *all =
            array_with_room(providers->found, providers->count, &providers->capacity, sizeof *all);
        providers->no_memory = all == NULL;
        if (all == NULL) {
            return false;
        }
        providers->found = all;
        struct found *added = &all[providers->count++];
        *added = (struct found){.counts = {0}};
        memcpy(added->account, device->account, sizeof added->account);
    }
    challenged_add(&providers->found[providers->count - 1].counts, device);
    return true;
}

static const struct bourse_challenged *counts_of(const struct providers *providers,
                                                 const char *account)
{
    static const struct bourse_challenged none;
    for (size_t i = 0; i < providers->count; i++) {
        if (strcmp(providers->found[i].account, account) == 0) {
            return &providers->found[i].counts;
        }
    }
    return &none;
}

static bool add_provider(void *context, const struct bourse_provider *provider)
{
    struct providers *providers = context;
    struct listing *listing = &providers->listing;
    const struct bourse_challenged *challenged = counts_of(providers, provider->account);
    if (listing->list != NULL) {
        return json_array_append_new(
                   listing->list,
                   json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:o, s:o}", "account",
                             provider->account, "name", provider->name, "state", provider->state,
                             "devices", (json_int_t)provider->devices, "slots",
                             (json_int_t)provider->slots, "leased", (json_int_t)provider->leased,
                             "free", (json_int_t)provider->free, "frozen", (int)provider->frozen,
                             "standing", json_standing(&provider->standing), "challenged",
                             json_challenged(challenged))) == 0;
    }
    if (listing->quiet) {
        (void)puts(provider->account);
        return true;
    }
    char state[CELL_SIZE];
    (void)snprintf(state, sizeof state, "%s%s", provider->state,
                   provider->frozen ? ", frozen by the operator" : "");
    const char *cells[] = {provider->name,
                           state,
                           cell_count(provider->devices),
                           cell_count(provider->slots),
                           cell_count(provider->leased),
                           cell_count(provider->free),
                           challenged_counts_cell(challenged),
                           cell_standing(&provider->standing)};
    grid_add(&listing->table, cells);
    return true;
}

int command_providers(struct invocation *invocation)
{
    static const char *const titles[] = {"PROVIDER", "STATE", "DEVICES",       "SLOTS",
                                         "LEASED",   "FREE",  "CLAIMED SPEED", ""};
    int status = 0;
    if (!command_connect(invocation, &status)) {
        return status;
    }
    struct providers providers = {.listing = {.list = invocation->json ? json_array() : NULL,
                                              .quiet = invocation->quiet,
                                              .table = grid_of(8, titles, "llrrrrll")}};
    struct bourse_error error;
    const bool is_read = bourse_devices(invocation->bourse, count_device, &providers, &error) &&
                         (providers.no_memory ||
                          bourse_providers(invocation->bourse, add_provider, &providers, &error));
    if (is_read && !providers.no_memory) {
        status = listing_show(invocation, &providers.listing, "providers");
        state_say_of_market(invocation);
    } else {
        json_decref(providers.listing.list);
        status = is_read ? complain(invocation, BOURSE_LOCAL, "out of memory")
                         : complain_with(invocation, &error);
    }
    grid_fini(&providers.listing.table);
    free(providers.found);
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
    return json_print(json_pack("{s:o, s:o, s:o}", "asks", asks, "bids", bids, "bands",
                                json_bands(bourse_book_bands(book))),
                      BOURSE_OK);
}

/* Writes "to 2 accounts, you among them; mon-fri 22:00-07:00 (UTC+01:00); 8h a day, 3h left", or
 * "". */
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
        (void)snprintf(daily, sizeof daily, "%s a day", cell_duration(level->daily_ms));
        (void)snprintf(daily + strlen(daily), sizeof daily - strlen(daily), ", %s left",
                       cell_time_remaining(level->left_ms));
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

/* The table has a column of conditions when an ask has any. */
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
                               cell_ask_price(levels[i].price_micro),
                               cell_count(levels[i].free),
                               cell_count(levels[i].slots),
                               cell_count(levels[i].providers),
                               conditions};
        grid_add(&asks, cells);
    }
    const struct bourse_bid_level *wanted = bourse_book_bids(book, &count);
    for (size_t i = 0; i < count; i++) {
        const char *cells[] = {cell_limit(wanted[i].limit_micro, wanted[i].rate),
                               cell_count(wanted[i].slots), cell_count(wanted[i].bids),
                               wanted[i].needs};
        grid_add(&bids, cells);
    }
    grid_print(&asks, stdout, color);
    (void)putchar('\n');
    grid_print(&bids, stdout, color);
    (void)putchar('\n');
    listing_print_bands(stdout, bourse_book_bands(book));
}

/* Joins the needs and the instrument into one text, which the caller frees. NULL means that both
 * are absent or memory is short. */
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
    if (!command_connect(invocation, &status)) {
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
    state_say_of_market(invocation);
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
        (void)puts(cell_count(trade->entry));
        return true;
    }
    const char *cells[] = {cell_time(trade->time_ms), trade->instrument, cell_count(trade->slots),
                           cell_money(trade->price_micro)};
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
    if (!command_connect(invocation, &status)) {
        return status;
    }
    struct listing listing = {.list = invocation->json ? json_array() : NULL,
                              .quiet = invocation->quiet,
                              .table = grid_of(4, titles, "llrr")};
    struct bourse_error error;
    if (bourse_trades(invocation->bourse, (uint64_t)limit, add_trade, &listing, &error)) {
        status = listing_show(invocation, &listing, "trades");
        state_say_behind(invocation);
    } else {
        json_decref(listing.list);
        status = complain_with(invocation, &error);
    }
    grid_fini(&listing.table);
    return status;
}
