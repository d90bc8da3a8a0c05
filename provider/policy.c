#include "provider/policy.h"

#include "base/text.h"
#include "formats/units.h"
#include "provider/device/simulation.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define MEMORY_LEAST (64 * MIB) /* less runs nothing of use */

/* ---------------------------------------------------------------- attributes */

static struct attribute *next_attribute(struct offer *offer, const char *name)
{
    assert(offer->device.attribute_count < POLICY_ATTRIBUTES_MAX);
    struct attribute *attribute = &offer->attributes[offer->device.attribute_count++];
    memset(attribute, 0, sizeof *attribute);
    (void)snprintf(attribute->name, sizeof attribute->name, "%s", name);
    return attribute;
}

/* Unknown facts are not claimed: "" and 0 make no attribute. */
static void text_attribute(struct offer *offer, const char *name, const char *text)
{
    if (text[0] != '\0') {
        struct attribute *attribute = next_attribute(offer, name);
        attribute->is_text = true;
        (void)snprintf(attribute->text, sizeof attribute->text, "%s", text);
    }
}

static void number_attribute(struct offer *offer, const char *name, int64_t number)
{
    if (number > 0) {
        next_attribute(offer, name)->number = number;
    }
}

/* A measured figure is listed as measured, because a reader cannot see the difference. All other
 * figures are declared. */
static void measured_attribute(struct offer *offer, const char *name, int64_t number)
{
    if (number > 0) {
        number_attribute(offer, name, number);
        text_attribute(offer, POLICY_MEASURED, name);
    }
}

/* Describes the bounds on images when the owner changed them. A job asks for room for its image. A
 * device that says nothing has the default bounds. */
static void describe_images(struct offer *offer, const struct config *config)
{
    if (config->image_files != LIMIT_IMAGE_FILES) {
        number_attribute(offer, "image_files", (int64_t)config->image_files);
    }
    if (config->image_bytes != LIMIT_IMAGE_MIB * MIB) {
        number_attribute(offer, "image_size", (int64_t)config->image_bytes);
    }
}

/* Returns operations per second, or 0 for a value that a file may hold and no device has. */
static int64_t operations(int64_t mflops)
{
    return mflops < INT64_MAX / 1000000 ? mflops * 1000000 : 0;
}

/* Returns the variant of a processor by its instruction set, or "" for one without a name. */
static const char *cpu_variant(const char *arch)
{
    if (strcmp(arch, "x86_64") == 0) {
        return "cpu-x86";
    }
    if (strcmp(arch, "aarch64") == 0 || strncmp(arch, "arm", 3) == 0) {
        return "cpu-arm";
    }
    return strncmp(arch, "riscv", 5) == 0 ? "cpu-riscv" : "";
}

static void describe(struct offer *offer, const struct config *config,
                     const struct machine *machine, const struct profile *profile,
                     const struct isolation *isolation)
{
    text_attribute(offer, "kind", "cpu");
    text_attribute(offer, "kind", cpu_variant(machine->arch));
    text_attribute(offer, "instrument", machine->instrument);
    text_attribute(offer, "arch", machine->arch);
    text_attribute(offer, "vendor", machine->vendor);
    text_attribute(offer, "model", machine->model);
    text_attribute(offer, "label", offer->device.label);
    text_attribute(offer, "region", config->region);
    number_attribute(offer, "cores", offer->device.slots);
    number_attribute(offer, "memory", (int64_t)offer->memory_bytes);
    number_attribute(offer, "disk", (int64_t)offer->disk_bytes);
    describe_images(offer, config);
    measured_attribute(offer, "gflops", profile->mflops.value / 1000);
    measured_attribute(offer, "bandwidth", profile->bandwidth_bytes.value);
    measured_attribute(offer, "fp64", operations(profile->mflops.value));
    next_attribute(offer, "simulated")->number = 0; /* stated, so that `simulated = false` holds */
    number_attribute(offer, "isolation", isolation->level);
    text_attribute(offer, "executor", "command");
    text_attribute(offer, "executor", "noop");
    if (profile->gemm_mflops.value > 0) {
        text_attribute(offer, "executor", "tensor");
        measured_attribute(offer, "gemm_fp32", profile->gemm_mflops.value);
        measured_attribute(offer, "fp32", operations(profile->gemm_mflops.value));
    }
    for (size_t i = 0; i < config->program_count; i++) {
        text_attribute(offer, "program", config->programs[i].name);
    }
}

static int64_t whole(const struct device_profile *profile, enum profile_figure which)
{
    return (int64_t)profile->figures[which].value; /* 0 when unknown, and then not claimed */
}

/* Adds the vendor as instruments write it: "nvidia" for "gpu.nvidia.h100-sxm5". */
static void simulated_vendor(struct offer *offer, const char *instrument)
{
    char vendor[ATTRIBUTE_TEXT_SIZE];
    const char *from = strchr(instrument, '.') + 1;
    (void)snprintf(vendor, sizeof vendor, "%.*s", (int)strcspn(from, "."), from);
    text_attribute(offer, "vendor", vendor);
}

