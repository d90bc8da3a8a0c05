#include "provider/executors/kernels.h"

#include "provider/device/expected.h"
#include "runtime/log.h"

#include <stdio.h>
#include <string.h>

static bool is_wanted(const struct config *config, enum kernel_api api)
{
    bool wanted = false;
    for (size_t i = 0; i < config->device_count; i++) {
        wanted = wanted || config_device_is_of(&config->devices[i], api);
    }
    return wanted;
}

/* A lane of the device is bound to one core, or given the time of one. The trial has one core, too,
 * so that the figures are those of one slot. */
static const cpu_set_t *one_core(const struct machine *machine, cpu_set_t *ret_set)
{
    CPU_ZERO(ret_set);
    if (machine->cores == 0 || machine->cpus[machine->cores - 1] >= CPU_SETSIZE) {
        return NULL;
    }
    CPU_SET(machine->cpus[machine->cores - 1], ret_set);
    return ret_set;
}

/* Lists the devices of one interface, and measures those that the config offers. */
static bool learn(const struct config *config, const struct kernel_trial *trial,
                  enum kernel_api api, struct kernel_device_list *list, struct problem *ret_problem)
{
    kernel_list(trial, api, list);
    for (size_t i = 0; list->count > 0 && i < config->device_count; i++) {
        if (!config_device_is_of(&config->devices[i], api)) {
            continue;
        }
        const struct kernel_device *found =
            kernel_device_find(list, config->devices[i].kernel, ret_problem);
        if (found == NULL) {
            return false;
        }
        struct kernel_device *device = &list->items[found->index];
        if (device->mflops == 0 && device->unusable[0] == '\0') {
            kernel_measure(trial, device);
        }
    }
    return true;
}

bool kernels_learn(const struct config *config, const struct kernel_trial *trial,
                   const char *why_not, bool is_look, struct machine *machine,
                   struct problem *ret_problem)
{
    cpu_set_t cpus;
    struct kernel_trial bound = *trial;
    bool good = true;
    bound.cpus = one_core(machine, &cpus);
    for (enum kernel_api api = 0; good && api < KERNEL_APIS; api++) {
        struct kernel_device_list *list = &machine->kernel_devices[api];
        list->api = api;
        if (!is_wanted(config, api) && !is_look) {
            continue;
        }
        if (why_not[0] == '\0') {
            good = learn(config, &bound, api, list, ret_problem);
        } else {
            *list = (struct kernel_device_list){.api = api, .is_known = true};
            (void)snprintf(list->problem, sizeof list->problem, "%.250s", why_not);
        }
    }
    return good;
}

void kernels_warn(const struct config *config, const struct machine *machine)
{
    for (size_t i = 0; i < config->device_count; i++) {
        const struct config_device *device = &config->devices[i];
        const struct kernel_device_list *list = &machine->kernel_devices[device->kernel_api];
        struct problem problem = {""};
        char below[EXPECTED_TEXT_SIZE];
        if (device->kernel[0] == '\0' || !list->is_known) {
            continue;
        }
        const struct kernel_device *found = kernel_device_find(list, device->kernel, &problem);
        const char *why = found != NULL ? found->unusable : list->problem;
        if (found == NULL || why[0] != '\0') {
            log_warning("the device \"%s\" is not offered: %s", device->name, why);
        } else if (found->gemm_mflops == 0) {
            log_warning("the device \"%s\" runs kernels and computes no matrices: %s", device->name,
                        found->no_gemm);
        } else if (found->library[0] != '\0') {
            log_info("the device \"%s\" computes matrices by %s", device->name, found->library);
        } else if (found->no_library[0] != '\0') {
            log_info("the device \"%s\" computes matrices by a kernel of bourse's own: %s",
                     device->name, found->no_library);
        }
        if (found != NULL && why[0] == '\0' && expected_tell(found, below)) {
            log_warning("the device \"%s\" is %s", device->name, below);
        }
    }
}
