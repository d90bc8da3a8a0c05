/* This library takes the place of NVIDIA's management library in tests. It has two devices, at the
 * places of fake_cuda.c. The devices draw 61 W of 350 W at 44 degrees, and have 1 of 16 MiB in use.
 *
 * Before fake_nvml_fail("nvmlDeviceGetPowerUsage", 3), every call works; later calls of that
 * function fail. fake_nvml_fail(NULL, 0) makes none fail. A test of processes cannot call a
 * function, so it sends the program signals from SIGRTMIN + 1 on:
 *
 *     1: process 1 computes on the first device    2: nothing computes there
 *     3: the first device is at 91 degrees         4: at 44 degrees again
 *     5: the first device is lost                  6: it is back
 *     7: the next call never returns
 *     8: every process takes 4 GiB of memory       9: 77 bytes again */
#include "provider/kernel/nvml_api.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROTOTYPE(name, arguments) nvml_result name arguments;
NVML_CALLS(PROTOTYPE)
NVML_FIGURE_CALLS(PROTOTYPE)
void fake_nvml_fail(const char *function, int result);
/* Process `pid` computes on the first device from now on; 0: none. */
void fake_nvml_use(unsigned pid);
/* The first device is split by MIG from now on. */
void fake_nvml_split(int is_split);
/* Returns how often the library was started, less how often it was ended. */
int fake_nvml_alive(void);
/* Lists of processes have entries of so many bytes from now on: 24 or 32. With `clears`, the room
 * that the list leaves over is cleared. */
void fake_nvml_entries(unsigned bytes, int clears);
/* The process that uses every device has this number from now on; 0: the library does not name it,
 * -1: it is this process. */
void fake_nvml_own(int pid);

enum { DEVICES = 2, COOL = 44, HOT = 91, SIGNALS = 9 };

struct nvmlDevice_st {
    const char *id;
    unsigned limit_mw;
    struct nvmlDevice_st *whole; /* of an instance of MIG */
    unsigned gpu_instance;
};

static struct nvmlDevice_st devices[DEVICES] = {{.id = "0000:3b:00.0", .limit_mw = 350000},
                                                {.id = "0000:4b:00.0", .limit_mw = 300000}};
/* The instances of the first device. One was taken away, so the library has a gap there. */
static struct nvmlDevice_st instances[] = {
    {.id = "MIG-00112233-4455-6677-8899-aabbccddee01", .whole = devices, .gpu_instance = 1},
    {.id = NULL},
    {.id = "MIG-00112233-4455-6677-8899-aabbccddee03", .whole = devices, .gpu_instance = 5}};
enum { INSTANCES = sizeof instances / sizeof instances[0] };
static char failing[64];
static int failure;
static int alive;
#ifdef FAKE_MIG
static int split = 1;
#else
static int split;
#endif
static unsigned bytes_apart = sizeof(struct nvml_process);
static int clears_rest;
static int own = -1;
static volatile sig_atomic_t user, celsius = COOL, is_lost, hangs, is_large;

void fake_nvml_fail(const char *function, int result)
{
    (void)snprintf(failing, sizeof failing, "%s", function != NULL ? function : "");
    failure = result;
}

void fake_nvml_use(unsigned pid)
{
    user = (sig_atomic_t)pid;
}

void fake_nvml_split(int is_split)
{
    split = is_split;
}

void fake_nvml_entries(unsigned bytes, int clears)
{
    bytes_apart = bytes;
    clears_rest = clears;
}

void fake_nvml_own(int pid)
{
    own = pid;
}

int fake_nvml_alive(void)
{
    return alive;
}

static nvml_result result_of(const char *function, const struct nvmlDevice_st *device)
{
    while (hangs) {
        (void)pause();
    }
    return strcmp(failing, function) == 0      ? failure
           : alive == 0                        ? NVML_UNINITIALIZED
           : is_lost != 0 && device == devices ? NVML_GPU_IS_LOST
                                               : NVML_OK;
}
/* Ends a call that is to fail. */
#define CALL(device)                                                                               \
    if (result_of(__func__, device) != NVML_OK) {                                                  \
        return result_of(__func__, device);                                                        \
    }

