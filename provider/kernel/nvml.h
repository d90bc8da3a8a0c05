/* provider/kernel/nvml.h reads the memory, load, power and heat of NVIDIA's devices, and which
 * processes use them. Never tried on hardware.
 *
 * Each figure has the result of its own call. A figure whose result is not NVML_OK is not known. Of
 * a device that is split by MIG only heat and power are read. Its instances are devices of their
 * own, with the heat and power of the whole device (provider/kernel/mig.h). */
#ifndef BOURSE_PROVIDER_KERNEL_NVML_H
#define BOURSE_PROVIDER_KERNEL_NVML_H

#include "provider/kernel/nvml_api.h"

#include <stdio.h>

enum { NVML_DEVICES_MAX = 16, NVML_PROCESSES_MAX = 64 };

struct nvml_processes {
    nvml_result result;
    uint32_t pids[NVML_PROCESSES_MAX];        /* as the namespace of this process numbers them */
    int64_t memory_bytes[NVML_PROCESSES_MAX]; /* of the device's memory; -1: not told */
    size_t count;
};

struct nvml_figures {
    nvml_result found; /* of the look for the device; no other member counts unless NVML_OK */
    bool is_lost;      /* a call said that the device fell off the bus */
    bool is_split;     /* by MIG */
    nvml_result memory_result, busy_result, power_result, limit_result, energy_result, heat_result;
    uint64_t memory_used, memory_total; /* bytes */
    uint32_t busy_percent;
    uint32_t power_mw, power_limit_mw;
    uint64_t energy_mj; /* since the driver was loaded */
    uint32_t celsius;
    struct nvml_processes compute, graphics;
};

/* Reads the device at this place of the PCI bus, such as 0000:3b:00.0, or the instance with this
 * UUID, such as MIG-5d2ff6dc-.... The library is started. */
void nvml_read(const struct nvml_api *api, const char *id, struct nvml_figures *ret_figures);

/* Writes the figures of these devices as one line of JSON, or the line with the problem. A figure
 * that is not known is left out, and "why" has the phrase for it. Returns false when nothing can be
 * written. */
bool nvml_print(FILE *out, const char *const *ids, const struct nvml_figures *figures, size_t count,
                const char *problem);

/* Answers each line that comes on the socket with a line of figures of these devices, until the
 * socket ends. Ends after a line with a problem, too, so that the next start has a library and a
 * driver of one version. Returns the exit status. */
int nvml_serve(const char *library, int socket, const char *const *ids, size_t count);

#endif
