/* devices, providers, book, order: what the market looks like, and what is one's own in it. */
#include "consumer/command/catalogue.h"
#include "consumer/command/follow.h"
#include "consumer/command/output.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "formats/units.h"

#include <stdlib.h>
#include <string.h>

#define NOTICE_MS INT64_C(30000)
#define MINIMUM_RUN_MS INT64_C(300000)

/* Rows on their way to where they are shown: JSON, ids, or a table. */
struct listing {
    json_t *list; /* NULL: to the table */
    bool quiet;
    struct grid table;
};

static int show_listing(struct invocation *invocation, struct listing *listing, const char *name)
{
    if (invocation->json) {
        json_t *value = json_object();
        (void)json_object_set_new(value, name, listing->list);
        return print_json(value, BOURSE_OK);
    }
    if (!invocation->quiet) {
        grid_print(&listing->table, stdout, invocation->color);
    }
    return BOURSE_OK;
}

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
        status = show_listing(invocation, &listing, "devices");
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
        status = show_listing(invocation, &listing, "providers");
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
        (void)json_array_append_new(
            asks, json_pack("{s:s, s:I, s:I, s:I, s:I}", "instrument", levels[i].instrument,
                            "price_micro", (json_int_t)levels[i].price_micro, "slots",
                            (json_int_t)levels[i].slots, "free", (json_int_t)levels[i].free,
                            "providers", (json_int_t)levels[i].providers));
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
    return print_json(json_pack("{s:o, s:o}", "asks", asks, "bids", bids), BOURSE_OK);
}

static void print_book(const struct bourse_book *book, bool color)
{
    static const char *const ask_titles[] = {"INSTRUMENT", "ASK", "FREE", "SLOTS", "PROVIDERS"};
    static const char *const bid_titles[] = {"BID", "WANTED", "JOBS", "NEEDS"};
    CLEANUP(grid_fini) struct grid asks = grid_of(5, ask_titles, "lrrrr");
    CLEANUP(grid_fini) struct grid bids = grid_of(4, bid_titles, "rrrl");
    size_t count = 0;
    const struct bourse_ask_level *levels = bourse_book_asks(book, &count);
    for (size_t i = 0; i < count; i++) {
        const char *cells[] = {levels[i].instrument, ask_text(levels[i].price_micro),
                               count_text(levels[i].free), count_text(levels[i].slots),
                               count_text(levels[i].providers)};
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
        status = show_listing(invocation, &listing, "trades");
    } else {
        json_decref(listing.list);
        status = complain_with(invocation, &error);
    }
    grid_fini(&listing.table);
    return status;
}

/* ---------------------------------------------------------------- own orders */

static json_t *json_order(const struct bourse_order *order)
{
    json_t *value = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "order", order->id, "side",
                              order->is_bid ? "bid" : "ask", "type", order->type,
                              order->is_bid ? "job" : "label", order->name, "price_micro",
                              (json_int_t)order->price_micro, "slots", (json_int_t)order->slots,
                              "place", (json_int_t)order->place);
    if (order->is_bid) {
        (void)json_object_set_new(value, "job_id", json_string(order->job));
        json_add_rate(value, order->rate);
    } else {
        (void)json_object_set_new(value, "device", json_string(order->device));
        (void)json_object_set_new(value, "free", json_integer((json_int_t)order->free));
        (void)json_object_set_new(value, "good_till_ms",
                                  json_integer((json_int_t)order->good_till_ms));
        (void)json_object_set_new(value, "max_term_ms",
                                  json_integer((json_int_t)order->max_term_ms));
        (void)json_object_set_new(value, "to", json_string(order->to));
        (void)json_object_set_new(value, "hours", json_string(order->hours));
        (void)json_object_set_new(value, "interruptible", json_boolean(order->interruptible));
        (void)json_object_set_new(value, "daily_ms", json_integer((json_int_t)order->daily_ms));
        if (order->daily_ms > 0) {
            (void)json_object_set_new(value, "left_ms", json_integer((json_int_t)order->left_ms));
        }
    }
    if (order->interruptible) {
        (void)json_object_set_new(value, "notice_ms", json_integer((json_int_t)order->notice_ms));
        (void)json_object_set_new(value, "minimum_run_ms",
                                  json_integer((json_int_t)order->minimum_run_ms));
    }
    return value;
}

enum { CONDITIONS_TEXT = 256 }; /* of a line: the whole is in --json */

