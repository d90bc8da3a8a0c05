/* This file runs devices, which shows the devices on the market. Each has one line, or one is shown
 * in full with the source of every figure. */
#include "consumer/command/market/challenged_show.h"
#include "consumer/command/plan/catalogue.h"
#include "consumer/command/show.h"
#include "consumer/command/state.h"
#include "consumer/market/challenged.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/requirement.h"
#include "formats/units.h"
#include "planner/cost/catalogue.h"

#include <string.h>

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
    return found == NULL || found->number < 0 ? "-" : cell_bytes((uint64_t)found->number);
}

#define GIGA INT64_C(1000000000)
#define MEGA INT64_C(1000000)

/* Writes a rate in a short form such as "12 GFLOPS"; `unit` is the number of operations of one step
 * of the figure. */
static void rate_text(int64_t figure, int64_t unit, char ret_text[UNITS_TEXT_SIZE])
{
    int64_t rate;
    units_short(UNITS_FLOPS, checked_mul(figure, unit, &rate) ? rate : INT64_MAX, ret_text);
}

/* Returns the source of a figure in words for people. */
static const char *source_text(const struct bourse_attribute *figure)
{
    return strcmp(figure->source, "declared") == 0 ? "declared by its owner" : figure->source;
}

/* Writes the known speed and its source: "12 GFLOPS fp64, 9.3 GiB/s declared by its owner". */
static void figures_text(const struct bourse_device *device, char *ret_text, size_t capacity)
{
    const struct bourse_attribute *gflops = number_named(device, "gflops");
    const struct bourse_attribute *bandwidth = number_named(device, "bandwidth");
    size_t used = 0;
    ret_text[0] = '\0';
    if (gflops != NULL) {
        char flops[UNITS_TEXT_SIZE];
        rate_text(gflops->number, GIGA, flops);
        const bool is_same = bandwidth != NULL && strcmp(gflops->source, bandwidth->source) == 0;
        used = (size_t)snprintf(ret_text, capacity, "%s fp64%s%s", flops, is_same ? "" : " ",
                                is_same ? "" : source_text(gflops));
    }
    if (bandwidth != NULL && used < capacity) {
        (void)snprintf(ret_text + used, capacity - used, "%s%s/s %s", used > 0 ? ", " : "",
                       size_named(device, "bandwidth"), source_text(bandwidth));
    }
}

/* Returns the price, or why nobody can buy. */
static const char *price_cell(const struct bourse_device *device)
{
    if (device->standing.withdrawn_ms > 0) {
        return "refuted";
    }
    if (device->price_micro >= 0) {
        return cell_money(device->price_micro);
    }
    return strcmp(device->state, "present") == 0 ? "no ask" : device->state;
}

static json_t *json_figure(int64_t figure)
{
    return figure < 0 ? json_null() : json_integer((json_int_t)figure);
}

/* Returns what the device does at this moment, or null. */
static json_t *json_now(const struct bourse_device_figures *now)
{
    if (now->age_ms < 0) {
        return json_null();
    }
    return json_pack(
        "{s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "source", "owner", "age_ms",
        (json_int_t)now->age_ms, "memory_used", json_figure(now->memory_used), "memory_total",
        json_figure(now->memory_total), "busy_percent", json_figure(now->busy_percent), "power_mw",
        json_figure(now->power_mw), "power_limit_mw", json_figure(now->power_limit_mw), "celsius",
        json_figure(now->celsius), "held_bytes", json_figure(now->held_bytes), "held_hits",
        json_figure(now->held_hits), "held_copies", json_figure(now->held_copies), "saved_bytes",
        json_figure(now->saved_bytes));
}

static json_t *json_device(const struct bourse_device *device)
{
    json_t *attributes = json_array();
    for (size_t i = 0; i < device->attribute_count; i++) {
        const struct bourse_attribute *attribute = &device->attributes[i];
        json_t *value = attribute->text != NULL ? json_string(attribute->text)
                                                : json_integer((json_int_t)attribute->number);
        json_t *entry = json_pack("{s:s, s:o}", "name", attribute->name, "value", value);
        if (attribute->source != NULL) {
            (void)json_object_set_new(entry, "source", json_string(attribute->source));
        }
        (void)json_array_append_new(attributes, entry);
    }
    json_t *price =
        device->price_micro >= 0 ? json_integer((json_int_t)device->price_micro) : json_null();
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:o, s:I, s:o, s:o, "
                     "s:o, s:o}",
                     "device", device->id, "provider", device->provider, "account", device->account,
                     "state", device->state, "label", device->label, "instrument",
                     device->instrument, "kind", device->kind, "simulated", device->simulated,
                     "slots", (json_int_t)device->slots, "leased", (json_int_t)device->leased,
                     "free", (json_int_t)device->free, "price_micro", price, "max_term_ms",
                     (json_int_t)device->max_term_ms, "attributes", attributes, "standing",
                     json_standing(&device->standing), "now", json_now(&device->now), "challenge",
                     challenged_json(&device->challenge));
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
    const char *challenged = challenged_cell(&device->challenge, challenged_claim(device));
    const size_t used = strlen(figures);
    (void)snprintf(figures + used, sizeof figures - used, "%s%s",
                   used > 0 && challenged[0] != '\0' ? "; " : "", challenged);
    const char *cells[] = {device->provider,
                           device->label,
                           device->instrument,
                           kind,
                           cell_count(device->slots),
                           cell_count(device->free),
                           price_cell(device),
                           size_named(device, "memory"),
                           figures};
    grid_add(&listing->table, cells);
    return true;
}

