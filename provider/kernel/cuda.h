/* provider/kernel/cuda.h reaches NVIDIA's devices by the CUDA driver. A source is PTX, which the
 * driver compiles, or a cubin. Never tried on hardware. */
#ifndef BOURSE_PROVIDER_KERNEL_CUDA_H
#define BOURSE_PROVIDER_KERNEL_CUDA_H

#include "provider/kernel/cuda_api.h"
#include "provider/kernel/devices.h"

extern const struct kernel_interface cuda_interface;

/* Finds the devices of the driver, DEVICES_MAX at most. Returns false with a line that says why
 * there is none. The devices point to the api. */
bool cuda_find_devices(const struct cuda_api *api, struct devices *ret_devices,
                       struct problem *ret_problem);

#endif
