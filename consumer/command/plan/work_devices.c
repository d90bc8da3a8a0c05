#include "consumer/command/plan/work_devices.h"

#include "base/checked.h"
#include "consumer/command/plan/work_refusal.h"
#include "consumer/command/show.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int refuse_devices(const struct work *work, enum device_set_status status,
                          const struct problem *problem)
{
    return status == DEVICE_SET_NO_MEMORY
               ? work_no_memory(work)
               : work_refuse(work, BOURSE_USAGE, "", device_set_status_name(status), problem->text);
}

static int add_list(struct work *work)
{
    const struct device_list *list = &work->request.devices;
    for (size_t i = 0; i < list->part_count; i++) {
        const struct device_list_part *part = &list->parts[i];
        const struct catalogue_device *known = NULL;
        struct problem problem = {.text = ""};
        enum device_set_status status = device_set_find(part->name, &known, &problem);
        for (uint32_t k = 0; status == DEVICE_SET_OK && k < part->count; k++) {
            status = device_set_add(work->set, part->host, known, NULL, NULL,
                                    strcmp(known->kind, "cpu") == 0, part->price_micro, &problem);
        }
        if (status != DEVICE_SET_OK) {
            return refuse_devices(work, status, &problem);
        }
    }
    return BOURSE_OK;
}

static void apply_link(const struct plan_file_link *from, struct device_set_link *to)
{
    if (from->is_given) {
        to->bandwidth = (double)from->link.bandwidth;
        to->latency_s =
            from->has_latency ? (double)from->link.latency_ns / NS_PER_S : to->latency_s;
    }
}

/* Adds figures that the catalogue or the agent does not know. */
static int add_figures(struct work *work)
{
    static const enum profile_figure known[] = {
        FIGURE_MEMORY, FIGURE_BANDWIDTH, FIGURE_FP64, FIGURE_FP32, FIGURE_TF32,        FIGURE_FP16,
        FIGURE_BF16,   FIGURE_FP8,       FIGURE_INT8, FIGURE_INT4, FIGURE_INTERCONNECT};
    for (size_t i = 0; i < work->request.figure_count; i++) {
        const struct plan_file_figure *given = &work->request.figures[i];
        size_t number = 0;
        while (strcmp(plan_file_figure_name(number), given->name) != 0) {
            number++;
        }
        assert(number < sizeof known / sizeof known[0]);
        if (!device_set_declare(work->set, given->device, known[number], (double)given->value)) {
            char said[WORK_SAID_SIZE];
            return complain(work->invocation, BOURSE_USAGE,
                            "%s %s: no such device is among those of the plan, of which the "
                            "first is \"%s\"",
                            work_said_at(work, given->line, "figure", "figures", said),
                            cell_plain(given->device), work->set->items[0].name);
        }
    }
    return BOURSE_OK;
}

int work_devices_make(struct work *work)
{
    const struct plan_file *request = &work->request;
    struct device_set_links links = device_set_defaults();
    int status = BOURSE_OK;
    work->set = device_set_create();
    if (work->set == NULL) {
        return work_no_memory(work);
    }
    if (request->is_market ? !work_market(work, &status) : (status = add_list(work)) != BOURSE_OK) {
        return status;
    }
    if (work->set->count == 0) {
        return complain(
            work->invocation, BOURSE_USAGE,
            "on which devices? --devices h100:2,tpu-v5p:4 names some of `bourse devices "
            "--catalogue`; --on-offer takes those of the market");
    }
    status = add_figures(work);
    if (status != BOURSE_OK) {
        return status;
    }
    apply_link(&request->pcie, &links.wires[DEVICE_SET_PCIE]);
    apply_link(&request->peer, &links.wires[DEVICE_SET_PEER]);
    apply_link(&request->fabric, &links.wires[DEVICE_SET_FABRIC]);
    apply_link(&request->network, &links.wires[DEVICE_SET_NETWORK]);
    links.storage = (double)request->storage;
    links.may_stream = request->may_stream;
    struct problem problem = {.text = ""};
    enum device_set_status linked = device_set_link(work->set, &links, &problem);
    if (linked != DEVICE_SET_OK) {
        return refuse_devices(work, linked, &problem);
    }
    for (size_t i = 0; i < work->set->count; i++) {
        const struct device_set_item *item = &work->set->items[i];
        work->costs[i] = item->cost;
        work->devices[i] = (struct plan_device){.name = item->name,
                                                .cost = &work->costs[i],
                                                .memory = item->memory,
                                                .price_micro = item->price_micro,
                                                .idle_w = {.source = FIGURE_UNKNOWN}};
    }
    return BOURSE_OK;
}

