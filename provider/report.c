#include "provider/report.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/hours_text.h"
#include "formats/requirement.h"
#include "formats/units.h"
#include "provider/device/expected.h"

#include <jansson.h>

#include <string.h>

enum { REPORT_VERSION = 1, MEASURED_SIZE = 96 };

/* ---------------------------------------------------------------- the text report */

static const char *yes(bool fact)
{
    return fact ? "yes" : "no";
}

static void print_size(FILE *out, const char *label, uint64_t bytes)
{
    char text[UNITS_TEXT_SIZE];
    units_bytes_short((int64_t)bytes, text);
    fprintf(out, "  %-12s %s\n", label, text);
}

static void print_programs(FILE *out, const struct config *config)
{
    size_t column = 0;
    fprintf(out, "  %-12s", "programs");
    for (size_t i = 0; i < config->program_count; i++) {
        size_t width = strlen(config->programs[i].name) + 1;
        if (column + width > 64) {
            fprintf(out, "\n  %-12s", "");
            column = 0;
        }
        fprintf(out, " %s", config->programs[i].name);
        column += width;
    }
    fprintf(out, "%s\n", config->program_count == 0 ? " none; jobs with an image only" : "");
}

/* Each figure has a source. For a simulated device the source is the catalogue, except for figures
 * of the config. */
enum source {
    SOURCE_CONFIG,
    SOURCE_SHARE,
    SOURCE_MEASURED,
    SOURCE_TRIED,
    SOURCE_TRIAL,
    SOURCE_AGENT,
    SOURCE_MACHINE,
    SOURCE_PLUGIN,
    SOURCE_CATALOGUE
};

static const struct {
    const char *word, *phrase;
} sources[] = {
    [SOURCE_CONFIG] = {"config", "from the config, or its default"},
    [SOURCE_SHARE] = {"share", "of one slot: from the config, or a share of the machine"},
    [SOURCE_MEASURED] = {"measured", "measured here, on one core"},
    [SOURCE_TRIED] = {"measured", "measured here, in a trial jail with one core"},
    [SOURCE_TRIAL] = {"trial", "found out by a trial jail"},
    [SOURCE_AGENT] = {"agent", "what this agent runs"},
    [SOURCE_MACHINE] = {"machine", "read from the machine"},
    [SOURCE_PLUGIN] = {"plugin", "declared: the plug-in says so"},
    [SOURCE_CATALOGUE] = {"catalogue", "declared: from the catalogue, for a simulated device"},
};

static bool is_measured(const struct offer *offer, const char *name)
{
    bool is = false;
    for (size_t i = 0; i < offer->device.attribute_count; i++) {
        is = is || (strcmp(offer->attributes[i].name, POLICY_MEASURED) == 0 &&
                    strcmp(offer->attributes[i].text, name) == 0);
    }
    return is;
}

static bool is_simulated(const struct offer *offer)
{
    for (size_t i = 0; i < offer->device.attribute_count; i++) {
        if (strcmp(offer->attributes[i].name, "simulated") == 0) {
            return offer->attributes[i].number != 0;
        }
    }
    return false;
}

/* Returns true for an attribute of the device that its plug-in tells. */
static bool is_said(const struct plugin_description *description, const char *name)
{
    return strcmp(name, "memory") == 0 ? description->memory_bytes > 0
                                       : strcmp(name, "disk") != 0 && strcmp(name, "folders") != 0;
}

static enum source source_of(const struct offer *offer, const char *name)
{
    static const struct {
        const char *name;
        enum source source;
    } everywhere[] = {
        {"label", SOURCE_CONFIG},        {"region", SOURCE_CONFIG},   {"program", SOURCE_CONFIG},
        {"simulated", SOURCE_CONFIG},    {"isolation", SOURCE_TRIAL}, {"executor", SOURCE_AGENT},
        {POLICY_MEASURED, SOURCE_AGENT}, {"terminal", SOURCE_AGENT},  {"api", SOURCE_AGENT},
        {"challenge", SOURCE_AGENT},     {"engine", SOURCE_TRIAL},    {"backend", SOURCE_CONFIG},
        {"landlock", SOURCE_TRIAL},      {"cgroup", SOURCE_TRIAL},
    };
    static const struct {
        const char *name;
        enum source source;
    } here[] = {
        {"cores", SOURCE_CONFIG},
        {"power_mw", SOURCE_CONFIG},
        {"memory", SOURCE_SHARE},
    };
    for (size_t i = 0; i < sizeof everywhere / sizeof everywhere[0]; i++) {
        if (strcmp(everywhere[i].name, name) == 0) {
            return everywhere[i].source;
        }
    }
    if (is_simulated(offer)) {
        return SOURCE_CATALOGUE;
    }
    if (is_measured(offer, name)) {
        return offer->kernel_device != NULL || offer->model_device != NULL ? SOURCE_TRIED
                                                                           : SOURCE_MEASURED;
    }
    if (offer->plugin != NULL && is_said(&offer->plugin->description, name)) {
        return SOURCE_PLUGIN;
    }
    if (offer->model_device != NULL &&
        (strcmp(name, "kind") == 0 || strcmp(name, "instrument") == 0 ||
         strcmp(name, "vendor") == 0)) {
        return SOURCE_TRIAL;
    }
    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++) {
        if (strcmp(here[i].name, name) == 0) {
            return here[i].source;
        }
    }
    return SOURCE_MACHINE;
}