static void obey(int number)
{
    switch (number - SIGRTMIN) {
    case 1:
        user = 1;
        break;
    case 2:
        user = 0;
        break;
    case 3:
        celsius = HOT;
        break;
    case 4:
        celsius = COOL;
        break;
    case 5:
        is_lost = 1;
        break;
    case 6:
        is_lost = 0;
        break;
    case 8:
        is_large = 1;
        break;
    case 9:
        is_large = 0;
        break;
    default:
        hangs = 1;
        break;
    }
}

nvml_result nvmlInit_v2(void)
{
    for (int i = 1; i <= SIGNALS; i++) {
        struct sigaction action = {.sa_flags = SA_RESTART};
        action.sa_handler = obey;
        (void)sigaction(SIGRTMIN + i, &action, NULL);
    }
    alive++;
    if (result_of(__func__, NULL) != NVML_OK) {
        alive--;
        return failure;
    }
    return NVML_OK;
}

nvml_result nvmlShutdown(void)
{
    CALL(NULL)
    alive--;
    return NVML_OK;
}

nvml_result nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvml_device *ret_device)
{
    for (size_t i = 0; i < DEVICES; i++) {
        if (strcmp(devices[i].id, id) == 0) {
            CALL(NULL)
            *ret_device = &devices[i];
            return NVML_OK;
        }
    }
    return NVML_NOT_FOUND;
}

nvml_result nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *ret_device)
{
    CALL(NULL)
    for (size_t i = 0; i < INSTANCES; i++) {
        if (split != 0 && instances[i].id != NULL && strcmp(instances[i].id, uuid) == 0) {
            *ret_device = &instances[i];
            return NVML_OK;
        }
    }
    return NVML_NOT_FOUND;
}

nvml_result nvmlDeviceGetCount_v2(unsigned *ret_count)
{
    CALL(NULL)
    *ret_count = DEVICES;
    return NVML_OK;
}

nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *ret_device)
{
    CALL(NULL)
    *ret_device = &devices[index < DEVICES ? index : 0];
    return index < DEVICES ? NVML_OK : NVML_INVALID_ARGUMENT;
}

nvml_result nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *ret_pci)
{
    CALL(device)
    *ret_pci = (struct nvml_pci){.id = ""};
    (void)snprintf(ret_pci->id, sizeof ret_pci->id, "00000000:%cB:00.0", device->id[5]);
    return NVML_OK;
}

nvml_result nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned *ret_count)
{
    CALL(device)
    *ret_count = device == devices ? INSTANCES : 0;
    return NVML_OK;
}

nvml_result nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index,
                                                nvml_device *ret_instance)
{
    CALL(device)
    if (device != devices || index >= INSTANCES || instances[index].id == NULL) {
        return NVML_NOT_FOUND;
    }
    *ret_instance = &instances[index];
    return NVML_OK;
}

nvml_result nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml_device instance,
                                                         nvml_device *ret_device)
{
    CALL(instance)
    *ret_device = instance->whole;
    return instance->whole != NULL ? NVML_OK : NVML_INVALID_ARGUMENT;
}

nvml_result nvmlDeviceGetGpuInstanceId(nvml_device instance, unsigned *ret_id)
{
    CALL(instance)
    *ret_id = instance->gpu_instance;
    return NVML_OK;
}

nvml_result nvmlDeviceGetComputeInstanceId(nvml_device instance, unsigned *ret_id)
{
    CALL(instance)
    *ret_id = 0;
    return NVML_OK;
}

nvml_result nvmlDeviceGetUUID(nvml_device device, char *ret_uuid, unsigned size)
{
    CALL(device)
    (void)snprintf(ret_uuid, size, "%s", device->id);
    return NVML_OK;
}

