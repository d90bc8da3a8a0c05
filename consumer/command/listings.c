/* devices: what the market looks like. */
#include "consumer/command/catalogue.h"
#include "consumer/command/output.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

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

/* What is known of its speed: "12 Gflop/s, 9.3 GiB/s". */
static void figures_text(const struct bourse_device *device, char *ret_text, size_t capacity)
{
    const struct bourse_attribute *gflops = number_named(device, "gflops");
    const struct bourse_attribute *bandwidth = number_named(device, "bandwidth");
    size_t used = 0;
    ret_text[0] = '\0';
    if (gflops != NULL) {
        used = (size_t)snprintf(ret_text, capacity, "%lld Gflop/s", (long long)gflops->number);
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

int command_devices(struct invocation *invocation)
{
    static const char *const titles[] = {"PROVIDER", "DEVICE", "INSTRUMENT", "KIND",   "SLOTS",
                                         "FREE",     "PRICE",  "MEMORY",     "FIGURES"};
    const char *needs = option_text(invocation, "needs", NULL);
    int status = 0;
    if (option_given(invocation, "catalogue") || option_given(invocation, "estimate")) {
        return show_catalogue(invocation);
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