static void figure_text(const struct attribute *attribute, char ret_text[UNITS_TEXT_SIZE])
{
    const char *unit = strcmp(attribute->name, "gflops") == 0          ? " GFLOPS"
                       : strncmp(attribute->name, "gemm_fp32", 9) == 0 ? " MFLOPS"
                       : strcmp(attribute->name, "power_mw") == 0      ? " mW"
                                                                       : "";
    if (strcmp(attribute->name, "simulated") == 0) { /* the form that `needs:` uses */
        (void)snprintf(ret_text, UNITS_TEXT_SIZE, "%s", attribute->number != 0 ? "true" : "false");
        return;
    }
    requirement_figure(attribute->name, attribute->number, ret_text);
    size_t used = strlen(ret_text);
    (void)snprintf(ret_text + used, UNITS_TEXT_SIZE - used, "%s", unit);
}

/* Returns the measured figure behind an attribute, or NULL. */
static const struct probe_figure *figure_behind(const struct profile *profile, const char *name)
{
    return strcmp(name, "bandwidth") == 0                                ? &profile->bandwidth_bytes
           : strcmp(name, "gemm_fp32") == 0 || strcmp(name, "fp32") == 0 ? &profile->gemm_mflops
           : strcmp(name, "gflops") == 0 || strcmp(name, "fp64") == 0    ? &profile->mflops
                                                                         : NULL;
}

/* Writes the day of a measured figure, or "" when there is none. */
static void measured_text(const struct profile *profile, const char *name,
                          char ret_text[MEASURED_SIZE])
{
    const struct probe_figure *figure = figure_behind(profile, name);
    ret_text[0] = '\0';
    if (figure == NULL || figure->value <= 0) {
        return;
    }
    char day[PROBE_DAY_SIZE];
    probe_day(figure->at_s, day);
    int used = snprintf(ret_text, MEASURED_SIZE, ", %s", day);
    if (probe_doubtful(figure)) {
        (void)snprintf(ret_text + used, MEASURED_SIZE - (size_t)used,
                       "; %lld%% of that now: delete profile.json if the machine is not busy",
                       (long long)(figure->latest * 100 / figure->value));
    }
}

/* Prints all attributes that a job may ask for, except programs, which have a list of their own.
 * The line of a measured figure says when the figure was measured. */
static void print_attributes(FILE *out, const struct offer *offer, const struct profile *profile)
{
    for (size_t i = 0; i < offer->device.attribute_count; i++) {
        const struct attribute *attribute = &offer->attributes[i];
        char figure[UNITS_TEXT_SIZE] = "";
        if (strcmp(attribute->name, "program") == 0 ||
            strcmp(attribute->name, POLICY_MEASURED) == 0) {
            continue;
        }
        if (!attribute->is_text) {
            figure_text(attribute, figure);
        }
        char measured[MEASURED_SIZE] = "";
        enum source source = source_of(offer, attribute->name);
        if (source == SOURCE_MEASURED) {
            measured_text(profile, attribute->name, measured);
        }
        fprintf(out, "    %-12s %-24s %s%s\n", attribute->name,
                attribute->is_text ? attribute->text : figure, sources[source].phrase, measured);
    }
}

