/* This file serves `plan TEMPLATE --on-offer`. Each free slot of a standing ask is a device at its
 * price, and each provider is a machine. */
#include "consumer/command/plan/work.h"

#include "base/checked.h"
#include "consumer/command/show.h"

#include <stdlib.h>
#include <string.h>

enum { OFFERS_MOST = 4096 };

struct supply {
    char account[BOURSE_HEX32_SIZE], provider[BOURSE_NAME_SIZE], label[BOURSE_NAME_SIZE];
    char instrument[BOURSE_NAME_SIZE];
    const struct catalogue_device *known;
    struct device_profile profile;
    bool is_processor;
    uint32_t slots;
    int64_t price_micro;
    size_t place; /* position in the listing */
};

struct market {
    struct supply *rows;
    size_t count;
    uint32_t simulated; /* number of simulated devices left out */
};

/* Reads the figures of one slot. A missing figure is unknown. */
static void read_profile(const struct bourse_device *device, struct device_profile *ret_profile)
{
    static const struct {
        const char *name;
        enum profile_figure figure;
    } known[] = {{"fp64", FIGURE_FP64},          {"fp32", FIGURE_FP32}, {"tf32", FIGURE_TF32},
                 {"bf16", FIGURE_BF16},          {"fp16", FIGURE_FP16}, {"fp8", FIGURE_FP8},
                 {"int8", FIGURE_INT8},          {"int4", FIGURE_INT4}, {"memory", FIGURE_MEMORY},
                 {"bandwidth", FIGURE_BANDWIDTH}};
    *ret_profile = (struct device_profile){.figures = {{.source = FIGURE_UNKNOWN}}};
    for (size_t i = 0; i < device->attribute_count; i++) {
        const struct bourse_attribute *attribute = &device->attributes[i];
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
            if (attribute->text == NULL && attribute->number > 0 &&
                strcmp(attribute->name, known[k].name) == 0) {
                ret_profile->figures[known[k].figure] =
                    (struct figure){.value = (double)attribute->number, .source = FIGURE_DECLARED};
            }
        }
    }
}

static bool take_device(void *context, const struct bourse_device *device)
{
    struct market *market = context;
    bool is_on_offer =
        device->price_micro >= 0 && device->free > 0 && strcmp(device->state, "present") == 0;
    if (!is_on_offer || device->simulated || market->count == OFFERS_MOST) {
        market->simulated += is_on_offer && device->simulated;
        return true;
    }
    struct supply *row = &market->rows[market->count];
    *row = (struct supply){.known = catalogue_by_instrument(device->instrument),
                           .is_processor = strcmp(device->kind, "cpu") == 0,
                           .slots = device->free,
                           .price_micro = device->price_micro,
                           .place = market->count++};
    (void)snprintf(row->account, sizeof row->account, "%s", device->account);
    (void)snprintf(row->provider, sizeof row->provider, "%s", device->provider);
    (void)snprintf(row->label, sizeof row->label, "%s", device->label);
    (void)snprintf(row->instrument, sizeof row->instrument, "%s", device->instrument);
    read_profile(device, &row->profile);
    return true;
}

static int cheapest_first(const void *a, const void *b)
{
    const struct supply *left = a;
    const struct supply *right = b;
    if (left->price_micro != right->price_micro) {
        return left->price_micro < right->price_micro ? -1 : 1;
    }
    return left->place < right->place ? -1 : left->place > right->place;
}

/* Returns the machine of a row, which is its provider's. */
static uint32_t host_of(const struct market *market, size_t row, uint32_t *hosts, uint32_t count)
{
    for (size_t i = 0; i < row; i++) {
        if (strcmp(market->rows[i].account, market->rows[row].account) == 0) {
            return hosts[i];
        }
    }
    return count;
}

/* The cheapest slots are taken when more are on offer than a plan can hold. */
static bool add_slots(struct work *work, const struct market *market)
{
    uint32_t *hosts = calloc(market->count + 1, sizeof *hosts);
    work->classes = calloc(PLAN_DEVICES, sizeof *work->classes);
    bool has_room = hosts != NULL && work->classes != NULL;
    for (size_t i = 0; has_room && i < market->count; i++) {
        const struct supply *row = &market->rows[i];
        char label[BOURSE_NAME_SIZE * 2 + 1];
        (void)snprintf(label, sizeof label, "%.23s/%.23s", cell_plain(row->provider),
                       cell_plain(row->label));
        hosts[i] = host_of(market, i, hosts, work->set->host_count);
        for (uint32_t k = 0; has_room && k < row->slots; k++) {
            const size_t at = work->set->count;
            has_room = device_set_add(work->set, hosts[i], row->known, label, &row->profile,
                                      row->is_processor, row->price_micro, NULL) == DEVICE_SET_OK;
            if (has_room) {
                memcpy(work->classes[at], row->instrument, sizeof row->instrument);
            }
        }
    }
    bool ok = hosts != NULL && work->classes != NULL;
    free(hosts);
    return ok;
}

bool work_market(struct work *work, int *ret_status)
{
    struct invocation *invocation = work->invocation;
    struct bourse_error error;
    struct market market = {.rows = calloc(OFFERS_MOST, sizeof *market.rows)};
    if (market.rows == NULL || !command_connect(invocation, ret_status)) {
        free(market.rows);
        return false;
    }
    bool ok = bourse_devices(invocation->bourse, take_device, &market, &error);
    if (!ok) {
        *ret_status = complain_with(invocation, &error);
    } else {
        qsort(market.rows, market.count, sizeof *market.rows, cheapest_first);
        ok = add_slots(work, &market);
        *ret_status = ok ? BOURSE_OK : complain(invocation, BOURSE_LOCAL, "out of memory");
    }
    if (ok && market.count == 0) {
        *ret_status = complain(invocation, BOURSE_NO_MATCH, "no device is on offer now%s",
                               market.simulated > 0 ? " but simulated ones" : "");
        ok = false;
    }
    free(market.rows);
    return ok;
}
