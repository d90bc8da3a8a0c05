#include "provider/config.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "formats/hours_text.h"
#include "formats/limits.h"
#include "formats/yaml.h"
#include "provider/config_internal.h"
#include "runtime/files.h"
#include "runtime/market.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CATALOGUE_IDS_MAX = 256, POWER_MOST_W = 1000000 };
#define GIB (INT64_C(1) << 30)
#define MIB (INT64_C(1) << 20)
#define PRICE_MOST INT64_C(1000000000000) /* a million credits per slot-hour */
#define TERM_LEAST_MS INT64_C(60000)
#define TERM_MOST_MS INT64_C(2592000000) /* 30 days */
#define NOTICE_MS INT64_C(30000)
#define NOTICE_MOST_MS INT64_C(86400000) /* a day: the market takes no more */
#define DAILY_LEAST_MS INT64_C(60000)    /* no lease is shorter than a minute */
#define MINIMUM_RUN_MS INT64_C(300000)
#define MINIMUM_RUN_MOST_MS INT64_C(604800000) /* a week, likewise */

/* ---------------------------------------------------------------- keys */

/* docs/provider.md and the manual page name the same keys. */
static const char *const file_keys[] = {
    "cpu",    "market",  "name",      "region",   "price",         "slots",
    "memory", "disk",    "processes", "term",     "interruptible", "to",
    "hours",  "daily",   "power_w",   "programs", "utc_offset",    "wasm",
    "onnx",   "visible", "user",      "cache",    "image_files",   "image_size",
    "spool",  "idle",    "gpu",       "network",  "devices",       NULL};
static_assert(sizeof file_keys / sizeof file_keys[0] == CONFIG_KEYS + 1, "CONFIG_KEYS is wrong");
static const char *const device_keys[] = {
    "name",         "price",         "slots",   "memory",  "disk",        "processes",
    "term",         "interruptible", "to",      "hours",   "daily",       "power_w",
    "simulate",     "opencl",        "cuda",    "plugin",  "nodes",       "device_memory",
    "device_cache", "onnx",          "library", "options", "environment", NULL};
static const char *const idle_keys[] = {"after",       "input",     "load",  "sessions",
                                        "programs",    "battery",   "power", "power_for",
                                        "temperature", "give_back", "root",  NULL};
static const char *const gpu_keys[] = {"programs", "temperature", "power", "power_for",
                                       "after",    "give_back",   NULL};
static const char *const network_keys[] = {"rate", "month", NULL};
static const char *const spot_keys[] = {"notice", "minimum_run", NULL};
static const char *const wasm_keys[] = {"engine", "wasmtime", NULL};
static const char *const onnx_keys[] = {"library", NULL};

const char *const *config_keys(enum config_map which)
{
    static const char *const *const lists[CONFIG_MAPS] = {
        [CONFIG_MAP_FILE] = file_keys,       [CONFIG_MAP_DEVICE] = device_keys,
        [CONFIG_MAP_IDLE] = idle_keys,       [CONFIG_MAP_GPU] = gpu_keys,
        [CONFIG_MAP_NETWORK] = network_keys, [CONFIG_MAP_SPOT] = spot_keys,
        [CONFIG_MAP_WASM] = wasm_keys,       [CONFIG_MAP_ONNX] = onnx_keys};
    return lists[which];
}

void config_known_keys(struct yaml_value map, enum config_map which)
{
    const char *const *keys = config_keys(which);
    size_t count = 0;
    while (keys[count] != NULL) {
        count++;
    }
    yaml_known_keys(map, keys, count);
}

const char *config_word(struct yaml_value value, size_t most_bytes, const char *fallback)
{
    const char *word = yaml_text(value, most_bytes, fallback);
    if (!text_is_plain(word, strlen(word))) {
        yaml_refuse(value, "control characters do not belong in a name");
    }
    return word;
}

/* ---------------------------------------------------------------- more devices */

