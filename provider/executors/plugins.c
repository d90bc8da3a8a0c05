#include "provider/executors/plugins.h"

#include "runtime/log.h"

#include <stdio.h>
#include <string.h>

bool plugins_wanted(const struct config *config)
{
    bool wanted = false;
    for (size_t i = 0; i < config->device_count; i++) {
        wanted = wanted || config->devices[i].plugin.path[0] != '\0';
    }
    return wanted;
}

void plugins_learn(const struct config *config, const struct plugin_trial *trial,
                   const char *why_not, struct machine *machine)
{
    struct plugin_list *list = &machine->plugins;
    list->count = 0;
    list->is_known = true;
    for (size_t i = 0; i < config->device_count; i++) {
        const struct config_device *wanted = &config->devices[i];
        if (wanted->plugin.path[0] == '\0' || list->count == PLUGIN_DEVICES_MAX) {
            continue;
        }
        struct plugin_device *device = &list->items[list->count++];
        *device = (struct plugin_device){.program = wanted->plugin};
        (void)snprintf(device->name, sizeof device->name, "%s", wanted->name);
        if (why_not[0] != '\0') {
            (void)snprintf(device->unusable, sizeof device->unusable, "%s", why_not);
        } else {
            plugin_look(trial, device);
        }
    }
}

void plugins_warn(const struct machine *machine)
{
    for (size_t i = 0; i < machine->plugins.count; i++) {
        const struct plugin_device *device = &machine->plugins.items[i];
        if (device->unusable[0] != '\0') {
            log_warning("the device \"%s\" is not offered: %s", device->name, device->unusable);
        }
    }
}
