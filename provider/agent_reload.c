#include "provider/agent_reload.h"

#include "protocol/identity.h"
#include "provider/agent_internal.h"
#include "provider/setup.h"
#include "runtime/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A reading is large, so it is on the heap. */
struct reading {
    struct config config;
    struct offers offers;
};

static bool attribute_equal(const struct attribute *left, const struct attribute *right)
{
    return strcmp(left->name, right->name) == 0 && left->is_text == right->is_text &&
           (left->is_text ? strcmp(left->text, right->text) == 0 : left->number == right->number);
}

static bool device_equal(const struct agent_device *left, const struct agent_device *right)
{
    bool equal = id128_equal(&left->device, &right->device) && left->slots == right->slots &&
                 strcmp(left->label, right->label) == 0 &&
                 strcmp(left->instrument, right->instrument) == 0 &&
                 left->attribute_count == right->attribute_count;
    for (size_t i = 0; equal && i < left->attribute_count; i++) {
        equal = attribute_equal(&left->attributes[i], &right->attributes[i]);
    }
    return equal;
}

static bool offer_equal(const struct offer *left, const struct offer *right)
{
    return device_equal(&left->device, &right->device) &&
           left->memory_bytes == right->memory_bytes && left->disk_bytes == right->disk_bytes &&
           left->processes == right->processes && left->held_bytes == right->held_bytes &&
           left->first_core == right->first_core && left->simulates == right->simulates &&
           left->kernel_device == right->kernel_device && left->plugin == right->plugin &&
           left->model_device == right->model_device;
}

/* ---------------------------------------------------------------- keys */

static bool visible_differs(const struct config *old, const struct config *now)
{
    bool differs = old->visible_count != now->visible_count;
    for (size_t i = 0; !differs && i < old->visible_count; i++) {
        differs = strcmp(old->visible[i], now->visible[i]) != 0;
    }
    return differs;
}

static bool programs_differ(const struct config *old, const struct config *now)
{
    bool differs = old->program_count != now->program_count;
    for (size_t i = 0; !differs && i < old->program_count; i++) {
        differs = strcmp(old->programs[i].name, now->programs[i].name) != 0 ||
                  strcmp(old->programs[i].path, now->programs[i].path) != 0;
    }
    return differs;
}

/* The terms of the entry's ask do not count. */
static bool entry_differs(const struct config_device *old, const struct config_device *now)
{
    return old->simulates != now->simulates || strcmp(old->kernel, now->kernel) != 0 ||
           old->kernel_api != now->kernel_api || old->held_bytes != now->held_bytes ||
           old->kernel_memory.bytes != now->kernel_memory.bytes ||
           old->kernel_memory.percent != now->kernel_memory.percent ||
           !plugin_program_equal(&old->plugin, &now->plugin) ||
           !model_provider_equal(&old->provider, &now->provider) ||
           strcmp(old->name, now->name) != 0 || old->slots != now->slots ||
           old->memory_bytes != now->memory_bytes || old->disk_bytes != now->disk_bytes ||
           old->processes != now->processes || old->power_w != now->power_w;
}

static bool devices_differ(const struct config *old, const struct config *now)
{
    bool differs = old->device_count != now->device_count;
    for (size_t i = 0; !differs && i < old->device_count; i++) {
        differs = entry_differs(&old->devices[i], &now->devices[i]);
    }
    return differs;
}

static const struct {
    const char *name;
    enum agent_reload_effect effect;
} effects[] = {
    {"price", AGENT_RELOAD_OFFERED},
    {"term", AGENT_RELOAD_OFFERED},
    {"to", AGENT_RELOAD_OFFERED},
    {"hours", AGENT_RELOAD_OFFERED},
    {"daily", AGENT_RELOAD_OFFERED},
    {"utc_offset", AGENT_RELOAD_OFFERED},
    {"interruptible", AGENT_RELOAD_OFFERED},
    {"idle", AGENT_RELOAD_APPLIED},
    {"gpu", AGENT_RELOAD_APPLIED},
    {"network", AGENT_RELOAD_APPLIED},
    {"name", AGENT_RELOAD_DEVICE},
    {"region", AGENT_RELOAD_DEVICE},
    {"slots", AGENT_RELOAD_DEVICE},
    {"memory", AGENT_RELOAD_DEVICE},
    {"disk", AGENT_RELOAD_DEVICE},
    {"processes", AGENT_RELOAD_DEVICE},
    {"power_w", AGENT_RELOAD_DEVICE},
    {"programs", AGENT_RELOAD_DEVICE},
    {"devices", AGENT_RELOAD_DEVICE},
    {"wasm", AGENT_RELOAD_DEVICE},
    {"onnx", AGENT_RELOAD_DEVICE},
    {"market", AGENT_RELOAD_RESTART},
    {"user", AGENT_RELOAD_RESTART},
    {"spool", AGENT_RELOAD_RESTART},
    {"cache", AGENT_RELOAD_RESTART},
    {"cpu", AGENT_RELOAD_RESTART},
    {"visible", AGENT_RELOAD_RESTART},
    {"image_files", AGENT_RELOAD_RESTART},
    {"image_size", AGENT_RELOAD_RESTART},
};
static_assert(sizeof effects / sizeof effects[0] == CONFIG_KEYS, "a key has no effect");

enum agent_reload_effect agent_reload_effect(const char *key)
{
    size_t place = 0;
    while (place < CONFIG_KEYS && strcmp(effects[place].name, key) != 0) {
        place++;
    }
    assert(place < CONFIG_KEYS);
    return effects[place].effect;
}