static uint64_t read_memory(struct yaml_value value, uint64_t fallback)
{
    return (uint64_t)yaml_bytes(value, 16 * MIB, 4096 * GIB, (int64_t)fallback);
}

static uint64_t read_disk(struct yaml_value value, uint64_t fallback)
{
    return (uint64_t)yaml_bytes(value, 1 * MIB, 4096 * GIB, (int64_t)fallback);
}

/* Reads how many bytes of inputs a device holds for the next subtasks; 0: none. */
static uint64_t read_device_cache(struct yaml_value value)
{
    return yaml_present(value) ? (uint64_t)yaml_bytes(value, 0, 4096 * GIB, 0) : CONFIG_HELD_SHARE;
}

static uint32_t read_processes(struct yaml_value value, uint32_t fallback)
{
    return (uint32_t)yaml_integer(value, 4, FORMAT_PROCESSES, fallback);
}

/* The power of a simulated device is the catalogue's. */
static int64_t read_power_w(struct yaml_value map)
{
    const struct yaml_value value = yaml_key(map, "power_w");
    if (yaml_present(value) && yaml_present(yaml_key(map, "simulate"))) {
        yaml_refuse(value, "the power of a simulated device is the catalogue's");
    }
    return yaml_integer(value, 1, POWER_MOST_W, 0);
}

static int64_t read_term_ms(struct yaml_value value, int64_t fallback)
{
    return yaml_duration_ms(value, TERM_LEAST_MS, TERM_MOST_MS, fallback);
}

/* Reads a map of two times, which are both optional, or false. */
static struct config_spot read_spot(struct yaml_value value, struct config_spot fallback)
{
    if (!yaml_present(value)) {
        return fallback;
    }
    if (yaml_kind(value) != YAML_KIND_MAP) {
        if (yaml_boolean(value, false)) {
            yaml_refuse(value, "say how: {notice: 30s, minimum_run: 5m}");
        }
        return (struct config_spot){.is_interruptible = false};
    }
    config_known_keys(value, CONFIG_MAP_SPOT);
    return (struct config_spot){
        .is_interruptible = true,
        .notice_ms = yaml_duration_ms(yaml_key(value, "notice"), 0, NOTICE_MOST_MS, NOTICE_MS),
        .minimum_run_ms = yaml_duration_ms(yaml_key(value, "minimum_run"), 0, MINIMUM_RUN_MOST_MS,
                                           MINIMUM_RUN_MS),
    };
}

static int64_t read_price_micro(struct yaml_value value, int64_t fallback)
{
    return yaml_money(value, 0, PRICE_MOST, fallback);
}

/* Reads `anyone`, or a list of names and keys. */
static void read_accounts(struct yaml_value value, struct agent_conditions *conditions)
{
    if (!yaml_present(value)) {
        return;
    }
    conditions->to_count = 0;
    if (yaml_kind(value) == YAML_KIND_TEXT) {
        if (strcmp(yaml_text(value, AGENT_TO_SIZE, ""), "anyone") != 0) {
            yaml_refuse(value, "a list of accounts is needed, as in [alice, bob], or `anyone`");
        }
        return;
    }
    if (!yaml_is_list(value, AGENT_TO_MOST)) {
        return;
    }
    if (yaml_count(value) == 0) {
        yaml_refuse(value, "a list of nobody: say `anyone`, or `pause` the agent");
    }
    for (size_t i = 0; i < yaml_count(value); i++) {
        const char *name = config_word(yaml_item(value, i), AGENT_TO_SIZE - 1, "");
        if (name[0] == '\0') {
            yaml_refuse(yaml_item(value, i), "an account has a name, or a key of 64 digits");
        }
        (void)snprintf(conditions->to[conditions->to_count++], AGENT_TO_SIZE, "%s", name);
    }
}

