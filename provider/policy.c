#include "provider/policy.h"

#include "base/text.h"
#include "formats/units.h"
#include "provider/device/simulation.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define MEMORY_LEAST (64 * MIB) /* less runs nothing of use */
/* Inputs that stay take at most such a part of the memory for buffers. */
enum { HELD_SHARE = 4 };

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
 * device that says nothing has the default bounds. An agent without image_config starts every
 * program in the work folder, as user 1000. An agent without folders takes and leaves single files
 * alone. With 1 it takes an output's pattern for a name, and up to 2 it leaves out links and empty
 * folders. */
static void describe_images(struct offer *offer, const struct config *config)
{
    number_attribute(offer, "image_config", 1);
    number_attribute(offer, "folders", 3);
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

/* Returns what a core does in the share of its time that jobs may use. */
static int64_t shared(const struct probe_figure *figure, const struct offer *offer)
{
    const int64_t hundredth = figure->value / 100;
    return hundredth * offer->cpu_percent + figure->value % 100 * offer->cpu_percent / 100;
}

static void describe(struct offer *offer, const struct config *config,
                     const struct machine *machine, const struct profile *profile,
                     const struct isolation *isolation)
{
    text_attribute(offer, "kind", "cpu");
    text_attribute(offer, "kind", discover_variant(machine->arch));
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
    measured_attribute(offer, "gflops", shared(&profile->mflops, offer) / 1000);
    measured_attribute(offer, "bandwidth", shared(&profile->bandwidth_bytes, offer));
    measured_attribute(offer, "fp64", operations(shared(&profile->mflops, offer)));
    next_attribute(offer, "simulated")->number = 0; /* stated, so that `simulated = false` holds */
    number_attribute(offer, "isolation", isolation->level);
    text_attribute(offer, "executor", "command");
    number_attribute(offer, "terminal", 1);
    text_attribute(offer, "executor", "noop");
    if (profile->gemm_mflops.value > 0) {
        text_attribute(offer, "executor", "tensor");
        measured_attribute(offer, "gemm_fp32", shared(&profile->gemm_mflops, offer));
        measured_attribute(offer, "fp32", operations(shared(&profile->gemm_mflops, offer)));
    }
    /* An engine that the config names since the start was not tried. */
    if (strcmp(config->wasm_engine, machine->wasm.path) == 0 &&
        wasm_engine_suffices(&machine->wasm, offer->memory_bytes)) {
        text_attribute(offer, "executor", "wasm");
    }
    if (strcmp(config->onnx_library, machine->models.library) == 0 &&
        model_engine_suffices(&machine->models, offer->memory_bytes)) {
        text_attribute(offer, "executor", "onnx");
        text_attribute(offer, "engine", machine->models.name);
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

/* Adds what is known of a device for kernels. The device runs kernels, and computes matrices where
 * the trial was right. Host programs are not offered: the market must not take the device for plain
 * cores. */
static void describe_kernel_device(struct offer *offer, const struct config *config,
                                   const struct isolation *isolation)
{
    const struct kernel_device *device = offer->kernel_device;
    char model[ATTRIBUTE_TEXT_SIZE];
    (void)snprintf(model, sizeof model, "%.*s", (int)sizeof model - 1, device->name);
    next_attribute(offer, "simulated")->number = 0;
    text_attribute(offer, "kind", kernel_device_kind(device));
    text_attribute(offer, "instrument", offer->device.instrument);
    text_attribute(offer, "vendor", device->vendor);
    text_attribute(offer, "model", model);
    text_attribute(offer, "label", offer->device.label);
    text_attribute(offer, "region", config->region);
    text_attribute(offer, "executor", "kernel");
    if (device->gemm_mflops > 0) {
        text_attribute(offer, "executor", "tensor");
        measured_attribute(offer, "gemm_fp32", device->gemm_mflops);
        text_attribute(offer, "challenge", "gemm_fp32");
        measured_attribute(offer, "tf32", operations(device->tf32_mflops));
        measured_attribute(offer, "bf16", operations(device->bf16_mflops));
    }
    text_attribute(offer, "api", kernel_op_api_word(device->api));
    text_attribute(offer, "extension", device->has_fp64 ? "fp64" : "");
    text_attribute(offer, "extension", device->has_fp16 ? "fp16" : "");
    number_attribute(offer, "memory", (int64_t)offer->buffer_bytes);
    number_attribute(offer, "disk", (int64_t)offer->disk_bytes);
    number_attribute(offer, "folders", 1);
    measured_attribute(offer, "gflops", device->mflops / 1000);
    measured_attribute(offer, "fp32", operations(device->mflops));
    measured_attribute(offer, "bandwidth", device->bandwidth_bytes);
    /* A jail with the driver's device files is less than level 1. */
    next_attribute(offer, "isolation")->number =
        kernel_device_nodes(device)[0] == NULL ? isolation->level : 0;
}

/* Adds what a plug-in says of its device. The figures are declared: the agent has only the word of
 * the owner's program for them. */
static void describe_plugin(struct offer *offer, const struct config *config,
                            const struct isolation *isolation)
{
    const struct plugin_device *device = offer->plugin;
    const struct plugin_description *description = &device->description;
    next_attribute(offer, "simulated")->number = 0;
    text_attribute(offer, "kind", description->kind);
    text_attribute(offer, "instrument", offer->device.instrument);
    text_attribute(offer, "vendor", description->vendor);
    text_attribute(offer, "model", description->name);
    text_attribute(offer, "label", offer->device.label);
    text_attribute(offer, "region", config->region);
    text_attribute(offer, "executor", "plugin");
    for (size_t i = 0; i < description->operation_count; i++) {
        text_attribute(offer, "operation", description->operations[i]);
    }
    number_attribute(offer, "memory",
                     description->memory_bytes > 0 && description->memory_bytes < INT64_MAX
                         ? (int64_t)description->memory_bytes
                         : (int64_t)offer->memory_bytes);
    number_attribute(offer, "disk", (int64_t)offer->disk_bytes);
    number_attribute(offer, "folders", 1);
    number_attribute(offer, "gflops", device->probe.fp32 / 1000000000);
    number_attribute(offer, "fp32", device->probe.fp32);
    number_attribute(offer, "bandwidth", device->probe.bandwidth);
    number_attribute(offer, "gemm_fp32", plugin_device_mflops(device));
    text_attribute(offer, "challenge", description->multiplies ? PLUGIN_CHALLENGED : "");
    /* A jail with device files is less than level 1. */
    next_attribute(offer, "isolation")->number =
        device->program.node_count == 0 ? isolation->level : 0;
}

/* ---------------------------------------------------------------- attached devices */

enum found { FOUND, LEFT_OUT, UNKNOWN };

/* Finds the device of an entry with a plug-in; other entries have none. Before the plug-ins were
 * asked, every entry counts. */
static enum found find_plugin(const struct config_device *device, const struct machine *machine,
                              const struct plugin_device **ret_plugin, struct problem *problem)
{
    *ret_plugin = NULL;
    if (device->plugin.path[0] == '\0' || !machine->plugins.is_known) {
        return FOUND;
    }
    const struct plugin_device *plugin = plugin_device_find(&machine->plugins, device->name);
    if (plugin == NULL || !plugin_program_equal(&plugin->program, &device->plugin)) {
        problem_set(problem, "the plug-in of \"%s\" is asked at a start alone: restart the agent",
                    device->name);
        return UNKNOWN;
    }
    *ret_plugin = plugin;
    return plugin->unusable[0] == '\0' ? FOUND : LEFT_OUT;
}

/* Finds the device for kernels of an entry; other entries have none. Before the machine was asked,
 * every entry counts. */
static enum found find_kernel_device(const struct config_device *device,
                                     const struct machine *machine,
                                     const struct kernel_device **ret_device,
                                     struct problem *problem)
{
    const struct kernel_device_list *list = &machine->kernel_devices[device->kernel_api];
    *ret_device = NULL;
    if (device->kernel[0] == '\0' || !list->is_known) {
        return FOUND;
    }
    if (list->count == 0) {
        return LEFT_OUT;
    }
    const struct kernel_device *found = kernel_device_find(list, device->kernel, problem);
    if (found == NULL || found->unusable[0] != '\0') {
        return found == NULL ? UNKNOWN : LEFT_OUT;
    }
    *ret_device = found;
    return FOUND;
}

static bool is_left_out(const struct config_device *device, const struct machine *machine)
{
    const struct kernel_device *kernel_device;
    const struct plugin_device *plugin;
    struct problem problem;
    return find_kernel_device(device, machine, &kernel_device, &problem) == LEFT_OUT ||
           find_plugin(device, machine, &plugin, &problem) == LEFT_OUT;
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
        const bool has_cores = device->simulates == NULL && !is_left_out(device, machine);
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
            problem_set(problem,
                        "\"%s\" and \"%s\" are one device, %s %u \"%s\"; offer it once, with "
                        "`slots` for several jobs",
                        offers->items[i].device.label, name, kernel_op_api_name(device->api),
                        device->index, device->name);
            return false;
        }
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
        all_slots += is_left_out(&config->devices[i], machine) ? 0 : config->devices[i].slots;
    }
    uint32_t core = 0;
    for (size_t i = 0; i < 1 + config->device_count; i++) {
        const struct config_device *device = i == 0 ? &first : &config->devices[i - 1];
        struct offer *offer = &ret_offers->items[ret_offers->count];
        enum found found = find_kernel_device(device, machine, &offer->kernel_device, ret_problem);
        if (found == FOUND) {
            found = find_plugin(device, machine, &offer->plugin, ret_problem);
        }
        if (found == UNKNOWN) {
            return false;
        }
        if (found == LEFT_OUT) {
            continue;
        }
        if (!is_offered_once(ret_offers, offer->kernel_device, device->name, ret_problem)) {
            return false;
        }
        ret_offers->count++;
        fill_offer(offer, device, machine, account, i == 0);
        const bool is_attached = offer->kernel_device != NULL || offer->plugin != NULL;
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
        number_attribute(offer, "power_mw", offer->power_mw);
        if (offer->kernel_device != NULL) {
            describe_kernel_device(offer, config, isolation);
        } else if (offer->plugin != NULL) {
            describe_plugin(offer, config, isolation);
        } else if (offer->simulates == NULL) {
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
