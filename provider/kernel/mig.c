#include "provider/kernel/mig.h"

#include "base/text.h"
#include "provider/tensor/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOMAIN_MORE = 4 };

static bool is_instance(const char *id)
{
    return strncmp(id, KERNEL_MIG, strlen(KERNEL_MIG)) == 0;
}

/* Writes a place on the PCI bus as CUDA and the system have it: small letters, and a domain of four
 * digits. NVML writes eight. */
static void write_place(const char *raw, char ret_id[DEVICES_ID_SIZE])
{
    const size_t domain = strcspn(raw, ":");
    const char *from =
        domain == 8 && strncmp(raw, "0000", DOMAIN_MORE) == 0 ? raw + DOMAIN_MORE : raw;
    size_t length = 0;
    for (; *from != '\0' && length + 1 < DEVICES_ID_SIZE; from++) {
        ret_id[length++] = (char)(*from >= 'A' && *from <= 'F' ? *from - 'A' + 'a' : *from);
    }
    ret_id[length] = '\0';
}

static void read_text(const char *raw, char *ret_text, size_t capacity)
{
    text_printable(raw, strnlen(raw, NVML_NAME_SIZE), ret_text, capacity);
}

/* Reads what the library tells of an instance. Returns false when a figure is missing without which
 * the instance cannot be used. */
static bool read_instance(const struct nvml_api *api, nvml_device instance, const char *whole,
                          const char *target, struct device_facts *ret_facts)
{
    char name[NVML_NAME_SIZE] = "";
    char uuid[NVML_UUID_SIZE] = "";
    struct nvml_memory memory = {0, 0, 0};
    struct device_facts facts = {.platform_name = "NVIDIA CUDA",
                                 .vendor = "NVIDIA Corporation",
                                 .driver = "CUDA",
                                 .kind = "gpu",
                                 .has_fp64 = true,
                                 .has_fp16 = true};
    const bool good =
        api->nvmlDeviceGetUUID(instance, uuid, sizeof uuid - 1) == NVML_OK && is_instance(uuid) &&
        strlen(uuid) < sizeof facts.id &&
        api->nvmlDeviceGetName(instance, name, sizeof name - 1) == NVML_OK &&
        api->nvmlDeviceGetMemoryInfo(instance, &memory) == NVML_OK &&
        api->nvmlDeviceGetGpuInstanceId(instance, &facts.gpu_instance) == NVML_OK &&
        api->nvmlDeviceGetComputeInstanceId(instance, &facts.compute_instance) == NVML_OK;
    facts.memory_bytes = memory.total;
    read_text(uuid, facts.id, sizeof facts.id);
    read_text(name, facts.name, sizeof facts.name);
    (void)snprintf(facts.whole, sizeof facts.whole, "%s", whole);
    (void)snprintf(facts.target, sizeof facts.target, "%s", target);
    *ret_facts = facts;
    return good;
}

/* Returns the number of the device at this place, or the count. */
static size_t place_of(const struct devices *devices, const char *id)
{
    size_t place = 0;
    while (place < devices->count && strcmp(devices->items[place].id, id) != 0) {
        place++;
    }
    return place;
}

static void remove_at(struct devices *devices, size_t place)
{
    devices->count--;
    memmove(&devices->items[place], &devices->items[place + 1],
            (devices->count - place) * sizeof devices->items[0]);
}

/* Makes room for one more device, in which nothing stands yet. */
static struct device_facts *insert_at(struct devices *devices, size_t place)
{
    memmove(&devices->items[place + 1], &devices->items[place],
            (devices->count - place) * sizeof devices->items[0]);
    devices->count++;
    return &devices->items[place];
}

static void add_instances(const struct nvml_api *api, const struct kernel_interface *interface,
                          nvml_device device, const char *whole, struct devices *devices)
{
    unsigned count = 0;
    int major = 0;
    int minor = 0;
    char target[16] = "";
    size_t place = place_of(devices, whole);
    if (place < devices->count) {
        remove_at(devices, place); /* it is no device now, whether it has instances or not */
    }
    if (api->nvmlDeviceGetCudaComputeCapability != NULL &&
        api->nvmlDeviceGetCudaComputeCapability(device, &major, &minor) == NVML_OK) {
        (void)snprintf(target, sizeof target, "sm_%d%d", major, minor);
    }
    if (api->nvmlDeviceGetMaxMigDeviceCount(device, &count) != NVML_OK) {
        return;
    }
    for (unsigned i = 0; i < count && devices->count < DEVICES_MAX; i++) {
        nvml_device instance = NULL;
        struct device_facts facts;
        if (api->nvmlDeviceGetMigDeviceHandleByIndex(device, i, &instance) == NVML_OK &&
            read_instance(api, instance, whole, target, &facts)) {
            facts.interface = interface;
            *insert_at(devices, place++) = facts;
        }
    }
}