static void read_window(struct yaml_value value, struct hours *hours)
{
    struct problem problem = {""};
    const char *text = yaml_text(value, LIMIT_TEXT_BYTES, "00:00-24:00");
    if (!hours_read_window(text, &hours->windows[hours->count++], &problem)) {
        yaml_refuse(value, "%s", problem.text);
    }
}

/* Reads `always`, a window, or a list of windows. */
static void read_hours(struct yaml_value value, struct hours *hours)
{
    if (!yaml_present(value)) {
        return;
    }
    hours->count = 0;
    if (yaml_kind(value) != YAML_KIND_TEXT) {
        if (!yaml_is_list(value, HOURS_WINDOWS_MOST)) {
            return;
        }
        if (yaml_count(value) == 0) {
            yaml_refuse(value, "no hours at all: say `always`, or `pause` the agent");
        }
        for (size_t i = 0; i < yaml_count(value); i++) {
            read_window(yaml_item(value, i), hours);
        }
    } else if (strcmp(yaml_text(value, LIMIT_TEXT_BYTES, ""), "always") != 0) {
        read_window(value, hours);
    }
}

/* Reads slot-time a day, or `any`. A lease longer than the daily time would never be let. */
static int64_t read_daily_ms(struct yaml_value value, int64_t term_ms, int64_t fallback)
{
    int64_t daily_ms = fallback;
    if (yaml_present(value)) {
        const bool is_any = yaml_kind(value) == YAML_KIND_TEXT &&
                            strcmp(yaml_text(value, LIMIT_TEXT_BYTES, ""), "any") == 0;
        daily_ms = is_any ? 0 : yaml_duration_ms(value, DAILY_LEAST_MS, LIMIT_DAILY_MS, 0);
    }
    if (daily_ms > 0 && term_ms > daily_ms) {
        yaml_refuse(value, "less than `term`, the longest lease");
    }
    return daily_ms;
}

/* All devices share one offset, because the machine is in one place. */
static int32_t read_offset(struct yaml_value value)
{
    struct problem problem = {""};
    int32_t offset_min = 0;
    if (yaml_present(value) &&
        !hours_read_offset(yaml_text(value, LIMIT_TEXT_BYTES, "+00:00"), &offset_min, &problem)) {
        yaml_refuse(value, "%s", problem.text);
    }
    return offset_min;
}

static void read_conditions(struct yaml_value map, int32_t offset_min, int64_t term_ms,
                            const struct agent_conditions *fallback,
                            struct agent_conditions *ret_conditions)
{
    *ret_conditions = *fallback;
    read_accounts(yaml_key(map, "to"), ret_conditions);
    read_hours(yaml_key(map, "hours"), &ret_conditions->hours);
    ret_conditions->daily_ms = read_daily_ms(yaml_key(map, "daily"), term_ms, fallback->daily_ms);
    const bool has_clock = ret_conditions->hours.count > 0 || ret_conditions->daily_ms > 0;
    ret_conditions->hours.offset_min = has_clock ? offset_min : 0;
}

#define SIMULATED_NAME "sim." /* prefix that shows simulation in every list */

bool config_name_fits(const char *name, struct problem *ret_problem)
{
    static const struct config *const any = NULL;
    if (name[0] == '\0') {
        problem_set(ret_problem, "an empty name");
    } else if (strlen(name) >= sizeof any->name) {
        problem_set(ret_problem, "a name has at most %zu bytes", sizeof any->name - 1);
    } else if (!text_is_plain(name, strlen(name))) {
        problem_set(ret_problem, "control characters do not belong in a name");
    } else if (strncmp(name, SIMULATED_NAME, strlen(SIMULATED_NAME)) == 0) {
        problem_set(ret_problem,
                    "names that begin with \"" SIMULATED_NAME "\" are those of simulated devices");
    } else {
        return true;
    }
    return false;
}

static const char *read_name(struct yaml_value value, size_t most_bytes, const char *fallback)
{
    const char *name = config_word(value, most_bytes, fallback);
    if (name[0] == '\0') {
        yaml_refuse(value, "an empty name");
    }
    return name;
}