/* Adds the risk that devices of one name, or all devices, are taken away. */
static int add_risk(struct work *work, const struct plan_file_risk *given)
{
    const struct catalogue_device *known = NULL;
    struct problem problem = {.text = ""};
    const bool is_all = given->device[0] == '\0';
    struct spot_risk risk = {.per_hour = given->per_hour,
                             .restart_s = (double)given->restart_ns / NS_PER_S,
                             .checkpoint_s = (double)given->checkpoint_ns / NS_PER_S};
    risk.interval_s = spot_interval(&risk);
    if (!is_all && device_set_find(given->device, &known, &problem) != DEVICE_SET_OK) {
        known = NULL; /* the word may be a device's name in the plan */
    }
    bool is_any = false;
    for (size_t i = 0; i < work->set->count; i++) {
        const struct device_set_item *item = &work->set->items[i];
        if (is_all || (known != NULL && item->known == known) ||
            strcmp(item->name, given->device) == 0) {
            work->devices[i].risk = risk;
            is_any = true;
        }
    }
    char said[WORK_SAID_SIZE];
    return is_any
               ? BOURSE_OK
               : complain(work->invocation, BOURSE_USAGE,
                          "%s %s: no such device is among those of the plan, of which the first "
                          "is \"%s\"",
                          work_said_at(work, given->line, "interruptible", "interruptible", said),
                          cell_plain(given->device), work->set->items[0].name);
}

/* Risks of all devices come first, then those of named ones. */
int work_devices_interrupt(struct work *work)
{
    int status = BOURSE_OK;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < work->request.risk_count && status == BOURSE_OK; i++) {
            const struct plan_file_risk *risk = &work->request.risks[i];
            if ((risk->device[0] == '\0') == (pass == 0)) {
                status = add_risk(work, risk);
            }
        }
    }
    return status;
}

/* Returns the device with that name in the plan, else the only one that `--devices` names so. */
static uint32_t find_device(const struct work *work, const char *name, bool *ret_is_several)
{
    *ret_is_several = false;
    const struct catalogue_device *known = NULL;
    struct problem problem = {.text = ""};
    uint32_t found = PLAN_ANYWHERE;
    for (uint32_t i = 0; i < work->set->count; i++) {
        if (strcmp(work->set->items[i].name, name) == 0) {
            return i;
        }
    }
    if (device_set_find(name, &known, &problem) != DEVICE_SET_OK) {
        return PLAN_ANYWHERE;
    }
    for (uint32_t i = 0; i < work->set->count; i++) {
        if (work->set->items[i].known == known) {
            *ret_is_several = found != PLAN_ANYWHERE;
            if (*ret_is_several) {
                return PLAN_ANYWHERE;
            }
            found = i;
        }
    }
    return found;
}

int work_devices_place(struct work *work)
{
    if (work->request.place_count == 0) {
        return BOURSE_OK;
    }
    work->placed = calloc(work->steps->step_count, sizeof *work->placed);
    if (work->placed == NULL) {
        return work_no_memory(work);
    }
    for (size_t i = 0; i < work->steps->step_count; i++) {
        work->placed[i] = PLAN_ANYWHERE;
    }
    for (size_t i = 0; i < work->request.place_count; i++) {
        const struct plan_file_pair *place = &work->request.places[i];
        size_t step = steps_find(work->steps, place->name);
        bool is_several = false;
        uint32_t device = find_device(work, place->value, &is_several);
        if (step == work->steps->step_count || device == PLAN_ANYWHERE) {
            char said[WORK_SAID_SIZE];
            return complain(work->invocation, BOURSE_USAGE,
                            "%s %s=%s: %s; here the first step is \"%s\", the first device \"%s\"",
                            work_said_at(work, place->line, "place", "place", said),
                            cell_plain(place->name), cell_plain(place->value),
                            is_several                ? "several devices are called so"
                            : device == PLAN_ANYWHERE ? "there is no such device"
                                                      : "there is no such step",
                            work->steps->steps[0].name, work->set->items[0].name);
        }
        work->placed[step] = device;
    }
    return BOURSE_OK;
}