static void print_conditions(FILE *out, const struct agent_conditions *conditions)
{
    char hours[HOURS_ALL_TEXT_SIZE];
    for (uint32_t i = 0; i < conditions->to_count; i++) {
        fprintf(out, "%s%s%s", i == 0 ? "  to           " : ", ", conditions->to[i],
                i + 1 == conditions->to_count ? "\n" : "");
    }
    if (conditions->hours.count > 0) {
        hours_text(&conditions->hours, hours);
        fprintf(out, "  %-12s %s\n", "hours", hours);
    }
    if (conditions->daily_ms > 0) {
        char daily[UNITS_TEXT_SIZE];
        hours_offset_text(conditions->hours.offset_min, hours);
        units_duration_text(conditions->daily_ms * NS_PER_MS, daily);
        fprintf(out, "  %-12s %s of slots (days of UTC%s)\n", "daily", daily, hours);
    }
}

static void print_offer(FILE *out, const struct setup *setup, const struct offer *offer)
{
    char money[UNITS_TEXT_SIZE];
    units_money_text(offer->ask.price_micro, money);
    fprintf(out, "Would be offered\n");
    fprintf(out, "  %-12s %s\n", "name", offer->device.label);
    fprintf(out, "  %-12s %u\n", "slots", offer->device.slots);
    if (offer->cpu_percent < 100) {
        fprintf(out, "  %-12s %u%% of each core; measured figures are this share of a core's\n",
                "cpu", offer->cpu_percent);
    }
    fprintf(out, "  %-12s %s credits per slot-hour%s\n", "price", money,
            offer->ask.price_micro == 0 ? " (a donation)" : "");
    print_conditions(out, &offer->ask.conditions);
    print_size(out, "memory", offer->memory_bytes);
    print_size(out, "disk", offer->disk_bytes);
    fprintf(out, "  %-12s what jobs may ask for, and where it is from\n", "attributes");
    print_attributes(out, offer, &setup->profile);
    if (!is_simulated(offer) && offer->kernel_device == NULL && offer->plugin == NULL &&
        offer->model_device == NULL) {
        print_programs(out, &setup->config);
    }
}

/* Prints every device of one interface, under the number that the config takes. */
static void print_kernel_devices(FILE *out, const struct kernel_device_list *list)
{
    const char *name = kernel_op_api_name(list->api);
    for (size_t i = 0; i < list->count; i++) {
        const struct kernel_device *device = &list->items[i];
        char memory[UNITS_TEXT_SIZE];
        char below[EXPECTED_TEXT_SIZE];
        units_bytes_short((int64_t)device->memory_bytes, memory);
        fprintf(out, "  %-12s %zu: %s\n", i == 0 ? name : "", i, device->name);
        fprintf(out, "  %-12s    %s of %s, driver %s; %s, %u compute unit%s%s%s%s%s%s%s%s%s%s%s\n",
                "", device->kind, device->platform, device->driver, memory, device->compute_units,
                text_plural(device->compute_units), device->target[0] != '\0' ? ", " : "",
                device->target, device->has_fp64 ? ", fp64" : "", device->has_fp16 ? ", fp16" : "",
                device->unusable[0] != '\0' ? "; not usable: " : "", device->unusable,
                device->no_gemm[0] != '\0' ? "; computes no matrices: " : "", device->no_gemm,
                device->library[0] != '\0' ? "; matrices by " : "", device->library);
        if (expected_tell(device, below)) {
            fprintf(out, "  %-12s    %s\n", "", below);
        }
        if (kernel_device_shows_others(device)) {
            fprintf(out, "  %-12s    its own file is not known: a jail on it sees all GPUs\n", "");
        }
    }
    if (list->count == 0) {
        fprintf(out, "  %-12s no devices: %s\n", name, list->problem);
    }
}

/* Adds a figure of the device's state, when the plug-in told it. */
static void print_state(FILE *out, const char *name, double figure, const char *unit)
{
    if (figure >= 0) {
        fprintf(out, "; %s %.3g%s", name, figure, unit);
    }
}

/* Prints every device of the config that a plug-in attaches, or why it is not offered. */
static void print_plugins(FILE *out, const struct plugin_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct plugin_device *device = &list->items[i];
        const struct plugin_figures *figures = &device->figures;
        fprintf(out, "  %-12s %s: %s\n", i == 0 ? "plug-ins" : "", device->name,
                device->program.path);
        if (device->unusable[0] != '\0') {
            fprintf(out, "  %-12s    not offered: %s\n", "", device->unusable);
            continue;
        }
        fprintf(out, "  %-12s    %s, of kind %s", "", device->description.name,
                device->description.kind);
        print_state(out, "power", figures->power_w, " W");
        print_state(out, "temperature", figures->temperature_c, " C");
        print_state(out, "in use", figures->utilization * 100, " %");
        print_state(out, "memory used", figures->memory_used, " bytes");
        fprintf(out, "\n");
    }
}