static bool add_order(void *context, const struct bourse_order *order)
{
    struct listing *listing = context;
    if (listing->list != NULL) {
        return json_array_append_new(listing->list, json_order(order)) == 0;
    }
    if (listing->quiet) {
        (void)puts(order->id);
        return true;
    }
    char conditions[CONDITIONS_TEXT];
    char daily[CONDITIONS_TEXT] = "";
    if (order->daily_ms > 0) {
        (void)snprintf(daily, sizeof daily, "%s a day", duration_text(order->daily_ms));
        (void)snprintf(daily + strlen(daily), sizeof daily - strlen(daily), ", %s left",
                       duration_text(order->left_ms));
    }
    const bool is_after = order->to[0] != '\0' || order->hours[0] != '\0';
    (void)snprintf(conditions, sizeof conditions, "%s%s%s%s%s%s", order->to[0] != '\0' ? "to " : "",
                   order->to, order->to[0] != '\0' && order->hours[0] != '\0' ? "; " : "",
                   order->hours, is_after && daily[0] != '\0' ? "; " : "", daily);
    const char *cells[] = {short_id(order->id),
                           order->is_bid ? "bid" : "ask",
                           order->type,
                           order->name,
                           limit_text(order->price_micro, order->rate),
                           count_text(order->slots),
                           order->is_bid ? "" : count_text(order->free),
                           count_text(order->place),
                           order->good_till_ms > 0 ? time_text(order->good_till_ms) : "",
                           order->max_term_ms > 0 ? duration_text(order->max_term_ms) : "",
                           conditions,
                           order->is_bid          ? ""
                           : order->interruptible ? "interruptible"
                                                  : "firm"};
    grid_add(&listing->table, cells);
    return true;
}

static int order_list(struct invocation *invocation)
{
    static const char *const titles[] = {"ORDER",     "SIDE",     "TYPE",       "FOR",
                                         "PRICE",     "SLOTS",    "FREE",       "PLACE",
                                         "GOOD TILL", "MAX TERM", "CONDITIONS", "LEASES"};
    struct listing listing = {.list = invocation->json ? json_array() : NULL,
                              .quiet = invocation->quiet,
                              .table = grid_of(12, titles, "llllrrrrllll")};
    struct bourse_error error;
    int status;
    if (bourse_orders(invocation->bourse, add_order, &listing, &error)) {
        status = show_listing(invocation, &listing, "orders");
    } else {
        json_decref(listing.list);
        status = complain_with(invocation, &error);
    }
    grid_fini(&listing.table);
    return status;
}

struct order_search {
    const char *prefix;
    struct bourse_order found;
    size_t matches;
};

static bool match_order(void *context, const struct bourse_order *order)
{
    struct order_search *search = context;
    if (strncmp(order->id, search->prefix, strlen(search->prefix)) == 0) {
        search->found = *order;
        search->matches++;
    }
    return true;
}

/* No order has that id: perhaps a job has, whose bids are gone. */
static int no_order(struct invocation *invocation, const char *prefix)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    char id[BOURSE_ID_SIZE];
    if (bourse_find_job(invocation->bourse, prefix, id, NULL) &&
        bourse_jobs(invocation->bourse, id, &jobs, NULL)) {
        const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
        return complain(invocation, BOURSE_NOT_FOUND, "job %.8s is %s: no bid of it stands%s", id,
                        row->state_text,
                        row->state == BOURSE_OPEN ? ", for it wants nothing more now" : "");
    }
    return complain(invocation, BOURSE_NOT_FOUND, "no order '%s'; `bourse order list` shows yours",
                    prefix);
}

/* False, and what is wrong has been said: *ret_status is the exit status. */
static bool find_order(struct invocation *invocation, struct order_search *search, int *ret_status)
{
    struct bourse_error error;
    if (!bourse_orders(invocation->bourse, match_order, search, &error)) {
        *ret_status = complain_with(invocation, &error);
    } else if (search->prefix[0] == '\0' || search->matches == 0) {
        *ret_status = no_order(invocation, search->prefix);
    } else if (search->matches > 1) {
        *ret_status = complain(invocation, BOURSE_USAGE,
                               "'%s' begins the ids of %zu orders; give more digits",
                               search->prefix, search->matches);
    }
    return *ret_status == BOURSE_OK;
}

