#include "provider/policy.h"

#include "base/text.h"
#include "formats/units.h"
#include "provider/device/attached.h"
#include "provider/device/describe.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define MEMORY_LEAST (64 * MIB) /* less runs nothing of use */
/* Inputs that stay take at most such a part of the memory for buffers. */
enum { HELD_SHARE = 4 };

/* ---------------------------------------------------------------- shares */

/* Returns the config's first device in the form of an entry of `devices`. */
static struct config_device first_device(const struct config *config, uint32_t slots)
{
    struct config_device first = {
        .price_micro = config->price_micro,
        .slots = slots < LIMIT_SLOTS ? slots : LIMIT_SLOTS,
        .memory_bytes = config->memory_bytes,
        .disk_bytes = config->disk_bytes,
        .processes = config->processes,
        .power_w = config->power_w,
        .term_ms = config->term_ms,
        .conditions = config->conditions,
        .spot = config->spot,
    };
    (void)snprintf(first.name, sizeof first.name, "%s", config->name);
    return first;
}

/* Sets memory and disk of one slot; the default is a share of the machine. */
static bool share_memory(struct offer *offer, const struct config_device *device,
                         const struct machine *machine, uint64_t all_slots, struct problem *problem)
{
    uint64_t share = machine->memory_bytes / 4 * 3 / all_slots; /* a quarter stays the owner's */
    uint64_t disk = device->disk_bytes;
    uint64_t memory = device->memory_bytes;
    if (memory == 0) {
        memory = disk == 0 ? share / 4 * 3 : share > disk ? share - disk : 0;
    }
    if (disk == 0) {
        disk = memory / 3;
    }
    offer->memory_bytes = memory / MIB * MIB;
    offer->disk_bytes = disk / MIB * MIB;
    if (offer->memory_bytes < MEMORY_LEAST) {
        problem_set(problem,
                    "%llu slot%s leave%s %llu MiB of memory each, and a slot needs %llu; offer "
                    "%s",
                    (unsigned long long)all_slots, text_plural(all_slots),
                    all_slots == 1 ? "s" : "", (unsigned long long)(memory / MIB),
                    (unsigned long long)(MEMORY_LEAST / MIB),
                    all_slots == 1 ? "more memory" : "fewer slots");
        return false;
    }
    if (offer->kernel_device != NULL) {
        const bool is_processor = strcmp(kernel_device_kind(offer->kernel_device), "cpu") == 0;
        offer->kernel_bytes =
            config_share_of(&device->kernel_memory, offer->kernel_device->memory_bytes) /
            device->slots;
        offer->buffer_bytes = is_processor ? offer->memory_bytes : offer->kernel_bytes;
        offer->held_bytes = device->held_bytes == CONFIG_HELD_SHARE
                                ? offer->buffer_bytes / HELD_SHARE
                                : device->held_bytes / device->slots;
    }
    return true;
}