static void print_machine(FILE *out, const struct machine *machine)
{
    fprintf(out, "Machine\n");
    fprintf(out, "  %-12s %u core%s, %u thread%s, %u package%s, %u memory node%s\n", "found",
            machine->cores, text_plural(machine->cores), machine->threads,
            text_plural(machine->threads), machine->packages, text_plural(machine->packages),
            machine->numa_nodes, text_plural(machine->numa_nodes));
    print_size(out, "memory", machine->memory_bytes);
    print_size(out, "cache", machine->cache_bytes);
}

static void print_matrices(FILE *out, const struct setup *setup)
{
    if (setup->profile.gemm_mflops.value > 0) {
        fprintf(out, "  %-12s computed by %s\n", "matrices", setup->profile.engine);
    } else {
        fprintf(out, "  %-12s not computed: %s\n", "matrices", setup->no_tensor);
    }
}

static void print_wasm(FILE *out, const struct wasm_engine *engine)
{
    if (engine->unusable[0] == '\0') {
        fprintf(out, "  %-12s run by %s, %s; in %llu MiB of memory or more\n", "WASM", engine->path,
                engine->name, (unsigned long long)(wasm_engine_least(engine) >> 20));
    } else {
        fprintf(out, "  %-12s not run: %s\n", "WASM", engine->unusable);
    }
}

static void print_models(FILE *out, const struct machine *machine)
{
    const struct model_engine *engine = &machine->models;
    if (engine->unusable[0] == '\0') {
        fprintf(out, "  %-12s computed by %s%s%s\n", "ONNX models", engine->name,
                engine->library[0] != '\0' ? ", of " : "", engine->library);
    } else {
        fprintf(out, "  %-12s not computed: %s\n", "ONNX models", engine->unusable);
    }
    if (engine->providers[0] != '\0') {
        fprintf(out, "  %-12s    the library also names %s\n", "", engine->providers);
    }
    for (size_t i = 0; i < machine->model_devices.count; i++) {
        const struct model_device *device = &machine->model_devices.items[i];
        const bool is_usable = device->unusable[0] == '\0';
        fprintf(out, "  %-12s    %s: %s%s\n", "", device->name,
                is_usable ? "computed by " : "not offered: ",
                is_usable ? device->engine : device->unusable);
    }
}

static json_t *models_json(const struct machine *machine)
{
    const struct model_engine *engine = &machine->models;
    json_t *devices = json_array();
    for (size_t i = 0; i < machine->model_devices.count; i++) {
        const struct model_device *device = &machine->model_devices.items[i];
        (void)json_array_append_new(
            devices,
            json_pack("{s:s, s:s, s:s, s:s, s:I, s:s}", "name", device->name, "provider",
                      device->provider.name, "engine", device->engine, "kind", device->kind,
                      "mflops", (json_int_t)device->mflops, "unusable", device->unusable));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:o}", "library", engine->library, "engine",
                     engine->name, "unusable", engine->unusable, "providers", engine->providers,
                     "devices", devices);
}

static json_t *wasm_json(const struct wasm_engine *engine)
{
    const bool is_run = engine->unusable[0] == '\0';
    return json_pack("{s:s, s:s, s:I, s:s}", "path", engine->path, "engine", engine->name,
                     "memory_least", (json_int_t)(is_run ? wasm_engine_least(engine) : 0),
                     "unusable", engine->unusable);
}

static void print_isolation(FILE *out, const struct setup *setup)
{
    const struct isolation *isolation = &setup->isolation;
    fprintf(out, "Isolation\n");
    fprintf(out, "  %-12s %d%s\n", "level", isolation->level,
            isolation->level == 0 ? " (no jobs are run)" : "");
    fprintf(out, "  %-12s namespaces %s, seccomp %s, Landlock ABI %d\n", "walls",
            yes(isolation->namespaces), yes(isolation->seccomp), isolation->landlock_abi);
    fprintf(out, "  %-12s version %d; memory %s, processes %s, CPU %s\n", "cgroup",
            isolation->cgroup_version, yes(isolation->memory_enforced),
            yes(isolation->processes_enforced), yes(isolation->cpu_enforced));
    if (setup->no_cgroups[0] != '\0') {
        fprintf(out, "  %-12s no control groups: %s\n", "", setup->no_cgroups);
    }
    for (size_t i = 0; i < isolation->warning_count; i++) {
        fprintf(out, "  %-12s %s\n", "warning", isolation->warnings[i]);
    }
}

