/* provider/kernel/nvml_api.h loads NVIDIA's management library (NVML) when the program runs.
 *
 * Nothing of bourse is linked with NVML or built with its header. The names, numbers and layouts
 * here are those of the library's binary interface, written down by us, and were never compared
 * with hardware. Two names stand for one function where a newer library changed its structure: the
 * suffix belongs to the layout below. */
#ifndef BOURSE_PROVIDER_KERNEL_NVML_API_H
#define BOURSE_PROVIDER_KERNEL_NVML_API_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVML_LIBRARY "libnvidia-ml.so.1"

typedef int nvml_result;
typedef struct nvmlDevice_st *nvml_device;

/* Results of the calls. */
enum {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_INSUFFICIENT_POWER = 8,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_IRQ_ISSUE = 11,
    NVML_LIBRARY_NOT_FOUND = 12,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_CORRUPTED_INFOROM = 14,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_OPERATING_SYSTEM = 17,
    NVML_LIB_RM_VERSION_MISMATCH = 18,
    NVML_IN_USE = 19,
    NVML_MEMORY = 20,
    NVML_NO_DATA = 21,
    NVML_GPU_NOT_FOUND = 28,
    NVML_UNKNOWN = 999,
};

enum {
    NVML_TEMPERATURE_GPU = 0,
    NVML_MIG_ON = 1,
};

struct nvml_memory { /* nvmlMemory_t; all in bytes */
    unsigned long long total, free, used;
};

struct nvml_utilization { /* nvmlUtilization_t; percent of the last moments */
    unsigned gpu, memory;
};

/* nvmlProcessInfo_t of the functions with the suffix _v3. The library writes this many bytes for a
 * process. Some drivers of the series 535 write NVML_PROCESS_BYTES_MOST, so a list needs room for
 * these, and a reader looks which of the two was written. */
struct nvml_process {
    unsigned pid;
    unsigned long long memory_bytes;
    unsigned gpu_instance, compute_instance;
};
enum { NVML_PROCESS_BYTES_MOST = 32 };

struct nvml_pci { /* nvmlPciInfo_t of the functions with the suffix _v3 */
    char legacy_id[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char id[32]; /* as in 00000000:3B:00.0 */
};

enum { NVML_UUID_SIZE = 96, NVML_NAME_SIZE = 96 };

/* CALL(NAME, ARGUMENTS) for each function without which nothing can be read. */
#define NVML_CALLS(CALL)                                                                           \
    CALL(nvmlInit_v2, (void))                                                                      \
    CALL(nvmlShutdown, (void))                                                                     \
    CALL(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, nvml_device *ret_device))

/* Functions that a library may lack: then one figure is not known. */
#define NVML_FIGURE_CALLS(CALL)                                                                    \
    CALL(nvmlDeviceGetMemoryInfo, (nvml_device device, struct nvml_memory * ret_memory))           \
    CALL(nvmlDeviceGetUtilizationRates,                                                            \
         (nvml_device device, struct nvml_utilization * ret_utilization))                          \
    CALL(nvmlDeviceGetPowerUsage, (nvml_device device, unsigned *ret_milliwatts))                  \
    CALL(nvmlDeviceGetEnforcedPowerLimit, (nvml_device device, unsigned *ret_milliwatts))          \
    CALL(nvmlDeviceGetTotalEnergyConsumption,                                                      \
         (nvml_device device, unsigned long long *ret_millijoules))                                \
    CALL(nvmlDeviceGetTemperature, (nvml_device device, int sensor, unsigned *ret_celsius))        \
    CALL(nvmlDeviceGetMigMode, (nvml_device device, unsigned *ret_mode, unsigned *ret_pending))    \
    CALL(nvmlDeviceGetCount_v2, (unsigned *ret_count))                                             \
    CALL(nvmlDeviceGetHandleByIndex_v2, (unsigned index, nvml_device *ret_device))                 \
    CALL(nvmlDeviceGetHandleByUUID, (const char *uuid, nvml_device *ret_device))                   \
    CALL(nvmlDeviceGetPciInfo_v3, (nvml_device device, struct nvml_pci * ret_pci))                 \
    CALL(nvmlDeviceGetMaxMigDeviceCount, (nvml_device device, unsigned *ret_count))                \
    CALL(nvmlDeviceGetMigDeviceHandleByIndex,                                                      \
         (nvml_device device, unsigned index, nvml_device *ret_instance))                          \
    CALL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle,                                             \
         (nvml_device instance, nvml_device * ret_device))                                         \
    CALL(nvmlDeviceGetGpuInstanceId, (nvml_device instance, unsigned *ret_id))                     \
    CALL(nvmlDeviceGetComputeInstanceId, (nvml_device instance, unsigned *ret_id))                 \
    CALL(nvmlDeviceGetUUID, (nvml_device device, char *ret_uuid, unsigned size))                   \
    CALL(nvmlDeviceGetName, (nvml_device device, char *ret_name, unsigned size))                   \
    CALL(nvmlDeviceGetCudaComputeCapability, (nvml_device device, int *ret_major, int *ret_minor)) \
    CALL(nvmlDeviceGetComputeRunningProcesses_v3,                                                  \
         (nvml_device device, unsigned *count, struct nvml_process *ret_processes))                \
    CALL(nvmlDeviceGetGraphicsRunningProcesses_v3,                                                 \
         (nvml_device device, unsigned *count, struct nvml_process *ret_processes))

/* The members have the names of the functions, which are NVML's. */
struct nvml_api {
    void *library;
#define NVML_MEMBER(name, arguments) nvml_result(*name) arguments;
    NVML_CALLS(NVML_MEMBER)
    NVML_FIGURE_CALLS(NVML_MEMBER) /* each may be NULL */
#undef NVML_MEMBER
};

/* Loads the library of this name, or path; NULL looks for the functions in the program itself.
 * Returns false with a line that says what is missing; then nothing is loaded. */
bool nvml_api_load(const char *library, struct nvml_api *ret_api, struct problem *ret_problem);

/* Returns a phrase for a result of NVML other than NVML_OK; never NULL. */
const char *nvml_api_error(nvml_result result);

#endif