/* What an ask has and a bid has not, or the other way round. */
static bool options_fit(struct invocation *invocation, bool is_bid, int *ret_status)
{
    static const char *const of_ask[] = {"price", "slots", NULL};
    static const char *const of_bid[] = {"cap", "value", "at-most", "budget", NULL};
    bool says = false;
    for (const char *const *name = is_bid ? of_bid : of_ask; *name != NULL; name++) {
        says = says || option_given(invocation, *name);
    }
    for (const char *const *name = is_bid ? of_ask : of_bid; *name != NULL; name++) {
        if (option_given(invocation, *name)) {
            *ret_status =
                complain(invocation, BOURSE_USAGE, "order replace: %s is %s, which has no --%s",
                         invocation->words[1], is_bid ? "the bid of a job" : "an ask", *name);
            return false;
        }
    }
    if (!says) {
        *ret_status =
            complain(invocation, BOURSE_USAGE, "order replace: say what is to change: %s",
                     is_bid ? "--cap or --value, --at-most or --budget" : "--price or --slots");
    }
    return says;
}

enum { SLOTS_MOST = 10000000 }; /* of an order, as the protocol has it */

static int order_replace(struct invocation *invocation)
{
    struct bourse_replacement to = {.part = -1, .price_micro = -1, .slots = -1, .budget_micro = -1};
    struct order_search search = {.prefix = invocation->words[1]};
    int status = BOURSE_OK;
    char job[BOURSE_ID_SIZE];
    if (!option_money(invocation, "price", &to.price_micro) ||
        !option_money(invocation, "cap", &to.price_micro) ||
        !option_count(invocation, "slots", 1, SLOTS_MOST, &to.slots) ||
        !option_count(invocation, "at-most", 0, SLOTS_MOST, &to.slots) ||
        !option_money(invocation, "budget", &to.budget_micro)) {
        return BOURSE_USAGE;
    }
    to.value = option_text(invocation, "value", NULL);
    if (to.value != NULL && option_given(invocation, "cap")) {
        return complain(invocation, BOURSE_USAGE,
                        "order replace: give --cap or --value; a limit is one or the other");
    }
    if (!connect_broker(invocation, &status)) {
        return status;
    }
    if (strcmp(search.prefix, "last") == 0) {
        if (!resolve_job(invocation, search.prefix, job, &status)) {
            return status;
        }
        search.prefix = job;
    }
    if (!find_order(invocation, &search, &status) ||
        !options_fit(invocation, search.found.is_bid, &status)) {
        return status;
    }
    to.order = search.found.is_bid ? search.found.job : search.found.id;
    to.part = search.found.part > 0 ? (int64_t)search.found.part : -1; /* the job's id: all parts */
    struct bourse_error error;
    if (!bourse_replace(invocation->bourse, &to, &error)) {
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return print_json(json_pack("{s:s}", "replaced", search.found.id), BOURSE_OK);
    }
    (void)puts(search.found.id);
    return BOURSE_OK;
}

static int order_cancel(struct invocation *invocation)
{
    struct order_search search = {.prefix = invocation->words[1]};
    struct bourse_error error;
    int status = BOURSE_OK;
    if (!find_order(invocation, &search, &status)) {
        return status;
    }
    if (search.found.is_bid) {
        return complain(invocation, BOURSE_USAGE,
                        "%s is the bid of a job and ends with it: `bourse cancel %.8s`",
                        search.prefix, search.found.job);
    }
    if (!bourse_cancel_ask(invocation->bourse, search.found.id, &error)) {
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return print_json(json_pack("{s:s}", "cancelled", search.found.id), BOURSE_OK);
    }
    (void)puts(search.found.id);
    return BOURSE_OK;
}

/* ---------------------------------------------------------------- an ask by hand */

struct device_search { /* among the account's own */
    const char *account;
    const char *wanted; /* the beginning of an id, or a label */
    char id[BOURSE_ID_SIZE];
    uint32_t slots;
    size_t matches;
};

static bool match_device(void *context, const struct bourse_device *device)
{
    struct device_search *search = context;
    bool is_own = strcmp(device->account, search->account) == 0;
    bool is_meant = strncmp(device->id, search->wanted, strlen(search->wanted)) == 0 ||
                    strcmp(device->label, search->wanted) == 0;
    if (is_own && is_meant && search->wanted[0] != '\0') {
        (void)snprintf(search->id, sizeof search->id, "%s", device->id);
        search->slots = device->slots;
        search->matches++;
    }
    return true;
}