const char *agent_reload_waiting(const struct config *old, const struct config *now,
                                 bool skips_devices)
{
    const bool had_network = old->network.rate_bytes != 0 || old->network.month_bytes != 0;
    const bool has_network = now->network.rate_bytes != 0 || now->network.month_bytes != 0;
    const struct {
        const char *name;
        bool waits;
    } keys[] = {
        {"market", strcmp(old->market, now->market) != 0},
        {"user", strcmp(old->user, now->user) != 0},
        {"spool", strcmp(old->spool, now->spool) != 0},
        {"cache", old->cache_bytes != now->cache_bytes},
        {"cpu", old->cpu_percent != now->cpu_percent},
        {"visible", visible_differs(old, now)},
        {"image_files", old->image_files != now->image_files},
        {"image_size", old->image_bytes != now->image_bytes},
        {"idle",
         old->idle.is_set != now->idle.is_set || strcmp(old->idle_root, now->idle_root) != 0},
        {"network", !had_network && has_network},
        {"name", strcmp(old->name, now->name) != 0},
        {"region", strcmp(old->region, now->region) != 0},
        {"slots", old->slots != now->slots},
        {"memory", old->memory_bytes != now->memory_bytes},
        {"disk", old->disk_bytes != now->disk_bytes},
        {"processes", old->processes != now->processes},
        {"power_w", old->power_w != now->power_w},
        {"programs", programs_differ(old, now)},
        {"devices", devices_differ(old, now)},
        {"wasm", strcmp(old->wasm_engine, now->wasm_engine) != 0 ||
                     old->wasm_is_library != now->wasm_is_library ||
                     old->has_wasm != now->has_wasm},
        {"onnx",
         strcmp(old->onnx_library, now->onnx_library) != 0 || old->has_onnx != now->has_onnx},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const bool is_left_out =
            skips_devices && agent_reload_effect(keys[i].name) == AGENT_RELOAD_DEVICE;
        if (keys[i].waits && !is_left_out) {
            return keys[i].name;
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- the reload */

/* Names a device that differs; with another number of slots, which. */
static void name_device(const struct agent_device *old, const struct agent_device *now,
                        struct problem *ret_what)
{
    if (old->slots != now->slots) {
        problem_set(ret_what, "the device \"%s\" (from %u to %u slots)", old->label,
                    (unsigned)old->slots, (unsigned)now->slots);
    } else {
        problem_set(ret_what, "the device \"%s\"", old->label);
    }
}

/* Returns true when a part of the new reading waits for a restart. *ret_what then names the first
 * device, by its label, and the first key of the config. */
static bool waits_for_restart(const struct agent *agent, const struct reading *now,
                              struct problem *ret_what)
{
    const struct offers *old = agent->setup->offers;
    struct problem device = {.text = ""};
    if (now->offers.count != old->count) {
        problem_set(&device, "the number of devices");
    }
    for (size_t i = 0; i < old->count && device.text[0] == '\0'; i++) {
        if (!offer_equal(&old->items[i], &now->offers.items[i])) {
            name_device(&old->items[i].device, &now->offers.items[i].device, &device);
        }
    }
    const char *key =
        agent_reload_waiting(agent->setup->config, &now->config, device.text[0] != '\0');
    if (key == NULL) {
        *ret_what = device;
    } else {
        problem_set(ret_what, "%.300s%sthe key \"%s\"", device.text,
                    device.text[0] == '\0' ? "" : " and ", key);
    }
    return ret_what->text[0] != '\0';
}

static bool offer_again(struct agent *agent, int64_t now_ns, const struct offers *offers)
{
    struct agent_device devices[1 + CONFIG_DEVICES_MAX];
    struct agent_ask asks[1 + CONFIG_DEVICES_MAX];
    for (size_t i = 0; i < offers->count; i++) {
        devices[i] = offers->items[i].device;
        asks[i] = offers->items[i].ask;
    }
    return agent_session_offer(agent->session, now_ns, devices, offers->count, asks,
                               offers->count) == AGENT_OK;
}

static bool read_again(const struct agent *agent, struct reading *ret_now,
                       struct problem *ret_problem)
{
    const struct agent_setup *setup = agent->setup;
    return setup_config(setup->options, &ret_now->config, ret_problem) &&
           policy_offers(&ret_now->config, setup->machine, setup->profile, setup->isolation,
                         identity_key(setup->identity), &ret_now->offers, ret_problem);
}

void agent_reload(struct agent *agent, int64_t now_ns)
{
    struct problem problem = {""};
    struct reading *now = calloc(1, sizeof *now);
    if (now == NULL) {
        log_error("SIGHUP: out of memory; the offer stays as it was");
        return;
    }
    if (!read_again(agent, now, &problem)) {
        log_error("SIGHUP: %s; the offer stays as it was", problem.text);
        free(now);
        return;
    }
    if (waits_for_restart(agent, now, &problem)) {
        log_warning("SIGHUP: the config changes %s, and only a restart applies that; the offer "
                    "stays as it was",
                    problem.text);
    } else if (offer_again(agent, now_ns, &now->offers)) {
        agent_idle_apply(agent, now_ns, &now->config);
        log_info("SIGHUP: the config was read again; %zu device%s offered on its terms",
                 now->offers.count, now->offers.count == 1 ? " is" : "s are");
    } else {
        log_error("SIGHUP: out of memory; the offer stays as it was");
    }
    free(now);
}
