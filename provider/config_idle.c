/* This file reads `idle:`, in which the owner says when the machine counts as idle, `gpu:`, which
 * says the same of a CUDA device, and the limits `network:` and `cpu:`. */
#include "base/checked.h"
#include "base/text.h"
#include "formats/units.h"
#include "formats/yaml.h"
#include "provider/config.h"
#include "provider/config_internal.h"

#include <stdio.h>
#include <string.h>

enum { CELSIUS_LEAST = 30, CELSIUS_MOST = 120, NAME_MOST = 255, KEYS_MOST = 64 };
#define AFTER_MS INT64_C(300000)
/* The kernel notes a key at a terminal once in 8 s. With less than this, a person who types without
 * a rest would be taken for away. */
#define AFTER_LEAST_MS INT64_C(10000)
#define AFTER_MOST_MS INT64_C(86400000)
#define GIVE_BACK_MS INT64_C(600000)
#define GIVE_BACK_MOST_MS INT64_C(86400000)
#define GPU_AFTER_MS INT64_C(60000)
#define GPU_GIVE_BACK_MS INT64_C(30000)
#define POWER_FOR_MS INT64_C(10000)
#define POWER_FOR_MOST_MS INT64_C(3600000)
enum { WATTS_LEAST = 10, WATTS_MOST = 100000 };
#define SHARE_LEAST_BYTES (INT64_C(1) << 20)
#define NETWORK_LEAST_BYTES INT64_C(1000)
#define LOAD_MILLI INT64_C(500)
#define LOAD_MOST_MILLI INT64_C(4096000)

static bool is_any(struct yaml_value value)
{
    return yaml_kind(value) == YAML_KIND_TEXT &&
           strcmp(yaml_text(value, NAME_MOST, ""), "any") == 0;
}

/* Reads a number of cores such as 0.5, or `any`. */
static int64_t read_load_milli(struct yaml_value value)
{
    int64_t micro;
    if (!yaml_present(value)) {
        return LOAD_MILLI;
    }
    if (is_any(value)) {
        return -1;
    }
    const char *text = yaml_text(value, NAME_MOST, "0");
    if (units_money(text, &micro) != UNITS_OK || micro < 0 || micro / 1000 > LOAD_MOST_MILLI ||
        micro % 1000 != 0) {
        yaml_refuse(value, "a number of cores is needed, as in 0.5, with three decimals at most; "
                           "or `any`");
        return LOAD_MILLI;
    }
    return micro / 1000;
}

static void read_programs(struct yaml_value list, struct idle_terms *terms)
{
    if (!yaml_present(list) || !yaml_is_list(list, IDLE_PROGRAMS_MAX)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(list); i++) {
        struct yaml_value item = yaml_item(list, i);
        const char *name = config_word(item, NAME_MOST, "");
        if (name[0] == '\0' || strchr(name, '/') != NULL) {
            yaml_refuse(item, "the name of a program is needed, without its folder");
        }
        /* The kernel cuts the name of a running program, and so does this. */
        (void)snprintf(terms->programs[terms->program_count++], IDLE_PROGRAM_SIZE, "%.*s",
                       IDLE_PROGRAM_SIZE - 1, name);
    }
}

/* Reads a percentage from 1% to 100%. Returns 0 for any other text. */
static uint32_t read_percent(const char *text)
{
    char number[8];
    int64_t percent = 0;
    const size_t length = strlen(text);
    if (length < 2 || length > sizeof number || text[length - 1] != '%') {
        return 0;
    }
    (void)snprintf(number, sizeof number, "%.*s", (int)length - 1, text);
    return units_count(number, &percent) == UNITS_OK && percent <= 100 ? (uint32_t)percent : 0;
}