/* Adds the maker's peaks, type by type. The fp64 peak is the faster of both units. */
static void describe_peaks(struct offer *offer, const struct device_profile *profile)
{
    static const struct {
        const char *name;
        enum profile_figure figure;
    } peaks[] = {
        {"fp32", FIGURE_FP32}, {"tf32", FIGURE_TF32}, {"bf16", FIGURE_BF16}, {"fp16", FIGURE_FP16},
        {"fp8", FIGURE_FP8},   {"int8", FIGURE_INT8}, {"int4", FIGURE_INT4},
    };
    int64_t vector = whole(profile, FIGURE_FP64);
    int64_t matrix = whole(profile, FIGURE_FP64_MATRIX);
    number_attribute(offer, "fp64", vector > matrix ? vector : matrix);
    for (size_t i = 0; i < sizeof peaks / sizeof peaks[0]; i++) {
        number_attribute(offer, peaks[i].name, whole(profile, peaks[i].figure));
    }
}

/* Adds the catalogue's facts about the device, and marks it as a simulation. Its speed is that of
 * float32 products. */
static void describe_simulated(struct offer *offer, const struct config *config,
                               const struct isolation *isolation)
{
    const struct catalogue_device *device = offer->simulates;
    int64_t mflops = probe_round(simulation_mflops(device));
    number_attribute(offer, "simulated", 1);
    text_attribute(offer, "kind", device->kind);
    text_attribute(offer, "kind", device->variant);
    text_attribute(offer, "instrument", offer->device.instrument);
    simulated_vendor(offer, device->instrument);
    text_attribute(offer, "model", device->model);
    text_attribute(offer, "label", offer->device.label);
    text_attribute(offer, "region", config->region);
    number_attribute(offer, "memory", whole(&device->profile, FIGURE_MEMORY));
    /* The disk is this machine's, since the files are here. */
    number_attribute(offer, "disk", (int64_t)offer->disk_bytes);
    number_attribute(offer, "bandwidth", whole(&device->profile, FIGURE_BANDWIDTH));
    number_attribute(offer, "gflops", mflops / 1000);
    number_attribute(offer, "gemm_fp32", mflops);
    describe_peaks(offer, &device->profile);
    number_attribute(offer, "isolation", isolation->level);
    if (mflops > 0) { /* otherwise the device would refuse every product */
        text_attribute(offer, "executor", "tensor");
    }
    text_attribute(offer, "executor", "noop");
}

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
        others += config->devices[i].simulates == NULL ? config->devices[i].slots : 0;
    }
    uint64_t wanted = others + (config->slots == 0 ? 1 : config->slots);
    if (config->slots > machine->cores) {
        problem_set(problem, "slots: %u, but this process may use %u cores", config->slots,
                    machine->cores);
        return false;
    }
    if (wanted > machine->cores) {
        problem_set(problem,
                    "all devices together have %llu slots, but this process may use %u cores; "
                    "lower `slots`, of the first or of those under `devices`",
                    (unsigned long long)wanted, machine->cores);
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
    offer->device.slots = device->slots;
    offer->device.device = discover_device_id(account, name);
    offer->device.attributes = offer->attributes;
    offer->processes = device->processes;
    (void)snprintf(offer->device.instrument, sizeof offer->device.instrument, "%s%s",
                   device->simulates != NULL ? "sim." : "",
                   device->simulates != NULL ? device->simulates->instrument : machine->instrument);
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
    ret_offers->count = 1 + config->device_count;
    uint64_t all_slots = first.slots;
    for (size_t i = 0; i < config->device_count; i++) {
        all_slots += config->devices[i].slots;
    }
    uint32_t core = 0;
    for (size_t i = 0; i < ret_offers->count; i++) {
        const struct config_device *device = i == 0 ? &first : &config->devices[i - 1];
        struct offer *offer = &ret_offers->items[i];
        fill_offer(offer, device, machine, account, i == 0);
        if (!share_memory(offer, device, machine, all_slots, ret_problem)) {
            return false;
        }
        if (device->simulates == NULL) {
            offer->first_core = core;
            core += device->slots;
        }
    }
    return memory_suffices(ret_offers, machine, all_slots, ret_problem);
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
    if (!share_machine(config, machine, account, ret_offers, ret_problem)) {
        return false;
    }
    for (size_t i = 0; i < ret_offers->count; i++) {
        struct offer *offer = &ret_offers->items[i];
        if (offer->simulates == NULL) {
            describe(offer, config, machine, profile, isolation);
        } else if (profile->gemm_mflops.value > 0) {
            describe_simulated(offer, config, isolation);
        } else {
            problem_set(ret_problem,
                        "%s cannot be simulated: the tensor executor does not run here",
                        offer->simulates->id);
            return false;
        }
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

static uint64_t lesser(uint64_t ours, int64_t asked)
{
    return asked > 0 && (uint64_t)asked < ours ? (uint64_t)asked : ours;
}

struct jail_limits policy_jail(const struct offer *offer, uint32_t width, int64_t memory_bytes,
                               int64_t disk_bytes, uint32_t processes, bool cpu_enforced)
{
    assert(width >= 1 && width <= LIMIT_SLOTS);
    return (struct jail_limits){
        .memory_bytes = lesser(offer->memory_bytes * width, memory_bytes),
        .disk_bytes = lesser(offer->disk_bytes * width, disk_bytes),
        .processes = (uint32_t)lesser((uint64_t)offer->processes * width, processes),
        .cpu_milli = cpu_enforced ? 1000 * width : 0,
    };
}