void report_text(FILE *out, const struct setup *setup, const struct offers *offers,
                 const char *refusal)
{
    for (size_t i = 0; offers != NULL && i < offers->count; i++) {
        print_offer(out, setup, &offers->items[i]);
    }
    if (offers == NULL) {
        fprintf(out, "Nothing would be offered\n  %s\n", refusal);
    }
    print_machine(out, &setup->machine);
    print_matrices(out, setup);
    print_wasm(out, &setup->machine.wasm);
    print_models(out, &setup->machine);
    for (enum kernel_api api = 0; api < KERNEL_APIS; api++) {
        print_kernel_devices(out, &setup->machine.kernel_devices[api]);
    }
    print_plugins(out, &setup->machine.plugins);
    print_isolation(out, setup);
    if (offers != NULL) {
        /* The market alone knows what others ask, and the owner alone knows what power costs
         * here. */
        fprintf(out, "Price\n  the price above is from the config, and no measurement suggests it; "
                     "in a market,\n  `bourse-provider why` compares it with what others ask and "
                     "what waiting jobs pay\n");
    }
}

/* ---------------------------------------------------------------- the JSON report */

static json_t *attribute_json(const struct offer *offer, const struct attribute *attribute)
{
    const char *source = sources[source_of(offer, attribute->name)].word;
    return attribute->is_text ? json_pack("{s:s, s:s, s:s}", "name", attribute->name, "text",
                                          attribute->text, "source", source)
                              : json_pack("{s:s, s:I, s:s}", "name", attribute->name, "number",
                                          (json_int_t)attribute->number, "source", source);
}

bool report_conditions(const struct agent_conditions *conditions, json_t *object)
{
    json_t *to = json_array();
    json_t *windows = json_array();
    char text[HOURS_TEXT_SIZE];
    for (uint32_t i = 0; i < conditions->to_count; i++) {
        (void)json_array_append_new(to, json_string(conditions->to[i]));
    }
    for (uint32_t i = 0; i < conditions->hours.count; i++) {
        hours_window_text(&conditions->hours.windows[i], text);
        (void)json_array_append_new(windows, json_string(text));
    }
    hours_offset_text(conditions->hours.offset_min, text);
    return json_object_set_new(object, "to", to) == 0 &&
           json_object_set_new(object, "hours", windows) == 0 &&
           json_object_set_new(object, "daily_ms",
                               json_integer((json_int_t)conditions->daily_ms)) == 0 &&
           json_object_set_new(object, "utc_offset", json_string(text)) == 0;
}

static json_t *offer_json(const struct offer *offer)
{
    char device[33];
    text_hex(offer->device.device.bytes, sizeof offer->device.device.bytes, device);
    json_t *attributes = json_array();
    for (size_t i = 0; i < offer->device.attribute_count; i++) {
        (void)json_array_append_new(attributes, attribute_json(offer, &offer->attributes[i]));
    }
    json_t *made = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "device", device, "label",
        offer->device.label, "instrument", offer->device.instrument, "slots",
        (json_int_t)offer->device.slots, "price_micro", (json_int_t)offer->ask.price_micro,
        "memory_bytes", (json_int_t)offer->memory_bytes, "disk_bytes",
        (json_int_t)offer->disk_bytes, "processes", (json_int_t)offer->processes, "cpu_percent",
        (json_int_t)offer->cpu_percent, "attributes", attributes);
    (void)report_conditions(&offer->ask.conditions, made); /* NULL when memory is short */
    return made;
}

/* Makes one entry for each device, and none when nothing can be offered. */
static json_t *offers_json(const struct offers *offers)
{
    json_t *list = json_array();
    for (size_t i = 0; offers != NULL && i < offers->count; i++) {
        (void)json_array_append_new(list, offer_json(&offers->items[i]));
    }
    return list;
}

static json_t *machine_json(const struct machine *machine)
{
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "model", machine->model, "vendor",
        machine->vendor, "arch", machine->arch, "instrument", machine->instrument, "packages",
        (json_int_t)machine->packages, "cores", (json_int_t)machine->cores, "threads",
        (json_int_t)machine->threads, "numa_nodes", (json_int_t)machine->numa_nodes, "memory_bytes",
        (json_int_t)machine->memory_bytes, "cache_bytes", (json_int_t)machine->cache_bytes);
}