/* False, and what is wrong has been said: *ret_status is the exit status. */
static bool find_own_device(struct invocation *invocation, struct device_search *search,
                            int *ret_status)
{
    struct bourse_account account;
    struct bourse_error error;
    if (!bourse_whoami(invocation->bourse, &account, &error)) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    if ((account.roles & BOURSE_ROLE_PROVIDER) == 0) {
        *ret_status = complain(invocation, BOURSE_REFUSED,
                               "an ask offers a device, and this key is no provider's: give the "
                               "agent's own with --key. Who wants work done submits a job, which "
                               "places its bids");
        return false;
    }
    search->account = account.key;
    if (!bourse_devices(invocation->bourse, match_device, search, &error)) {
        *ret_status = complain_with(invocation, &error);
    } else if (search->matches == 0) {
        *ret_status = complain(invocation, BOURSE_NOT_FOUND,
                               "no device '%s' of this account is on offer: its agent must run, "
                               "and not be paused; `bourse devices` shows what is on offer",
                               search->wanted);
    } else if (search->matches > 1) {
        *ret_status =
            complain(invocation, BOURSE_USAGE, "'%s' means %zu devices; give more digits of the id",
                     search->wanted, search->matches);
    }
    search->account = NULL;
    return *ret_status == BOURSE_OK;
}

/* How long it stands, and the longest lease. False, and what is wrong has been said. */
static bool read_times(struct invocation *invocation, struct bourse_ask *ask)
{
    if (!option_duration_ms(invocation, "for", &ask->good_for_ms) ||
        !option_duration_ms(invocation, "max-term", &ask->max_term_ms)) {
        return false;
    }
    bool is_for = ask->good_for_ms > BOURSE_ASK_TIME_MS_MOST;
    if (is_for || ask->max_term_ms > BOURSE_ASK_TIME_MS_MOST) {
        (void)complain(invocation, BOURSE_USAGE, "--%s: at most 366d; without --%s %s",
                       is_for ? "for" : "max-term", is_for ? "for" : "max-term",
                       is_for ? "it stands until it is cancelled" : "any lease will do");
        return false;
    }
    if (ask->max_term_ms != 0 && ask->max_term_ms < BOURSE_ASK_TERM_MS_LEAST) {
        (void)complain(invocation, BOURSE_USAGE,
                       "--max-term: at least 1m: jobs lease for that, or longer, unless their "
                       "`term` says less");
        return false;
    }
    return true;
}

/* All values of an option that may be repeated. */
static size_t values_of(const struct invocation *invocation, const char *name,
                        const char *ret_values[GIVEN_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < invocation->given_count; i++) {
        if (strcmp(invocation->given[i].name, name) == 0) {
            ret_values[count++] = invocation->given[i].value;
        }
    }
    return count;
}

/* Whether higher bids may take its leases, and how. */
static bool read_terms(struct invocation *invocation, struct bourse_ask *ask)
{
    ask->interruptible = option_given(invocation, "interruptible");
    const bool has_times =
        option_given(invocation, "notice") || option_given(invocation, "minimum-run");
    if (has_times && !ask->interruptible) {
        (void)complain(invocation, BOURSE_USAGE,
                       "--notice and --minimum-run are of leases that may be taken: say "
                       "--interruptible, too");
        return false;
    }
    ask->notice_ms = ask->interruptible ? NOTICE_MS : 0;
    ask->minimum_run_ms = ask->interruptible ? MINIMUM_RUN_MS : 0;
    if (!option_duration_ms(invocation, "notice", &ask->notice_ms) ||
        !option_duration_ms(invocation, "minimum-run", &ask->minimum_run_ms)) {
        return false;
    }
    if (ask->notice_ms > BOURSE_ASK_NOTICE_MS_MOST ||
        ask->minimum_run_ms > BOURSE_ASK_RUN_MS_MOST) {
        (void)complain(invocation, BOURSE_USAGE,
                       "--notice: at most 1d, and --minimum-run: at most 7d");
        return false;
    }
    return true;
}

static bool read_type(struct invocation *invocation, struct bourse_ask *ask)
{
    static const struct {
        const char *word;
        enum bourse_ask_type type;
    } types[] = {
        {"limit", BOURSE_ASK_LIMIT}, {"ioc", BOURSE_ASK_IOC}, {"post-only", BOURSE_ASK_POST_ONLY}};
    const char *word = option_text(invocation, "order", "limit");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(word, types[i].word) == 0) {
            ask->type = types[i].type;
            return true;
        }
    }
    (void)complain(invocation, BOURSE_USAGE, "--order: an ask is limit, ioc or post-only, not '%s'",
                   word);
    return false;
}