static bool knows_mig(const struct nvml_api *api)
{
    return api->nvmlDeviceGetCount_v2 != NULL && api->nvmlDeviceGetHandleByIndex_v2 != NULL &&
           api->nvmlDeviceGetPciInfo_v3 != NULL && api->nvmlDeviceGetMigMode != NULL &&
           api->nvmlDeviceGetMaxMigDeviceCount != NULL &&
           api->nvmlDeviceGetMigDeviceHandleByIndex != NULL && api->nvmlDeviceGetUUID != NULL &&
           api->nvmlDeviceGetName != NULL && api->nvmlDeviceGetMemoryInfo != NULL &&
           api->nvmlDeviceGetGpuInstanceId != NULL && api->nvmlDeviceGetComputeInstanceId != NULL;
}

/* One visit to every split device; `whole` is the place of the device. */
struct visit {
    void (*take)(const struct visit *visit, nvml_device device, const char *whole);
    const struct nvml_api *api;
    const struct kernel_interface *interface;
    struct devices *devices;
};

static void visit_split(const struct visit *visit)
{
    const struct nvml_api *api = visit->api;
    unsigned count = 0;
    if (!knows_mig(api) || api->nvmlInit_v2() != NVML_OK) {
        return;
    }
    if (api->nvmlDeviceGetCount_v2(&count) != NVML_OK) {
        count = 0;
    }
    for (unsigned i = 0; i < count; i++) {
        nvml_device device = NULL;
        struct nvml_pci pci = {.id = ""};
        unsigned mode = 0;
        unsigned pending = 0;
        if (api->nvmlDeviceGetHandleByIndex_v2(i, &device) == NVML_OK &&
            api->nvmlDeviceGetMigMode(device, &mode, &pending) == NVML_OK && mode == NVML_MIG_ON &&
            api->nvmlDeviceGetPciInfo_v3(device, &pci) == NVML_OK) {
            char whole[DEVICES_ID_SIZE];
            pci.id[sizeof pci.id - 1] = '\0';
            write_place(pci.id, whole);
            visit->take(visit, device, whole);
        }
    }
    (void)api->nvmlShutdown();
}

static void take_instances(const struct visit *visit, nvml_device device, const char *whole)
{
    add_instances(visit->api, visit->interface, device, whole, visit->devices);
}

void mig_replace(const struct nvml_api *api, const struct kernel_interface *interface,
                 struct devices *devices)
{
    const struct visit visit = {
        .take = take_instances, .api = api, .interface = interface, .devices = devices};
    visit_split(&visit);
}

static void mark(const struct visit *visit, nvml_device device, const char *whole)
{
    (void)device;
    for (size_t i = 0; i < visit->devices->count; i++) {
        struct device_facts *facts = &visit->devices->items[i];
        const bool is_here = facts->place[0] == '\0' || strcmp(facts->place, whole) == 0;
        facts->is_split = facts->is_split || (strstr(facts->vendor, "NVIDIA") != NULL && is_here);
    }
}

void mig_mark_split(const struct nvml_api *api, struct devices *devices)
{
    const struct visit visit = {.take = mark, .api = api, .devices = devices};
    visit_split(&visit);
}

bool mig_show_only(const char *id)
{
    return !is_instance(id) || setenv("CUDA_VISIBLE_DEVICES", id, 1) == 0;
}

void mig_name(const struct cuda_api *api, cuda_device device, struct device_facts *facts)
{
    cuda_uuid uuid;
    char text[DEVICES_ID_SIZE] = KERNEL_MIG;
    const char *shown = getenv("CUDA_VISIBLE_DEVICES");
    if (shown == NULL || api->cuDeviceGetUuid_v2 == NULL ||
        api->cuDeviceGetUuid_v2(&uuid, device) != 0) {
        return;
    }
    for (size_t i = 0; i < sizeof uuid.bytes; i++) {
        const size_t length = strlen(text);
        const bool has_dash = i == 4 || i == 6 || i == 8 || i == 10;
        (void)snprintf(text + length, sizeof text - length, "%s%02x", has_dash ? "-" : "",
                       (unsigned char)uuid.bytes[i]);
    }
    if (strcmp(text, shown) == 0) {
        (void)snprintf(facts->id, sizeof facts->id, "%s", text);
    }
}
