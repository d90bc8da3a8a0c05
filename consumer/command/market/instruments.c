#include "consumer/command/market/instruments.h"
#include "consumer/command/complain.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "planner/cost/catalogue.h"

#include <stdlib.h>
#include <string.h>

struct known_names {
    const char **items; /* each owned */
    size_t count, capacity;
    bool is_out_of_memory;
};

static void known_names_fini(struct known_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free((void *)(uintptr_t)names->items[i]);
    }
    free(names->items);
}

static bool has_name(const struct known_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool add_name(struct known_names *names, const char *name)
{
    if (names->is_out_of_memory || name[0] == '\0' || has_name(names, name)) {
        return !names->is_out_of_memory;
    }
    const char **items =
        array_with_room(names->items, names->count, &names->capacity, sizeof *items);
    names->items = items != NULL ? items : names->items;
    char *copy = items != NULL ? strdup(name) : NULL;
    names->is_out_of_memory = copy == NULL;
    if (copy != NULL) {
        names->items[names->count++] = copy;
    }
    return copy != NULL;
}

static bool add_device(void *context, const struct bourse_device *device)
{
    return add_name(context, device->instrument);
}

static bool add_traded(void *context, const struct bourse_bar *bar)
{
    return add_name(context, bar->instrument);
}

static void add_catalogue(struct known_names *names)
{
    char simulated[BOURSE_NAME_SIZE];
    for (size_t i = 0; i < catalogue_count(); i++) {
        const char *instrument = catalogue_at(i)->instrument;
        (void)snprintf(simulated, sizeof simulated, "sim.%s", instrument);
        (void)add_name(names, instrument);
        (void)add_name(names, simulated);
    }
}

bool instrument_is_known(struct invocation *invocation, const char *name, int *ret_status)
{
    CLEANUP(known_names_fini) struct known_names names = {.count = 0};
    struct bourse_error error;
    if (!bourse_devices(invocation->bourse, add_device, &names, &error) ||
        !bourse_prices(invocation->bourse, NULL, 0, add_traded, &names, &error)) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    add_catalogue(&names);
    if (has_name(&names, name)) {
        return true;
    }
    const char *near = text_nearest(name, names.items, names.count);
    *ret_status = complain(
        invocation, BOURSE_NOT_FOUND,
        "no instrument '%.64s' is offered or was traded here, or is in the catalogue; %s%s%s", name,
        near != NULL ? "did you mean " : "`bourse devices` lists what is offered",
        near != NULL ? near : "", near != NULL ? "?" : "");
    return false;
}