static int order_place(struct invocation *invocation)
{
    const char *to[GIVEN_MAX];
    const char *hours[GIVEN_MAX];
    struct bourse_ask ask = {.price_micro = -1,
                             .to = to,
                             .to_count = values_of(invocation, "to", to),
                             .hours = hours,
                             .hours_count = values_of(invocation, "hours", hours),
                             .utc_offset = option_text(invocation, "utc-offset", NULL)};
    int64_t slots = 0;
    if (!read_type(invocation, &ask) || !option_money(invocation, "price", &ask.price_micro) ||
        !option_count(invocation, "slots", 1, UINT32_MAX, &slots) ||
        !read_times(invocation, &ask) || !read_terms(invocation, &ask) ||
        !option_duration_ms(invocation, "daily", &ask.daily_ms)) {
        return BOURSE_USAGE;
    }
    if (ask.price_micro < 0) {
        return complain(invocation, BOURSE_USAGE,
                        "order place: --price says what a slot costs for an hour, as in 0.10");
    }
    if (ask.to_count == 1 && strcmp(to[0], "anyone") == 0) {
        ask.to_count = 0;
    }
    int status = BOURSE_OK;
    if (!connect_broker(invocation, &status)) {
        return status;
    }
    struct device_search search = {.wanted = invocation->words[1]};
    if (!find_own_device(invocation, &search, &status)) {
        return status;
    }
    if (slots > search.slots) {
        return complain(invocation, BOURSE_USAGE, "--slots: the device has %u", search.slots);
    }
    ask.device = search.id;
    ask.slots = slots > 0 ? (uint32_t)slots : search.slots;
    char order[BOURSE_ID_SIZE];
    struct bourse_error error;
    if (!bourse_place_ask(invocation->bourse, &ask, order, &error)) {
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return print_json(json_pack("{s:s, s:s, s:I, s:I}", "order", order, "device", search.id,
                                    "slots", (json_int_t)ask.slots, "price_micro",
                                    (json_int_t)ask.price_micro),
                          BOURSE_OK);
    }
    (void)puts(order);
    return BOURSE_OK;
}

int command_order(struct invocation *invocation)
{
    static const char *const acts[] = {"list", "place", "cancel", "replace"};
    const char *word = invocation->words[0];
    bool is_list = strcmp(word, acts[0]) == 0;
    bool is_place = strcmp(word, acts[1]) == 0;
    bool is_replace = strcmp(word, acts[3]) == 0;
    if (!is_list && !is_place && !is_replace && strcmp(word, acts[2]) != 0) {
        const char *near = text_nearest(word, acts, 4);
        return complain(invocation, BOURSE_USAGE, "order has no '%s'%s%s%s", word,
                        near != NULL ? "; did you mean `" : "", near != NULL ? near : "",
                        near != NULL ? "`?" : "");
    }
    if (invocation->word_count != (is_list ? 1 : 2)) {
        return complain(invocation, BOURSE_USAGE,
                        "order %s: wrong number of words; see `bourse help order`", word);
    }
    static const char *const only_place[] = {"for",         "max-term",   "order",         "to",
                                             "hours",       "utc-offset", "interruptible", "notice",
                                             "minimum-run", "daily"};
    static const char *const only_replace[] = {"cap", "at-most", "budget", "value"};
    if (is_place || is_replace) {
        const char *const *others = is_place ? only_replace : only_place;
        for (size_t i = 0; i < (is_place ? 4 : 10); i++) {
            if (option_given(invocation, others[i])) {
                return complain(invocation, BOURSE_USAGE, "order %s has no --%s", word, others[i]);
            }
        }
        return is_place ? order_place(invocation) : order_replace(invocation);
    }
    for (size_t i = 0; i < invocation->command->option_count; i++) {
        const char *name = invocation->command->options[i].name;
        if (option_given(invocation, name)) {
            return complain(invocation, BOURSE_USAGE, "order %s has no --%s", word, name);
        }
    }
    int status = 0;
    if (!connect_broker(invocation, &status)) {
        return status;
    }
    return is_list ? order_list(invocation) : order_cancel(invocation);
}