static void check_real(struct yaml_value value, const char *name)
{
    if (strncmp(name, SIMULATED_NAME, strlen(SIMULATED_NAME)) == 0) {
        yaml_refuse(value, "names that begin with \"" SIMULATED_NAME
                           "\" are those of simulated devices; give another `name`");
    }
}

static void read_simulated(struct yaml_value item, struct config_device *device)
{
    struct yaml_value simulate = yaml_key(item, "simulate");
    const char *id = yaml_text(simulate, sizeof device->name - 1, "");
    const char *ids[CATALOGUE_IDS_MAX];
    size_t count = 0;
    while (count < catalogue_count() && count < CATALOGUE_IDS_MAX) {
        ids[count] = catalogue_at(count)->id;
        count++;
    }
    device->simulates = catalogue_find(id);
    if (device->simulates == NULL) {
        const char *nearest = text_nearest(id, ids, count);
        yaml_refuse(simulate,
                    "no such device in the catalogue%s%s%s; `bourse devices --catalogue` "
                    "lists them",
                    nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                    nearest != NULL ? "\"?" : "");
        return;
    }
    (void)snprintf(
        device->name, sizeof device->name, SIMULATED_NAME "%s",
        read_name(yaml_key(item, "name"), sizeof device->name - sizeof SIMULATED_NAME, id));
}

int64_t config_power_mw(const struct config_device *device)
{
    const double watts = device->simulates != NULL
                             ? device->simulates->profile.figures[FIGURE_POWER].value
                             : (double)device->power_w;
    const int64_t power_mw = (int64_t)(watts * 1000 / device->slots);
    return watts > 0 && power_mw == 0 ? 1 : power_mw;
}

bool config_device_is_of(const struct config_device *device, enum kernel_api api)
{
    return device->kernel[0] != '\0' && device->kernel_api == api;
}

/* Returns the device for kernels that the entry offers, or what is not present. */
static struct yaml_value find_kernel_device(struct yaml_value item, enum kernel_api *ret_api)
{
    struct yaml_value opencl = yaml_key(item, "opencl");
    *ret_api = yaml_present(opencl) ? KERNEL_OPENCL : KERNEL_CUDA;
    return yaml_present(opencl) ? opencl : yaml_key(item, "cuda");
}

/* Reads which device for kernels the entry offers. Only a start knows the devices. */
static void read_kernel_device(struct yaml_value item, struct config_device *device)
{
    enum kernel_api api;
    struct yaml_value value = find_kernel_device(item, &api);
    const char *word = kernel_op_api_word(api);
    char name[16 + ATTRIBUTE_TEXT_SIZE];
    if (yaml_present(yaml_key(item, "simulate"))) {
        yaml_refuse(value, "a device is real or simulated: leave %s or simulate out", word);
    }
    if (api == KERNEL_OPENCL && yaml_present(yaml_key(item, "cuda"))) {
        yaml_refuse(value, "a device is reached by one interface: leave opencl or cuda out");
    }
    device->kernel_api = api;
    device->held_bytes = read_device_cache(yaml_key(item, "device_cache"));
    (void)snprintf(device->kernel, sizeof device->kernel, "%s",
                   read_name(value, sizeof device->kernel - 2 - strlen(word), ""));
    (void)snprintf(name, sizeof name, "%s-%s", word, device->kernel);
    (void)snprintf(device->name, sizeof device->name, "%s",
                   read_name(yaml_key(item, "name"), sizeof device->name - 1, name));
    check_real(yaml_key(item, "name"), device->name);
}

/* Returns true for an absolute path without a part that leads elsewhere. */
static bool is_straight(const char *path)
{
    const size_t length = strlen(path);
    return path[0] == '/' && strstr(path, "//") == NULL && strstr(path, "/./") == NULL &&
           strstr(path, "/../") == NULL && path[length - 1] != '/' &&
           (length < 3 || strcmp(path + length - 3, "/..") != 0);
}

