/* This file reads the config again while the agent runs. The terms of asks change at once. What a
 * device is and what jails were made for stays until a restart. */
#include "protocol/identity.h"
#include "provider/agent_internal.h"
#include "provider/setup.h"
#include "runtime/log.h"

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
           left->kernel_device == right->kernel_device && left->plugin == right->plugin;
}

static bool idle_equal(const struct idle_terms *left, const struct idle_terms *right)
{
    bool equal =
        left->is_set == right->is_set && left->after_ns == right->after_ns &&
        left->give_back_ns == right->give_back_ns && left->watches_input == right->watches_input &&
        left->watches_sessions == right->watches_sessions &&
        left->watches_battery == right->watches_battery && left->load_milli == right->load_milli &&
        left->battery_percent == right->battery_percent && left->milliwatts == right->milliwatts &&
        left->power_for_ns == right->power_for_ns && left->celsius == right->celsius &&
        left->program_count == right->program_count;
    for (size_t i = 0; equal && i < left->program_count; i++) {
        equal = strcmp(left->programs[i], right->programs[i]) == 0;
    }
    return equal;
}

static bool gpu_equal(const struct gpu_terms *left, const struct gpu_terms *right)
{
    return left->is_set == right->is_set && left->after_ns == right->after_ns &&
           left->give_back_ns == right->give_back_ns && left->programs == right->programs &&
           left->celsius == right->celsius && left->milliwatts == right->milliwatts &&
           left->power_for_ns == right->power_for_ns;
}

/* Returns the key of a setting that only a start reads and that differs, or NULL. */
static const char *differing_key(const struct config *old, const struct config *now)
{
    return strcmp(old->market, now->market) != 0  ? "market"
           : strcmp(old->user, now->user) != 0    ? "user"
           : strcmp(old->spool, now->spool) != 0  ? "spool"
           : old->cache_bytes != now->cache_bytes ? "cache"
           : old->cpu_percent != now->cpu_percent ? "cpu"
           : !idle_equal(&old->idle, &now->idle) || strcmp(old->idle_root, now->idle_root) != 0
               ? "idle"
           : !gpu_equal(&old->gpu, &now->gpu) ? "gpu"
           : old->network.rate_bytes != now->network.rate_bytes ||
                   old->network.month_bytes != now->network.month_bytes
               ? "network"
               : NULL;
}

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
    const char *key = differing_key(agent->setup->config, &now->config);
    struct problem device = {.text = ""};
    if (now->offers.count != old->count) {
        problem_set(&device, "the number of devices");
    }
    for (size_t i = 0; i < old->count && device.text[0] == '\0'; i++) {
        if (!offer_equal(&old->items[i], &now->offers.items[i])) {
            name_device(&old->items[i].device, &now->offers.items[i].device, &device);
        }
    }
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
        log_info("SIGHUP: the config was read again; %zu device%s offered on its terms",
                 now->offers.count, now->offers.count == 1 ? " is" : "s are");
    } else {
        log_error("SIGHUP: out of memory; the offer stays as it was");
    }
    free(now);
}