void config_read_share(struct yaml_value value, bool is_for_kernels, struct config_share *ret_share)
{
    int64_t bytes = 0;
    *ret_share = (struct config_share){.bytes = 0};
    if (!yaml_present(value)) {
        return;
    }
    if (!is_for_kernels) {
        yaml_refuse(value, "device_memory is a limit of a device offered by `cuda` or `opencl`");
    }
    const char *text = yaml_text(value, NAME_MOST, "");
    ret_share->percent = read_percent(text);
    if (ret_share->percent > 0) {
        return;
    }
    if (units_bytes(text, &bytes) != UNITS_OK || bytes < SHARE_LEAST_BYTES) {
        yaml_refuse(value, "a size of 1MiB or more is needed, as in 8GiB, or a share from 1%% to "
                           "100%%");
        return;
    }
    ret_share->bytes = (uint64_t)bytes;
}

uint64_t config_share_of(const struct config_share *share, uint64_t memory_bytes)
{
    const uint64_t part_bytes =
        memory_bytes / 100 * share->percent + memory_bytes % 100 * share->percent / 100;
    const uint64_t share_bytes = share->percent > 0 ? part_bytes
                                 : share->bytes > 0 ? share->bytes
                                                    : memory_bytes;
    return share_bytes < memory_bytes ? share_bytes : memory_bytes;
}

uint32_t config_read_cpu(struct yaml_value value)
{
    const uint32_t percent = read_percent(yaml_text(value, NAME_MOST, "100%"));
    if (percent == 0) {
        yaml_refuse(value, "a share of each core is needed, from 1%% to 100%%");
    }
    return percent;
}

/* Reads `pause`, `run`, or the percent from which on the battery is no sign of use, as in 60%. */
static void read_battery(struct yaml_value value, struct idle_terms *terms)
{
    terms->watches_battery = true;
    if (!yaml_present(value)) {
        return;
    }
    const char *text = yaml_text(value, NAME_MOST, "");
    terms->battery_percent = (int32_t)read_percent(text);
    if (terms->battery_percent == 0 && strcmp(text, "pause") != 0 && strcmp(text, "run") != 0) {
        yaml_refuse(value, "`pause`, `run` or a charge from 1%% to 100%% is needed");
    }
    terms->watches_battery = strcmp(text, "run") != 0;
}

/* Reads a limit of watts, or `any`; returns milliwatts, or 0 for any. */
static int64_t read_power(struct yaml_value value)
{
    return is_any(value) ? 0 : 1000 * yaml_integer(value, WATTS_LEAST, WATTS_MOST, 0);
}

static void read_root(struct config *config, struct yaml_value value)
{
    const char *root = yaml_text(value, sizeof config->idle_root - 1, "/");
    if (root[0] != '/') {
        yaml_refuse(value, "an absolute path is needed");
    }
    size_t length = strlen(root);
    while (length > 0 && root[length - 1] == '/') {
        length--;
    }
    (void)snprintf(config->idle_root, sizeof config->idle_root, "%.*s", (int)length, root);
}

void config_read_idle(struct config *config, struct yaml_value map)
{
    struct idle_terms *terms = &config->idle;
    if (!yaml_present(map) || !yaml_is_map(map, KEYS_MOST)) {
        return;
    }
    config_known_keys(map, CONFIG_MAP_IDLE);
    const struct yaml_value heat = yaml_key(map, "temperature");
    terms->is_set = true;
    terms->after_ns = NS_PER_MS * yaml_duration_ms(yaml_key(map, "after"), AFTER_LEAST_MS,
                                                   AFTER_MOST_MS, AFTER_MS);
    terms->give_back_ns = NS_PER_MS * yaml_duration_ms(yaml_key(map, "give_back"), 0,
                                                       GIVE_BACK_MOST_MS, GIVE_BACK_MS);
    terms->watches_input = yaml_boolean(yaml_key(map, "input"), true);
    terms->load_milli = read_load_milli(yaml_key(map, "load"));
    terms->watches_sessions = yaml_boolean(yaml_key(map, "sessions"), false);
    read_battery(yaml_key(map, "battery"), terms);
    terms->milliwatts = read_power(yaml_key(map, "power"));
    terms->power_for_ns = NS_PER_MS * yaml_duration_ms(yaml_key(map, "power_for"), 0,
                                                       POWER_FOR_MOST_MS, POWER_FOR_MS);
    terms->celsius = is_any(heat) ? 0 : (int32_t)yaml_integer(heat, CELSIUS_LEAST, CELSIUS_MOST, 0);
    read_programs(yaml_key(map, "programs"), terms);
    read_root(config, yaml_key(map, "root"));
}