size_t config_read_nodes(struct yaml_value list, char ret_nodes[][PLUGIN_NODE_SIZE])
{
    size_t count = 0;
    if (!yaml_present(list) || !yaml_is_list(list, PLUGIN_NODES_MAX)) {
        return 0;
    }
    for (size_t i = 0; i < yaml_count(list); i++) {
        const char *node = config_word(yaml_item(list, i), PLUGIN_NODE_SIZE - 1, "");
        if (strncmp(node, "/dev/", 5) != 0 || !is_straight(node)) {
            yaml_refuse(yaml_item(list, i), "a node is a device file, as in /dev/accel0");
        }
        (void)snprintf(ret_nodes[count++], PLUGIN_NODE_SIZE, "%s", node);
    }
    return count;
}

static void read_plugin(const struct config *config, struct yaml_value item,
                        struct plugin_program *ret_plugin)
{
    static const char *const others[] = {"simulate", "opencl", "cuda", "onnx"};
    struct yaml_value value = yaml_key(item, "plugin");
    struct yaml_value nodes = yaml_key(item, "nodes");
    size_t count = 0;
    *ret_plugin = (struct plugin_program){.node_count = 0};
    if (!yaml_present(value)) {
        if (yaml_present(nodes) && !yaml_present(yaml_key(item, "onnx"))) {
            yaml_refuse(nodes, "nodes are the device files of a plug-in or of a provider of ONNX "
                               "Runtime: name it with `plugin` or `onnx`");
        }
        return;
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (yaml_present(yaml_key(item, others[i]))) {
            yaml_refuse(value, "does not go with %s: a device is reached in one way", others[i]);
        }
    }
    for (size_t i = 0; i < config->device_count; i++) {
        count += config->devices[i].plugin.path[0] != '\0';
    }
    if (count == PLUGIN_DEVICES_MAX) {
        yaml_refuse(value, "more than %d devices with a plug-in", PLUGIN_DEVICES_MAX);
    }
    const char *path = config_word(value, PLUGIN_PATH_SIZE - 1, "");
    if (!is_straight(path)) {
        yaml_refuse(value, "a plug-in is named by its whole path, as in /opt/fpga/plugin");
    }
    (void)snprintf(ret_plugin->path, sizeof ret_plugin->path, "%s", path);
    ret_plugin->node_count = config_read_nodes(nodes, ret_plugin->nodes);
}

static void read_device(struct config *config, struct yaml_value item, int32_t offset_min)
{
    struct config_device *device = &config->devices[config->device_count];
    config_known_keys(item, CONFIG_MAP_DEVICE);
    read_plugin(config, item, &device->plugin);
    config_read_provider(config, item, &device->provider);
    enum kernel_api api;
    const bool is_for_kernels = yaml_present(find_kernel_device(item, &api));
    config_read_share(yaml_key(item, "device_memory"), is_for_kernels, &device->kernel_memory);
    if (is_for_kernels) {
        read_kernel_device(item, device);
    } else if (yaml_present(yaml_key(item, "device_cache"))) {
        yaml_refuse(yaml_key(item, "device_cache"),
                    "only a device of opencl or cuda holds inputs in its own memory");
    } else if (yaml_present(yaml_key(item, "simulate"))) {
        read_simulated(item, device);
    } else {
        (void)snprintf(device->name, sizeof device->name, "%s",
                       read_name(yaml_required(item, "name"), sizeof device->name - 1, ""));
        check_real(yaml_key(item, "name"), device->name);
    }
    device->price_micro = read_price_micro(yaml_key(item, "price"), config->price_micro);
    device->slots = (uint32_t)yaml_integer(yaml_key(item, "slots"), 1, FORMAT_SLOTS, 1);
    device->memory_bytes = read_memory(yaml_key(item, "memory"), config->memory_bytes);
    device->disk_bytes = read_disk(yaml_key(item, "disk"), config->disk_bytes);
    device->processes = read_processes(yaml_key(item, "processes"), config->processes);
    device->power_w = read_power_w(item);
    device->term_ms = read_term_ms(yaml_key(item, "term"), config->term_ms);
    read_conditions(item, offset_min, device->term_ms, &config->conditions, &device->conditions);
    device->spot = read_spot(yaml_key(item, "interruptible"), config->spot);
    /* The market knows the device by this name across restarts. */
    bool is_taken = device->name[0] == '\0' || strcmp(device->name, config->name) == 0;
    for (size_t i = 0; i < config->device_count; i++) {
        is_taken = is_taken || strcmp(device->name, config->devices[i].name) == 0;
    }
    if (is_taken) {
        yaml_refuse(item, "each device needs a name of its own");
    }
    config->device_count++;
}

