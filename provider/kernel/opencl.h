/* provider/kernel/opencl.h reaches devices by OpenCL 1.2. */
#ifndef BOURSE_PROVIDER_KERNEL_OPENCL_H
#define BOURSE_PROVIDER_KERNEL_OPENCL_H

#include "provider/kernel/devices.h"
#include "provider/kernel/opencl_api.h"

extern const struct kernel_interface opencl_interface;

/* Finds the devices of every platform, DEVICES_MAX at most. Returns false with a line that says why
 * there is none. The devices point to the api. */
bool opencl_find_devices(const struct opencl_api *api, struct devices *ret_devices,
                         struct problem *ret_problem);

#endif
