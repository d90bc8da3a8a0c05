#include "provider/executors/model_devices.h"

#include "runtime/log.h"

#include <stdio.h>

bool model_devices_wanted(const struct config *config)
{
    bool wanted = false;
    for (size_t i = 0; i < config->device_count; i++) {
        wanted = wanted || config->devices[i].provider.name[0] != '\0';
    }
    return wanted;
}

void model_devices_learn(const struct config *config, const struct onnx_trial *trial,
                         struct machine *machine)
{
    struct model_device_list *list = &machine->model_devices;
    list->count = 0;
    list->is_known = true;
    for (size_t i = 0; i < config->device_count; i++) {
        const struct config_device *wanted = &config->devices[i];
        if (wanted->provider.name[0] == '\0' || list->count == MODEL_DEVICES_MAX) {
            continue;
        }
        struct model_device *device = &list->items[list->count++];
        *device = (struct model_device){.provider = wanted->provider};
        (void)snprintf(device->name, sizeof device->name, "%s", wanted->name);
        onnx_look_at_device(trial, &machine->models, device);
    }
}

void model_devices_say(const struct machine *machine)
{
    for (size_t i = 0; i < machine->model_devices.count; i++) {
        const struct model_device *device = &machine->model_devices.items[i];
        if (device->unusable[0] != '\0') {
            log_warning("the device \"%s\" is not offered: %s", device->name, device->unusable);
        } else {
            log_info("the device \"%s\" computes ONNX models by %s, %lld Mflop/s in the trial",
                     device->name, device->engine, (long long)device->mflops);
        }
    }
}
