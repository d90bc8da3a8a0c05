/* provider/device/attached.h finds the device that an entry of the config's `devices` means. The
 * device is for kernels, has a plug-in, or computes models by a provider of ONNX Runtime. */
#ifndef BOURSE_PROVIDER_DEVICE_ATTACHED_H
#define BOURSE_PROVIDER_DEVICE_ATTACHED_H

#include "base/problem.h"
#include "provider/config.h"
#include "provider/device/discover.h"

#include <stdbool.h>

/* One of them at most is not NULL. The devices are the machine's. */
struct attached {
    const struct kernel_device *kernel;
    const struct plugin_device *plugin;
    const struct model_device *model;
};

enum attached_status {
    ATTACHED_FOUND,    /* or the entry is no attached device, or nothing was tried yet */
    ATTACHED_LEFT_OUT, /* the device cannot be used */
    ATTACHED_UNKNOWN,  /* the machine has no such device, or the device was not tried */
};

/* Finds the entry's device. UNKNOWN sets the problem. */
enum attached_status attached_find(const struct config_device *device,
                                   const struct machine *machine, struct attached *ret_attached,
                                   struct problem *ret_problem);
/* Returns true when the entry's device cannot be used. */
bool attached_is_left_out(const struct config_device *device, const struct machine *machine);

#endif
