/* This module describes what the agent offers of one device. provider/policy.h computes offers. */
#ifndef BOURSE_PROVIDER_DEVICE_OFFER_H
#define BOURSE_PROVIDER_DEVICE_OFFER_H

#include "provider/config.h"
#include "provider/device/discover.h"
#include "provider/session/agent_session.h"

#include <stdbool.h>

enum { POLICY_ATTRIBUTES_MAX = LIMIT_ATTRIBUTES };
/* This attribute lists the other attributes that were measured on the device. */
#define POLICY_MEASURED "measured"

struct offer {
    struct agent_device device; /* points to the attributes below, so do not copy the struct */
    struct attribute attributes[POLICY_ATTRIBUTES_MAX];
    struct agent_ask ask;
    uint64_t memory_bytes; /* per slot */
    uint64_t disk_bytes;   /* per slot */
    uint32_t processes;    /* per slot */
    int isolation;         /* level of the jails of its jobs, 0 to 3 */
    int64_t power_mw;      /* per slot, at full load; 0: unknown */
    uint32_t cpu_percent;  /* of a core, for each slot */
    /* A device for kernels has these per slot: its own memory, the memory for buffers, and what
     * inputs that stay may take of the latter. Buffers of a processor live in the slot's memory. */
    uint64_t kernel_bytes, buffer_bytes, held_bytes;
    /* The offer has the cores from machine.cpus[first_core] on, one for each slot. */
    uint32_t first_core;
    /* NULL: the device is made of cores of this machine. A simulated device has no cores. */
    const struct catalogue_device *simulates;
    const struct kernel_device *kernel_device; /* a device for kernels, the machine's; NULL: none */
    struct config_share kernel_memory;         /* what jobs may take of that device's memory */
    const struct plugin_device *plugin; /* a device with a plug-in, the machine's; NULL: none */
    /* A device that computes models by a provider of ONNX Runtime, the machine's; NULL: none. */
    const struct model_device *model_device;
};

/* There is one offer for each device: the config's first device, then its `devices`. */
struct offers {
    struct offer items[1 + CONFIG_DEVICES_MAX];
    size_t count;
};

/* Returns true when the device's files are in the jails of its jobs. The driver behind them is
 * reached past the jail's walls. */
bool offer_is_open(const struct offer *offer);

#endif