static void read_devices(struct config *config, struct yaml_value list, int32_t offset_min)
{
    if (!yaml_present(list) || !yaml_is_list(list, CONFIG_DEVICES_MAX)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(list); i++) {
        if (!yaml_is_map(yaml_item(list, i), CONFIG_DEVICES_MAX)) {
            return;
        }
        read_device(config, yaml_item(list, i), offset_min);
    }
}

/* ---------------------------------------------------------------- the file */

/* Reads a path relative to the folder; refuses one that does not fit. */
static void read_path(struct yaml_value value, const char *folder, const char *fallback,
                      char *ret_path, size_t capacity)
{
    const char *name = yaml_text(value, capacity - 1, fallback);
    int written = name[0] == '/' ? snprintf(ret_path, capacity, "%s", name)
                                 : snprintf(ret_path, capacity, "%s/%s", folder, name);
    if (written < 0 || (size_t)written >= capacity) {
        yaml_refuse(value, "the path is longer than %zu bytes", capacity - 1);
    }
}

static void market_in_folder(char *path, size_t capacity)
{
    struct stat facts;
    size_t length = strlen(path);
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        (void)snprintf(path + length, capacity - length, "/%s", MARKET_FILE); /* cut: not found */
    }
}

static void read_keys(struct config *config, struct yaml_value root, const char *base)
{
    static const struct agent_conditions none;
    char host[ATTRIBUTE_TEXT_SIZE] = "host";
    (void)gethostname(host, sizeof host - 1); /* on failure the default stays */

    config_known_keys(root, CONFIG_MAP_FILE);
    read_path(yaml_key(root, "market"), base, MARKET_FILE, config->market, sizeof config->market);
    market_in_folder(config->market, sizeof config->market);
    read_path(yaml_key(root, "spool"), base, "spool", config->spool, sizeof config->spool);
    (void)snprintf(config->name, sizeof config->name, "%s",
                   read_name(yaml_key(root, "name"), sizeof config->name - 1, host));
    check_real(yaml_key(root, "name"), config->name);
    (void)snprintf(config->region, sizeof config->region, "%s",
                   config_word(yaml_key(root, "region"), sizeof config->region - 1, ""));
    (void)snprintf(config->user, sizeof config->user, "%s",
                   config_word(yaml_key(root, "user"), sizeof config->user - 1, CONFIG_USER));
    config->names_user = yaml_present(yaml_key(root, "user"));
    config->lines = (struct config_lines){.slots = yaml_line(yaml_key(root, "slots")),
                                          .memory = yaml_line(yaml_key(root, "memory")),
                                          .disk = yaml_line(yaml_key(root, "disk")),
                                          .user = yaml_line(yaml_key(root, "user")),
                                          .cpu = yaml_line(yaml_key(root, "cpu"))};
    config->price_micro = read_price_micro(yaml_key(root, "price"), CONFIG_PRICE_MICRO);
    config->slots = (uint32_t)yaml_integer(yaml_key(root, "slots"), 1, FORMAT_SLOTS, 0);
    config->memory_bytes = read_memory(yaml_key(root, "memory"), 0);
    config->disk_bytes = read_disk(yaml_key(root, "disk"), 0);
    config->processes = read_processes(yaml_key(root, "processes"), 256);
    config->cpu_percent = config_read_cpu(yaml_key(root, "cpu"));
    config->power_w = read_power_w(root);
    config->term_ms = read_term_ms(yaml_key(root, "term"), 0);
    const int32_t offset_min = read_offset(yaml_key(root, "utc_offset"));
    read_conditions(root, offset_min, config->term_ms, &none, &config->conditions);
    config->spot = read_spot(yaml_key(root, "interruptible"), config->spot);
    config->cache_bytes =
        (uint64_t)yaml_bytes(yaml_key(root, "cache"), 64 * MIB, 1024 * 1024 * GIB, 4 * GIB);
    config->image_files = (uint64_t)yaml_integer(yaml_key(root, "image_files"), 1,
                                                 LIMIT_IMAGE_FILES, LIMIT_IMAGE_FILES);
    config->image_bytes = (uint64_t)yaml_bytes(yaml_key(root, "image_size"), MIB, 1024 * 1024 * GIB,
                                               (int64_t)config->cache_bytes);
    config_read_idle(config, yaml_key(root, "idle"));
    config_read_gpu(config, yaml_key(root, "gpu"));
    config_read_network(config, yaml_key(root, "network"));
    config_read_programs(config, yaml_key(root, "programs"));
    config_read_visible(config, yaml_key(root, "visible"));
    config_show_programs(config, yaml_key(root, "programs"));
    config_read_wasm(config, yaml_key(root, "wasm"));
    config_read_onnx(config, yaml_key(root, "onnx"));
    read_devices(config, yaml_key(root, "devices"), offset_min);
}