/* Memory and disk count together, because files of jobs live in memory. */
static bool memory_suffices(const struct offers *offers, const struct machine *machine,
                            uint64_t all_slots, struct problem *problem)
{
    uint64_t needed = 0;
    for (size_t i = 0; i < offers->count; i++) {
        const struct offer *offer = &offers->items[i];
        needed += (offer->memory_bytes + offer->disk_bytes) * offer->device.slots;
    }
    if (machine->memory_bytes > 0 && needed > machine->memory_bytes) {
        char have[UNITS_TEXT_SIZE];
        units_bytes_short((int64_t)machine->memory_bytes, have);
        problem_set(problem,
                    "memory and disk of %llu slots are %llu MiB together, and this machine has "
                    "%s; lower `memory`, `disk` or `slots`",
                    (unsigned long long)all_slots, (unsigned long long)(needed / MIB), have);
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- offers */

/* Computes how many cores the first device has, once all others have theirs. */
static bool share_cores(const struct config *config, const struct machine *machine,
                        uint32_t *ret_first, struct problem *problem)
{
    uint64_t others = 0;
    for (size_t i = 0; i < config->device_count; i++) {
        const struct config_device *device = &config->devices[i];
        const bool has_cores = device->simulates == NULL && !attached_is_left_out(device, machine);
        others += has_cores ? device->slots : 0;
    }
    uint64_t wanted = others + (config->slots == 0 ? 1 : config->slots);
    if (config->slots > machine->cores) {
        problem_set(problem, "slots: %u, but this process may use %u cores", config->slots,
                    machine->cores);
        config_place(config, config->lines.slots, problem);
        return false;
    }
    if (wanted > machine->cores) {
        problem_set(problem,
                    "all devices together have %llu slots, but this process may use %u cores; "
                    "lower `slots`, of the first or of those under `devices`",
                    (unsigned long long)wanted, machine->cores);
        config_place(config, config->lines.slots, problem);
        return false;
    }
    *ret_first = config->slots == 0 ? machine->cores - (uint32_t)others : config->slots;
    return true;
}

static void fill_offer(struct offer *offer, const struct config_device *device,
                       const struct machine *machine, const struct key32 *account, bool is_first)
{
    char name[8 + ATTRIBUTE_TEXT_SIZE] = "cpu";
    if (!is_first) {
        (void)snprintf(name, sizeof name, "cpu/%s", device->name);
    }
    offer->simulates = device->simulates;
    offer->kernel_memory = device->kernel_memory;
    offer->device.slots = device->slots;
    offer->device.device = discover_device_id(account, name);
    offer->device.attributes = offer->attributes;
    offer->processes = device->processes;
    offer->power_mw = config_power_mw(device);
    (void)snprintf(offer->device.instrument, sizeof offer->device.instrument, "%s%s",
                   device->simulates != NULL ? "sim." : "",
                   device->simulates != NULL ? device->simulates->instrument : machine->instrument);
    if (offer->kernel_device != NULL) {
        kernel_device_instrument(offer->kernel_device, offer->device.instrument);
    }
    if (offer->plugin != NULL) {
        const struct plugin_description *said = &offer->plugin->description;
        (void)snprintf(offer->device.instrument, sizeof offer->device.instrument, "%s.%.24s.%.24s",
                       said->kind, said->vendor, said->model);
    }
    if (offer->model_device != NULL) {
        model_device_instrument(offer->model_device, offer->device.instrument);
    }
    (void)snprintf(offer->device.label, sizeof offer->device.label, "%s", device->name);
    offer->ask = (struct agent_ask){
        .device = offer->device.device,
        .slots = device->slots,
        .price_micro = device->price_micro,
        .max_term_ms = device->term_ms,
        .conditions = device->conditions,
        .is_interruptible = device->spot.is_interruptible,
        .notice_ms = device->spot.notice_ms,
        .minimum_run_ms = device->spot.minimum_run_ms,
    };
}

/* Returns the line that decides how much memory a slot of the first device has. */
static unsigned memory_line(const struct config *config)
{
    const struct config_lines *lines = &config->lines;
    return lines->memory > 0 ? lines->memory : lines->disk > 0 ? lines->disk : lines->slots;
}

/* A device with memory of its own is offered once; otherwise two offers would promise the same
 * memory. Devices of cores have the memory of their slots. */
static bool is_offered_once(const struct offers *offers, const struct kernel_device *device,
                            const char *name, struct problem *problem)
{
    for (size_t i = 0; i < offers->count; i++) {
        if (device != NULL && offers->items[i].kernel_device == device &&
            strcmp(kernel_device_kind(device), "cpu") != 0) {
            problem_set(problem, "\"%s\" and \"%s\" are one device, %s %u \"%s\"; offer it once",
                        offers->items[i].device.label, name, kernel_op_api_name(device->api),
                        device->index, device->name);
            return false;
        }
    }
    return true;
}

/* Jobs reach the memory of a device whose files are in their jails. So such a device serves one job
 * at a time. */
static bool is_alone(const struct offer *offer, const struct config_device *device,
                     struct problem *problem)
{
    if (offer_is_open(offer) && device->slots > 1) {
        problem_set(problem,
                    "\"%s\" has %u slots, and its files in /dev are in the jails of its jobs, "
                    "which then reach the memory of one another; a device with isolation 0 has "
                    "one slot: leave `slots` out",
                    device->name, device->slots);
        return false;
    }
    return true;
}

/* Gives each device its share of this machine; its abilities are described later. */
static bool share_machine(const struct config *config, const struct machine *machine,
                          const struct key32 *account, struct offers *ret_offers,
                          struct problem *ret_problem)
{
    uint32_t slots;
    if (!share_cores(config, machine, &slots, ret_problem)) {
        return false;
    }
    const struct config_device first = first_device(config, slots);
    memset(ret_offers, 0, sizeof *ret_offers);
    uint64_t all_slots = first.slots;
    for (size_t i = 0; i < config->device_count; i++) {
        all_slots +=
            attached_is_left_out(&config->devices[i], machine) ? 0 : config->devices[i].slots;
    }
    uint32_t core = 0;
    for (size_t i = 0; i < 1 + config->device_count; i++) {
        const struct config_device *device = i == 0 ? &first : &config->devices[i - 1];
        struct offer *offer = &ret_offers->items[ret_offers->count];
        struct attached attached;
        const enum attached_status found = attached_find(device, machine, &attached, ret_problem);
        if (found == ATTACHED_UNKNOWN) {
            return false;
        }
        if (found == ATTACHED_LEFT_OUT) {
            continue;
        }
        offer->kernel_device = attached.kernel;
        offer->plugin = attached.plugin;
        offer->model_device = attached.model;
        if (!is_offered_once(ret_offers, offer->kernel_device, device->name, ret_problem)) {
            return false;
        }
        if (!is_alone(offer, device, ret_problem)) {
            return false;
        }
        ret_offers->count++;
        fill_offer(offer, device, machine, account, i == 0);
        const bool is_attached =
            offer->kernel_device != NULL || offer->plugin != NULL || offer->model_device != NULL;
        offer->cpu_percent = is_attached ? 100 : config->cpu_percent;
        if (!share_memory(offer, device, machine, all_slots, ret_problem)) {
            config_place(config, i == 0 ? memory_line(config) : 0, ret_problem);
            return false;
        }
        if (device->simulates == NULL) {
            offer->first_core = core;
            core += device->slots;
        }
    }
    if (!memory_suffices(ret_offers, machine, all_slots, ret_problem)) {
        config_place(config, memory_line(config), ret_problem);
        return false;
    }
    return true;
}

bool policy_check(const struct config *config, const struct machine *machine,
                  struct problem *ret_problem)
{
    static struct offers offers; /* large */
    static const struct key32 nobody;
    return share_machine(config, machine, &nobody, &offers, ret_problem);
}

bool policy_offers(const struct config *config, const struct machine *machine,
                   const struct profile *profile, const struct isolation *isolation,
                   const struct key32 *account, struct offers *ret_offers,
                   struct problem *ret_problem)
{
    if (isolation->level < 1) {
        problem_set(ret_problem, "this host cannot isolate jobs, so nothing is offered: %s",
                    isolation->refusal);
        return false;
    }
    if (config->cpu_percent < 100 && !isolation->cpu_enforced) {
        problem_set(ret_problem,
                    "cpu: no control group bounds the processors here; start the agent "
                    "as root, or offer fewer `slots`");
        config_place(config, config->lines.cpu, ret_problem);
        return false;
    }
    if (!share_machine(config, machine, account, ret_offers, ret_problem)) {
        return false;
    }
    for (size_t i = 0; i < ret_offers->count; i++) {
        struct offer *offer = &ret_offers->items[i];
        if (offer->simulates != NULL && profile->gemm_mflops.value == 0) {
            problem_set(ret_problem,
                        "%s cannot be simulated: the tensor executor does not run here",
                        offer->simulates->id);
            return false;
        }
        describe_offer(offer, config, machine, profile, isolation);
    }
    return true;
}

const struct offer *policy_offer_of(const struct offers *offers, const struct id128 *device)
{
    for (size_t i = 0; i < offers->count; i++) {
        if (id128_equal(&offers->items[i].device.device, device)) {
            return &offers->items[i];
        }
    }
    return NULL;
}
