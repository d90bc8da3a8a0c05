/* provider/kernel/mig.h finds the instances into which NVIDIA's devices are split (MIG). Nobody has
 * tried this on hardware.
 *
 * An instance is a device of its own, with memory and processors of its own, and the whole device
 * is then none. CUDA shows a process one instance, the one that CUDA_VISIBLE_DEVICES names by its
 * UUID. So the list of instances comes from the management library. */
#ifndef BOURSE_PROVIDER_KERNEL_MIG_H
#define BOURSE_PROVIDER_KERNEL_MIG_H

#include "provider/kernel/cuda_api.h"
#include "provider/kernel/devices.h"
#include "provider/kernel/nvml_api.h"

/* Puts the instances of every split device in the place of that device. The library is loaded, and
 * not started. A library that does not start or does not know of MIG changes nothing. `interface`
 * is that of CUDA. */
void mig_replace(const struct nvml_api *api, const struct kernel_interface *interface,
                 struct devices *devices);
/* Marks the devices of OpenCL that are split, so that they are not offered. Where NVIDIA's library
 * does not tell the place of a device, any split device counts as this one. */
void mig_mark_split(const struct nvml_api *api, struct devices *devices);
/* Lets CUDA, which has not started yet, show only the instance with this id. Any other id changes
 * nothing. Returns false when memory is short. */
bool mig_show_only(const char *id);
/* Gives the device the id of the instance that it is, as the driver tells it. A device that is no
 * instance keeps its id. */
void mig_name(const struct cuda_api *api, cuda_device device, struct device_facts *facts);

#endif
