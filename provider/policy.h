/* provider/policy.h computes the offers from what the machine has and what its owner allows. The
 * module only decides and computes; discover, config, probe and isolation read the facts. */
#ifndef BOURSE_PROVIDER_POLICY_H
#define BOURSE_PROVIDER_POLICY_H

#include "provider/config.h"
#include "provider/device/discover.h"
#include "provider/device/probe.h"
#include "provider/jail/isolation.h"
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

/* Computes the offers of every device. `account` and the devices' names give the devices their ids.
 * A device for kernels that this machine cannot use is left out, and so is one whose plug-in cannot
 * be used. Returns false with what to change when the others cannot all be offered. Reasons are no
 * isolation, more cores than there are, memory for less than one slot, a device for kernels that is
 * none of those there are, two entries for one GPU, an open device with several slots, or a plug-in
 * that was not asked. */
bool policy_offers(const struct config *config, const struct machine *machine,
                   const struct profile *profile, const struct isolation *isolation,
                   const struct key32 *account, struct offers *ret_offers,
                   struct problem *ret_problem);
/* Checks the part of policy_offers that needs only the config and the machine. */
bool policy_check(const struct config *config, const struct machine *machine,
                  struct problem *ret_problem);
/* Returns true when the device's files are in the jails of its jobs. The driver behind them is
 * reached past the jail's walls. */
bool policy_is_open(const struct offer *offer);
/* Returns the offer of that device, or NULL. */
const struct offer *policy_offer_of(const struct offers *offers, const struct id128 *device);

#endif