nvml_result nvmlDeviceGetName(nvml_device device, char *ret_name, unsigned size)
{
    CALL(device)
    (void)snprintf(ret_name, size, "NVIDIA Fake F100 MIG %ug.4mb", device->gpu_instance);
    return NVML_OK;
}

nvml_result nvmlDeviceGetCudaComputeCapability(nvml_device device, int *ret_major, int *ret_minor)
{
    CALL(device)
    *ret_major = 9;
    *ret_minor = 0;
    return NVML_OK;
}

nvml_result nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *ret_memory)
{
    CALL(device)
    *ret_memory = device->whole != NULL
                      ? (struct nvml_memory){.total = 4 << 20, .used = 1 << 20, .free = 3 << 20}
                      : (struct nvml_memory){.total = 16 << 20, .used = 1 << 20, .free = 15 << 20};
    return NVML_OK;
}

nvml_result nvmlDeviceGetUtilizationRates(nvml_device device,
                                          struct nvml_utilization *ret_utilization)
{
    CALL(device)
    *ret_utilization = (struct nvml_utilization){.gpu = 12, .memory = 7};
    return NVML_OK;
}

nvml_result nvmlDeviceGetPowerUsage(nvml_device device, unsigned *ret_milliwatts)
{
    CALL(device)
    *ret_milliwatts = 61000;
    return NVML_OK;
}

nvml_result nvmlDeviceGetEnforcedPowerLimit(nvml_device device, unsigned *ret_milliwatts)
{
    CALL(device)
    *ret_milliwatts = device->limit_mw;
    return NVML_OK;
}

nvml_result nvmlDeviceGetTotalEnergyConsumption(nvml_device device,
                                                unsigned long long *ret_millijoules)
{
    CALL(device)
    *ret_millijoules = 5000000000ULL;
    return NVML_OK;
}

nvml_result nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *ret_celsius)
{
    CALL(device)
    *ret_celsius = device == devices ? (unsigned)celsius : COOL;
    return sensor == NVML_TEMPERATURE_GPU ? NVML_OK : NVML_INVALID_ARGUMENT;
}

nvml_result nvmlDeviceGetMigMode(nvml_device device, unsigned *ret_mode, unsigned *ret_pending)
{
    CALL(device)
    *ret_mode = *ret_pending = device == devices && split != 0 ? NVML_MIG_ON : 0;
    return NVML_OK;
}

/* Writes an entry, with a member more when the entries are long. */
static void put(unsigned char *place, unsigned pid)
{
    const struct nvml_process process = {.pid = pid,
                                         .memory_bytes = is_large != 0 ? UINT64_C(4) << 30 : 77,
                                         .gpu_instance = UINT32_MAX,
                                         .compute_instance = UINT32_MAX};
    memcpy(place, &process, sizeof process);
    if (bytes_apart > sizeof process) {
        memset(place + sizeof process, 0, bytes_apart - sizeof process);
    }
}

/* This process computes on every device, as one of the agent's own jobs does. */
nvml_result nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count,
                                                    struct nvml_process *ret_processes)
{
    CALL(device)
    const bool is_used = device == devices && user != 0;
    const unsigned wanted = is_used ? 2 : 1;
    const bool fits = *count >= wanted;
    unsigned char *place = (unsigned char *)ret_processes;
    if (fits && clears_rest) {
        memset(place, 0, *count * (size_t)bytes_apart);
    }
    *count = wanted;
    if (!fits) {
        return NVML_INSUFFICIENT_SIZE;
    }
    put(place, own < 0 ? (unsigned)getpid() : (unsigned)own);
    if (is_used) {
        put(place + bytes_apart, (unsigned)user);
    }
    return NVML_OK;
}

nvml_result nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device device, unsigned *count,
                                                     struct nvml_process *ret_processes)
{
    CALL(device)
    (void)ret_processes;
    *count = 0;
    return NVML_OK;
}