/* ---------------------------------------------------------------- one in full */

/* Writes a figure of any field in a form for people. */
static void figure_text(const char *name, int64_t value, char ret_text[UNITS_TEXT_SIZE])
{
    if (strcmp(name, "gflops") == 0) {
        rate_text(value, GIGA, ret_text);
    } else if (strcmp(name, "gemm_fp32") == 0 || strcmp(name, "gemm_fp32_held") == 0) {
        rate_text(value, MEGA, ret_text);
    } else {
        requirement_figure(name, value, ret_text);
    }
}

/* Prints every figure that a device may have; a missing one is unknown. */
static void print_figures(const struct bourse_device *device, bool color)
{
    static const char *const titles[] = {"FIGURE", "VALUE", "SOURCE"};
    struct grid table = grid_of(3, titles, "lrl");
    size_t count;
    const struct requirement_field *fields = requirement_fields(&count);
    for (size_t i = 0; i < count; i++) {
        if (!requirement_is_figure(fields[i].name)) {
            continue;
        }
        const struct bourse_attribute *figure = number_named(device, fields[i].name);
        char value[UNITS_TEXT_SIZE] = "-";
        if (figure != NULL) {
            figure_text(fields[i].name, figure->number, value);
        }
        const char *cells[] = {fields[i].name, value,
                               figure != NULL ? source_text(figure) : "unknown"};
        grid_add(&table, cells);
    }
    grid_print(&table, stdout, color);
    grid_fini(&table);
}

/* Prints the other attributes that jobs may ask for; values of one name stand together. */
static void print_facts(const struct bourse_device *device)
{
    const char *last = "";
    for (size_t i = 0; i < device->attribute_count; i++) {
        const struct bourse_attribute *fact = &device->attributes[i];
        char value[UNITS_TEXT_SIZE];
        if (fact->source != NULL || strcmp(fact->name, "measured") == 0) {
            continue;
        }
        if (fact->text == NULL) {
            requirement_figure(fact->name, fact->number, value);
        }
        const bool goes_on = strcmp(fact->name, last) == 0;
        (void)printf("%s%s%s%s",
                     goes_on           ? ", "
                     : last[0] != '\0' ? "\n"
                                       : "",
                     goes_on ? "" : cell_plain(fact->name), goes_on ? "" : ": ",
                     fact->text != NULL ? cell_plain(fact->text) : value);
        last = fact->name;
    }
    (void)puts("");
}

/* Prints a known figure, of a whole where there is one: "power 61 W of 350 W". Returns what goes
 * before the next figure. */
static const char *print_share(const char *gap, const char *name, int64_t figure, int64_t whole,
                               int64_t unit, const char *unit_name)
{
    if (figure < 0) {
        return gap;
    }
    (void)printf("%s%s %lld %s", gap, name, (long long)(figure / unit), unit_name);
    if (whole >= 0) {
        (void)printf(" of %lld %s", (long long)(whole / unit), unit_name);
    }
    return ", ";
}

/* Prints what the device does at this moment, if its owner's machine says so. */
static void print_now(const struct bourse_device_figures *now)
{
    if (now->age_ms < 0) {
        return;
    }
    (void)printf("now (said by its owner's machine %s ago):", cell_duration(now->age_ms));
    const char *gap = " ";
    if (now->memory_used >= 0) {
        (void)printf("%smemory %s", gap, cell_bytes((uint64_t)now->memory_used));
        gap = ", ";
    }
    if (now->memory_used >= 0 && now->memory_total >= 0) {
        (void)printf(" of %s", cell_bytes((uint64_t)now->memory_total));
    }
    gap = print_share(gap, "busy", now->busy_percent, -1, 1, "%");
    gap = print_share(gap, "power", now->power_mw, now->power_limit_mw, 1000, "W");
    gap = print_share(gap, "temperature", now->celsius, -1, 1, "C");
    if (now->held_bytes >= 0) {
        (void)printf("%sinputs held %s", gap, cell_bytes((uint64_t)now->held_bytes));
    }
    if (now->held_hits >= 0 && now->held_copies >= 0 && now->saved_bytes >= 0) {
        (void)printf("; %lld of %lld inputs were there already, %s not copied",
                     (long long)now->held_hits, (long long)now->held_hits + now->held_copies,
                     cell_bytes((uint64_t)now->saved_bytes));
    }
    (void)putchar('\n');
}