static json_t *kernel_devices_json(const struct kernel_device_list *list)
{
    json_t *devices = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const struct kernel_device *device = &list->items[i];
        char below[EXPECTED_TEXT_SIZE] = "";
        (void)expected_tell(device, below);
        (void)json_array_append_new(
            devices, json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:b, "
                               "s:s, s:s, s:s, s:s, s:s, s:b}",
                               "number", (json_int_t)device->index, "target", device->target,
                               "name", device->name, "vendor", device->vendor, "platform",
                               device->platform, "driver", device->driver, "kind", device->kind,
                               "memory_bytes", (json_int_t)device->memory_bytes, "local_bytes",
                               (json_int_t)device->local_bytes, "compute_units",
                               (json_int_t)device->compute_units, "work_group",
                               (json_int_t)device->work_group, "fp64", (int)device->has_fp64,
                               "fp16", (int)device->has_fp16, "unusable", device->unusable,
                               "no_matrices", device->no_gemm, "library", device->library,
                               "no_library", device->no_library, "below_catalogue", below,
                               "shows_others", (int)kernel_device_shows_others(device)));
    }
    return json_pack("{s:o, s:s}", "devices", devices, "problem", list->problem);
}

static json_t *state_json(double figure)
{
    return figure >= 0 ? json_real(figure) : json_null();
}

static json_t *plugins_json(const struct plugin_list *list)
{
    json_t *devices = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const struct plugin_device *device = &list->items[i];
        const struct plugin_figures *figures = &device->figures;
        const bool is_known = device->unusable[0] == '\0';
        (void)json_array_append_new(
            devices,
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "name", device->name, "path",
                      device->program.path, "model", device->description.name, "kind",
                      device->description.kind, "unusable", device->unusable, "power_w",
                      state_json(is_known ? figures->power_w : -1), "temperature_c",
                      state_json(is_known ? figures->temperature_c : -1), "utilization",
                      state_json(is_known ? figures->utilization : -1), "memory_used",
                      state_json(is_known ? figures->memory_used : -1)));
    }
    return devices;
}

static json_t *isolation_json(const struct setup *setup)
{
    const struct isolation *isolation = &setup->isolation;
    json_t *warnings = json_array();
    for (size_t i = 0; i < isolation->warning_count; i++) {
        (void)json_array_append_new(warnings, json_string(isolation->warnings[i]));
    }
    return json_pack(
        "{s:i, s:s, s:b, s:b, s:i, s:i, s:b, s:b, s:b, s:s, s:o}", "level", isolation->level,
        "refusal", isolation->refusal, "namespaces", (int)isolation->namespaces, "seccomp",
        (int)isolation->seccomp, "landlock_abi", isolation->landlock_abi, "cgroup_version",
        isolation->cgroup_version, "memory_enforced", (int)isolation->memory_enforced,
        "processes_enforced", (int)isolation->processes_enforced, "cpu_enforced",
        (int)isolation->cpu_enforced, "no_cgroups", setup->no_cgroups, "warnings", warnings);
}

bool report_json(FILE *out, const struct setup *setup, const struct offers *offers,
                 const char *refusal)
{
    const struct profile *profile = &setup->profile;
    json_t *root = json_pack(
        "{s:i, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:s}}",
        "version", REPORT_VERSION, "name", setup->config.name, "offers", offers_json(offers),
        "refusal", offers == NULL ? refusal : "", "machine", machine_json(&setup->machine),
        "opencl", kernel_devices_json(&setup->machine.kernel_devices[KERNEL_OPENCL]), "cuda",
        kernel_devices_json(&setup->machine.kernel_devices[KERNEL_CUDA]), "plugins",
        plugins_json(&setup->machine.plugins), "wasm", wasm_json(&setup->machine.wasm), "onnx",
        models_json(&setup->machine), "isolation", isolation_json(setup), "profile", "mflops",
        (json_int_t)profile->mflops.value, "mflops_at_s", (json_int_t)profile->mflops.at_s,
        "bandwidth_bytes", (json_int_t)profile->bandwidth_bytes.value, "bandwidth_at_s",
        (json_int_t)profile->bandwidth_bytes.at_s, "gemm_fp32_mflops",
        (json_int_t)profile->gemm_mflops.value, "gemm_at_s", (json_int_t)profile->gemm_mflops.at_s,
        "gemm_engine", profile->engine);
    bool good = root != NULL && json_dumpf(root, out, JSON_COMPACT) == 0;
    if (good) {
        fputc('\n', out);
    }
    json_decref(root);
    return good;
}
