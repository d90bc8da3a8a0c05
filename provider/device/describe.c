#include "provider/device/describe.h"

#include "provider/device/simulation.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

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

static void describe_cores(struct offer *offer, const struct config *config,
                           const struct machine *machine, const struct profile *profile)
{
    text_attribute(offer, "kind", "cpu");
    text_attribute(offer, "kind", discover_variant(machine->arch));
    text_attribute(offer, "instrument", machine->instrument);
    text_attribute(offer, "arch", machine->arch);
    for (unsigned i = 0; discover_feature_name(i) != NULL; i++) {
        text_attribute(offer, "feature",
                       (machine->features >> i & 1) != 0 ? discover_feature_name(i) : "");
    }
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
static void describe_simulated(struct offer *offer, const struct config *config)
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
    if (mflops > 0) { /* otherwise the device would refuse every product */
        text_attribute(offer, "executor", "tensor");
    }
    text_attribute(offer, "executor", "noop");
}

/* Adds what is known of a device for kernels. The device runs kernels, and computes matrices where
 * the trial was right. Host programs are not offered: the market must not take the device for plain
 * cores. */
static void describe_kernel_device(struct offer *offer, const struct config *config)
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
        measured_attribute(offer, "gemm_fp32_held", device->gemm_held_mflops);
        text_attribute(offer, "challenge", "gemm_fp32");
        text_attribute(offer, "challenge", device->gemm_held_mflops > 0 ? "gemm_fp32_held" : "");
        measured_attribute(offer, "tf32", operations(device->tf32_mflops));
        measured_attribute(offer, "tf32_held", operations(device->tf32_held_mflops));
        measured_attribute(offer, "bf16", operations(device->bf16_mflops));
        measured_attribute(offer, "bf16_held", operations(device->bf16_held_mflops));
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
}

/* Adds what a plug-in says of its device. The figures are declared: the agent has only the word of
 * the owner's program for them. */
static void describe_plugin(struct offer *offer, const struct config *config)
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
}

/* Adds what the trial said of an execution provider of ONNX Runtime. */
static void describe_model_device(struct offer *offer, const struct config *config)
{
    const struct model_device *device = offer->model_device;
    char slug[MODEL_PROVIDER_SIZE];
    model_device_slug(device->provider.name, slug);
    next_attribute(offer, "simulated")->number = 0;
    text_attribute(offer, "kind", device->kind);
    text_attribute(offer, "instrument", offer->device.instrument);
    text_attribute(offer, "vendor", device->vendor);
    text_attribute(offer, "label", offer->device.label);
    text_attribute(offer, "region", config->region);
    text_attribute(offer, "executor", "onnx");
    text_attribute(offer, "engine", device->engine);
    text_attribute(offer, "api", "onnxruntime");
    text_attribute(offer, "backend", slug);
    number_attribute(offer, "memory", (int64_t)offer->memory_bytes);
    number_attribute(offer, "disk", (int64_t)offer->disk_bytes);
    number_attribute(offer, "folders", 1);
    measured_attribute(offer, "gflops", device->mflops / 1000);
    measured_attribute(offer, "fp32", operations(device->mflops));
}

/* Says how well the device's jails close. Their files and limits are the kernel's to enforce, and a
 * host may lack what enforces them (isolation.h). */
static void describe_jail(struct offer *offer, const struct isolation *isolation)
{
    const bool is_bounded =
        isolation->memory_enforced && isolation->processes_enforced && isolation->cpu_enforced;
    /* The files of a device lead past the jail's walls, into its driver. */
    offer->isolation = offer_is_open(offer) ? 0 : isolation->level;
    next_attribute(offer, "isolation")->number = offer->isolation;
    next_attribute(offer, "landlock")->number = isolation->landlock_abi > 0;
    next_attribute(offer, "cgroup")->number = is_bounded ? isolation->cgroup_version : 0;
}

void describe_offer(struct offer *offer, const struct config *config, const struct machine *machine,
                    const struct profile *profile, const struct isolation *isolation)
{
    number_attribute(offer, "power_mw", offer->power_mw);
    describe_jail(offer, isolation);
    if (offer->kernel_device != NULL) {
        describe_kernel_device(offer, config);
    } else if (offer->plugin != NULL) {
        describe_plugin(offer, config);
    } else if (offer->model_device != NULL) {
        describe_model_device(offer, config);
    } else if (offer->simulates != NULL) {
        describe_simulated(offer, config);
    } else {
        describe_cores(offer, config, machine, profile);
    }
}