static void print_device(const struct bourse_device *device, bool color)
{
    (void)printf("%s  %s/%s, instrument %s%s\n", cell_short_id(device->id),
                 cell_plain(device->provider), cell_plain(device->label),
                 cell_plain(device->instrument), device->simulated ? ", SIMULATED" : "");
    (void)printf("%u slot%s, %u free, price %s\n", device->slots, text_plural(device->slots),
                 device->free, price_cell(device));
    const char *standing = cell_standing(&device->standing);
    (void)printf("%s%s%s\n", standing[0] != '\0' ? "its provider: " : "", standing,
                 standing[0] != '\0' ? "\n" : "");
    print_now(&device->now);
    const char *challenged = challenged_cell(&device->challenge, challenged_claim(device));
    (void)printf("%s%s%s", challenged[0] != '\0' ? "speed of products (gemm_fp32): " : "",
                 challenged, challenged[0] != '\0' ? "\n\n" : "");
    print_figures(device, color);
    (void)putchar('\n');
    print_facts(device);
}

struct one {
    const char *word; /* a label, PROVIDER/LABEL, or first digits of an id */
    struct invocation *invocation;
    json_t *list;
    size_t found;
};

static bool is_called(const struct bourse_device *device, const char *word)
{
    char full[2 * BOURSE_NAME_SIZE];
    (void)snprintf(full, sizeof full, "%s/%s", device->provider, device->label);
    return strcmp(device->label, word) == 0 || strcmp(full, word) == 0 ||
           strncmp(device->id, word, strlen(word)) == 0;
}

static bool match_device(void *context, const struct bourse_device *device)
{
    struct one *one = context;
    if (!is_called(device, one->word)) {
        return true;
    }
    one->found++;
    if (one->invocation->json) {
        return json_array_append_new(one->list, json_device(device)) == 0;
    }
    if (one->invocation->quiet) {
        (void)puts(device->id);
        return true;
    }
    (void)fputs(one->found > 1 ? "\n" : "", stdout);
    print_device(device, one->invocation->color);
    return true;
}

static int show_one(struct invocation *invocation, const char *word)
{
    struct one one = {.word = word, .invocation = invocation, .list = json_array()};
    struct bourse_error error;
    int status;
    if (word[0] == '\0') {
        status = complain(invocation, BOURSE_USAGE, "an empty text is no device");
    } else if (!bourse_devices(invocation->bourse, match_device, &one, &error)) {
        status = complain_with(invocation, &error);
    } else if (one.found == 0) {
        status = complain(invocation, BOURSE_NOT_FOUND,
                          "no device on the market has that label, or an id that begins with "
                          "\"%s\"; `bourse devices` lists them",
                          cell_plain(word));
    } else {
        status = invocation->json ? json_print(json_pack("{s:O}", "devices", one.list), BOURSE_OK)
                                  : BOURSE_OK;
    }
    json_decref(one.list);
    return status;
}

/* ---------------------------------------------------------------- the command */

/* `--operations` is about no device, and no other option goes with it. */
static int list_operations(struct invocation *invocation)
{
    if (option_given(invocation, "catalogue") || option_given(invocation, "estimate") ||
        option_given(invocation, "samples") || invocation->word_count > 0) {
        return complain(invocation, BOURSE_USAGE,
                        "--operations lists what --estimate knows; it stands alone");
    }
    return catalogue_show_operations(invocation);
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
        return i == 0 ? list_operations(invocation) : catalogue_show(invocation);
    }
    if (invocation->word_count > 0 && needs != NULL) {
        return complain(invocation, BOURSE_USAGE,
                        "--needs lists devices; it does not go with an ID");
    }
    if (invocation->word_count > 0 && catalogue_find(invocation->words[0]) != NULL) {
        return complain(invocation, BOURSE_USAGE,
                        "that ID is one of the catalogue: say --catalogue, or --estimate "
                        "OPERATION; a device on the market that is called so is PROVIDER/LABEL");
    }
    if (!command_connect(invocation, &status)) {
        return status;
    }
    if (invocation->word_count > 0) {
        return show_one(invocation, invocation->words[0]);
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
        state_say_of_market(invocation);
    } else {
        json_decref(listing.list);
        status = complain_with(invocation, &error);
    }
    grid_fini(&listing.table);
    return status;
}