void config_read_gpu(struct config *config, struct yaml_value map)
{
    static const char *const programs[] = {
        [GPU_PROGRAMS_COMPUTE] = "compute", [GPU_PROGRAMS_ANY] = "any", [GPU_PROGRAMS_RUN] = "run"};
    struct gpu_terms *terms = &config->gpu;
    if (!yaml_present(map) || !yaml_is_map(map, KEYS_MOST)) {
        return;
    }
    config_known_keys(map, CONFIG_MAP_GPU);
    const struct yaml_value heat = yaml_key(map, "temperature");
    terms->is_set = true;
    terms->programs = (enum gpu_programs)yaml_choice(yaml_key(map, "programs"), programs, 3,
                                                     GPU_PROGRAMS_COMPUTE);
    terms->celsius = is_any(heat) ? 0 : (int32_t)yaml_integer(heat, CELSIUS_LEAST, CELSIUS_MOST, 0);
    terms->milliwatts = read_power(yaml_key(map, "power"));
    terms->power_for_ns =
        NS_PER_MS * yaml_duration_ms(yaml_key(map, "power_for"), 0, POWER_FOR_MOST_MS, 0);
    terms->after_ns =
        NS_PER_MS * yaml_duration_ms(yaml_key(map, "after"), 0, AFTER_MOST_MS, GPU_AFTER_MS);
    terms->give_back_ns = NS_PER_MS * yaml_duration_ms(yaml_key(map, "give_back"), 0,
                                                       GIVE_BACK_MOST_MS, GPU_GIVE_BACK_MS);
}

/* Reads a limit of bytes, of a second or a month; returns 0 without the key, or for `any`. */
static int64_t read_limit(struct yaml_value value, enum units_kind kind, const char *example)
{
    int64_t bytes = 0;
    if (!yaml_present(value) || is_any(value)) {
        return 0;
    }
    const char *text = yaml_text(value, NAME_MOST, "");
    if (units_read(kind, text, &bytes) != UNITS_OK || bytes < NETWORK_LEAST_BYTES) {
        yaml_refuse(value, "%s is needed, of 1kB or more; or `any`", example);
        return 0;
    }
    return bytes;
}

void config_read_network(struct config *config, struct yaml_value map)
{
    if (!yaml_present(map) || !yaml_is_map(map, KEYS_MOST)) {
        return;
    }
    config_known_keys(map, CONFIG_MAP_NETWORK);
    config->network = (struct network_terms){
        .rate_bytes = read_limit(yaml_key(map, "rate"), UNITS_BANDWIDTH, "a rate as in 10MB/s"),
        .month_bytes = read_limit(yaml_key(map, "month"), UNITS_BYTES, "a size as in 50GiB")};
}

bool config_gpu_warning(const struct config *config, struct problem *ret_warning)
{
    const struct config_device *other = NULL; /* the first device of `opencl` */
    size_t other_count = 0;
    size_t watched_count = 0;
    for (size_t i = 0; i < config->device_count; i++) {
        const struct config_device *device = &config->devices[i];
        watched_count += config_device_is_of(device, KERNEL_CUDA);
        if (config_device_is_of(device, KERNEL_OPENCL)) {
            other = other == NULL ? device : other;
            other_count++;
        }
    }
    if (!config->gpu.is_set || (watched_count > 0 && other_count == 0)) {
        return false;
    }
    if (other == NULL) {
        problem_set(ret_warning, "`gpu:` has no effect: it is about devices offered by `cuda`, and "
                                 "`devices:` has none");
    } else {
        char more[32] = "";
        if (other_count > 1) {
            (void)snprintf(more, sizeof more, " and %zu more", other_count - 1);
        }
        problem_set(ret_warning,
                    "`gpu:` has no effect on the device \"%s\"%s, offered by `opencl`: only "
                    "devices offered by `cuda` are watched",
                    other->name, more);
    }
    return true;
}
