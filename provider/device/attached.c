#include "provider/device/attached.h"

#include <string.h>

/* Before the plug-ins were asked, every entry counts. */
static enum attached_status find_plugin(const struct config_device *device,
                                        const struct machine *machine,
                                        const struct plugin_device **ret_plugin,
                                        struct problem *problem)
{
    if (device->plugin.path[0] == '\0' || !machine->plugins.is_known) {
        return ATTACHED_FOUND;
    }
    const struct plugin_device *plugin = plugin_device_find(&machine->plugins, device->name);
    if (plugin == NULL || !plugin_program_equal(&plugin->program, &device->plugin)) {
        problem_set(problem, "the plug-in of \"%s\" is asked at a start alone: restart the agent",
                    device->name);
        return ATTACHED_UNKNOWN;
    }
    *ret_plugin = plugin;
    return plugin->unusable[0] == '\0' ? ATTACHED_FOUND : ATTACHED_LEFT_OUT;
}

/* Before the providers were tried, every entry counts. */
static enum attached_status find_model_device(const struct config_device *device,
                                              const struct machine *machine,
                                              const struct model_device **ret_device,
                                              struct problem *problem)
{
    const struct model_device_list *list = &machine->model_devices;
    if (device->provider.name[0] == '\0' || !list->is_known) {
        return ATTACHED_FOUND;
    }
    const struct model_device *found = model_device_find(list, device->name);
    if (found == NULL || !model_provider_equal(&found->provider, &device->provider)) {
        problem_set(problem, "%s of \"%s\" is tried at a start alone: restart the agent",
                    device->provider.name, device->name);
        return ATTACHED_UNKNOWN;
    }
    *ret_device = found;
    return found->unusable[0] == '\0' ? ATTACHED_FOUND : ATTACHED_LEFT_OUT;
}

/* Before the machine was asked, every entry counts. */
static enum attached_status find_kernel_device(const struct config_device *device,
                                               const struct machine *machine,
                                               const struct kernel_device **ret_device,
                                               struct problem *problem)
{
    const struct kernel_device_list *list = &machine->kernel_devices[device->kernel_api];
    if (device->kernel[0] == '\0' || !list->is_known) {
        return ATTACHED_FOUND;
    }
    if (list->count == 0) {
        return ATTACHED_LEFT_OUT;
    }
    const struct kernel_device *found = kernel_device_find(list, device->kernel, problem);
    if (found == NULL || found->unusable[0] != '\0') {
        return found == NULL ? ATTACHED_UNKNOWN : ATTACHED_LEFT_OUT;
    }
    *ret_device = found;
    return ATTACHED_FOUND;
}

enum attached_status attached_find(const struct config_device *device,
                                   const struct machine *machine, struct attached *ret_attached,
                                   struct problem *ret_problem)
{
    struct attached attached = {NULL, NULL, NULL};
    enum attached_status status =
        find_kernel_device(device, machine, &attached.kernel, ret_problem);
    if (status == ATTACHED_FOUND) {
        status = find_plugin(device, machine, &attached.plugin, ret_problem);
    }
    if (status == ATTACHED_FOUND) {
        status = find_model_device(device, machine, &attached.model, ret_problem);
    }
    *ret_attached = attached;
    return status;
}

bool attached_is_left_out(const struct config_device *device, const struct machine *machine)
{
    struct attached attached;
    struct problem problem;
    return attached_find(device, machine, &attached, &problem) == ATTACHED_LEFT_OUT;
}