static void folder_of(const char *file, char *ret_folder, size_t capacity)
{
    const char *slash = strrchr(file, '/');
    int length = slash == NULL ? 0 : (int)(slash - file);
    if (slash == NULL) {
        (void)snprintf(ret_folder, capacity, ".");
    } else {
        (void)snprintf(ret_folder, capacity, "%.*s", length == 0 ? 1 : length, file);
    }
}

bool config_read(const char *folder, const char *file, struct config *ret_config,
                 struct problem *ret_problem)
{
    struct config config = {.price_micro = 0};
    char path[CONFIG_PATH_SIZE];
    char base[CONFIG_PATH_SIZE];
    int written = file != NULL
                      ? snprintf(path, sizeof path, "%s", file)
                      : snprintf(path, sizeof path, "%s/%s", folder, MARKET_PROVIDER_CONFIG);
    if (written < 0 || (size_t)written >= sizeof path || strlen(folder) >= sizeof config.folder) {
        problem_set(ret_problem, "%.100s...: the path of the config file is too long",
                    file != NULL ? file : folder);
        return false;
    }
    (void)snprintf(config.folder, sizeof config.folder, "%s", folder);
    (void)snprintf(config.file, sizeof config.file, "%s", path);
    folder_of(path, base, sizeof base);

    uint8_t *text = NULL;
    size_t length = 0;
    if (file != NULL || access(path, F_OK) == 0) {
        if (!file_read_owned(path, FORMAT_FILE_BYTES, &text, &length, &config.hands, ret_problem)) {
            return false;
        }
    }
    CLEANUP(yaml_close)
    struct yaml_file *yaml =
        yaml_open(text == NULL ? "" : (const char *)text, length, path, ret_problem);
    bool good = yaml != NULL;
    if (good) {
        read_keys(&config, yaml_root(yaml), base);
        good = yaml_finished(yaml, ret_problem);
    }
    free(text);
    if (good) {
        *ret_config = config;
    }
    return good;
}

void config_place(const struct config *config, unsigned line, struct problem *problem)
{
    const struct problem what = *problem;
    if (line > 0) {
        problem_set(problem, "%.200s:%u: %.290s", config->file, line, what.text);
    }
}
