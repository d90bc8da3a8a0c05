/* This file finds the devices of OpenCL's platforms and reads what they can do. */
#include "provider/kernel/opencl.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { PLATFORMS_MAX = 16, RAW_TEXT_BYTES = 4096 };

static void read_text(const struct opencl_api *api, cl_device_id device, cl_device_info what,
                      char ret_text[DEVICES_TEXT_SIZE])
{
    char raw[RAW_TEXT_BYTES] = "";
    ret_text[0] = '\0';
    if (api->clGetDeviceInfo(device, what, sizeof raw - 1, raw, NULL) == CL_SUCCESS) {
        const char *text = raw + strspn(raw, " ");
        size_t length = strlen(text);
        while (length > 0 && text[length - 1] == ' ') {
            length--;
        }
        text_printable(text, length, ret_text, DEVICES_TEXT_SIZE);
    }
}

/* Returns 0 for a figure that the device does not tell. */
static uint64_t read_figure(const struct opencl_api *api, cl_device_id device, cl_device_info what,
                            size_t size)
{
    cl_ulong large = 0;
    cl_uint small = 0;
    if (size == sizeof small) {
        return api->clGetDeviceInfo(device, what, sizeof small, &small, NULL) == CL_SUCCESS ? small
                                                                                            : 0;
    }
    return api->clGetDeviceInfo(device, what, sizeof large, &large, NULL) == CL_SUCCESS ? large : 0;
}

static bool has_extension(const struct opencl_api *api, cl_device_id device, const char *name)
{
    char raw[RAW_TEXT_BYTES] = "";
    return api->clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof raw - 1, raw, NULL) ==
               CL_SUCCESS &&
           strstr(raw, name) != NULL;
}

/* Libraries tell the place of a device on the PCI bus by an extension of OpenCL, and the libraries
 * of NVIDIA and AMD by numbers of their own. AMD's knows no domain but 0. */
enum {
    PCI_BUS_INFO = 0x410F, /* cl_khr_pci_bus_info: four numbers of 32 bits */
    AMD_TOPOLOGY = 0x4037, /* 24 bytes: a type of 32 bits, and the place in the last three */
    AMD_TOPOLOGY_BYTES = 24,
    AMD_TOPOLOGY_PCI = 1,
    NVIDIA_PCI_BUS = 0x4008,
    NVIDIA_PCI_SLOT = 0x4009,
    NVIDIA_PCI_DOMAIN = 0x400A,
};

static void write_place(char ret_place[DEVICES_ID_SIZE], const cl_uint parts[4])
{
    (void)snprintf(ret_place, DEVICES_ID_SIZE, "%04x:%02x:%02x.%x", parts[0], parts[1], parts[2],
                   parts[3]);
}

static void read_amd_place(const struct opencl_api *api, cl_device_id device,
                           char ret_place[DEVICES_ID_SIZE])
{
    unsigned char bytes[AMD_TOPOLOGY_BYTES] = {0};
    cl_uint type = 0;
    if (api->clGetDeviceInfo(device, AMD_TOPOLOGY, sizeof bytes, bytes, NULL) == CL_SUCCESS) {
        memcpy(&type, bytes, sizeof type);
    }
    if (type == AMD_TOPOLOGY_PCI) {
        write_place(ret_place, (const cl_uint[]){0, bytes[AMD_TOPOLOGY_BYTES - 3],
                                                 bytes[AMD_TOPOLOGY_BYTES - 2],
                                                 bytes[AMD_TOPOLOGY_BYTES - 1]});
    }
}

static void read_nvidia_place(const struct opencl_api *api, cl_device_id device,
                              char ret_place[DEVICES_ID_SIZE])
{
    cl_uint bus = 0;
    cl_uint slot = 0;
    cl_uint domain = 0;
    if (api->clGetDeviceInfo(device, NVIDIA_PCI_BUS, sizeof bus, &bus, NULL) != CL_SUCCESS ||
        api->clGetDeviceInfo(device, NVIDIA_PCI_SLOT, sizeof slot, &slot, NULL) != CL_SUCCESS) {
        return;
    }
    (void)api->clGetDeviceInfo(device, NVIDIA_PCI_DOMAIN, sizeof domain, &domain, NULL);
    write_place(ret_place, (const cl_uint[]){domain, bus, slot, 0});
}

/* Writes the place of the device, or leaves "" when the library does not tell one. */
static void read_place(const struct opencl_api *api, struct device_facts *facts)
{
    cl_uint parts[4] = {0};
    if (has_extension(api, facts->handle, "cl_khr_pci_bus_info") &&
        api->clGetDeviceInfo(facts->handle, PCI_BUS_INFO, sizeof parts, parts, NULL) ==
            CL_SUCCESS) {
        write_place(facts->place, parts);
    } else if (strstr(facts->vendor, "NVIDIA") != NULL) {
        read_nvidia_place(api, facts->handle, facts->place);
    } else if (has_extension(api, facts->handle, "cl_amd_device_attribute_query")) {
        read_amd_place(api, facts->handle, facts->place);
    }
}

static const char *kind_of(const struct opencl_api *api, cl_device_id device)
{
    cl_device_type type = 0;
    (void)api->clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    return (type & CL_DEVICE_TYPE_CPU) != 0   ? "cpu"
           : (type & CL_DEVICE_TYPE_GPU) != 0 ? "gpu"
                                              : "accelerator";
}

static void read_facts(const struct opencl_api *api, struct device_facts *facts)
{
    cl_device_id id = facts->handle;
    size_t work_group = 0;
    read_text(api, id, CL_DEVICE_NAME, facts->name);
    read_text(api, id, CL_DEVICE_VENDOR, facts->vendor);
    read_text(api, id, CL_DRIVER_VERSION, facts->driver);
    facts->kind = kind_of(api, id);
    if (strcmp(facts->kind, "cpu") != 0) {
        read_place(api, facts);
    }
    facts->memory_bytes =
        read_figure(api, id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof facts->memory_bytes);
    facts->has_host_memory =
        strcmp(facts->kind, "cpu") == 0 ||
        read_figure(api, id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(cl_bool)) != 0;
    facts->buffer_bytes =
        read_figure(api, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof facts->buffer_bytes);
    facts->local_bytes = read_figure(api, id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof facts->local_bytes);
    facts->compute_units =
        (uint32_t)read_figure(api, id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof facts->compute_units);
    (void)api->clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof work_group, &work_group,
                               NULL);
    facts->work_group = work_group;
    facts->has_fp64 = has_extension(api, id, "cl_khr_fp64");
    facts->has_fp16 = has_extension(api, id, "cl_khr_fp16");
}

static void add_devices(const struct opencl_api *api, cl_platform_id platform,
                        struct devices *devices)
{
    cl_device_id ids[DEVICES_MAX];
    cl_uint count = 0;
    char raw[RAW_TEXT_BYTES] = "";
    if (api->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES_MAX, ids, &count) != CL_SUCCESS) {
        return; /* a platform without devices says so with an error */
    }
    (void)api->clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof raw - 1, raw, NULL);
    for (cl_uint i = 0; i < count && i < DEVICES_MAX && devices->count < DEVICES_MAX; i++) {
        struct device_facts *facts = &devices->items[devices->count++];
        *facts =
            (struct device_facts){.interface = &opencl_interface, .library = api, .handle = ids[i]};
        (void)snprintf(facts->id, sizeof facts->id, "%zu", devices->count - 1);
        text_printable(raw, strlen(raw), facts->platform_name, sizeof facts->platform_name);
        read_facts(api, facts);
        if (facts->place[0] != '\0') { /* the number is another one where others are hidden */
            (void)snprintf(facts->id, sizeof facts->id, "%s", facts->place);
        }
    }
}

bool opencl_find_devices(const struct opencl_api *api, struct devices *ret_devices,
                         struct problem *ret_problem)
{
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_uint count = 0;
    ret_devices->count = 0;
    const cl_int status = api->clGetPlatformIDs(PLATFORMS_MAX, platforms, &count);
    if (status != CL_SUCCESS || count == 0) {
        const char *why = opencl_api_error(status);
        problem_set(ret_problem, "%s (error %d of OpenCL)",
                    why != NULL ? why : "no OpenCL platform is installed", (int)status);
        return false;
    }
    for (cl_uint i = 0; i < count && i < PLATFORMS_MAX; i++) {
        add_devices(api, platforms[i], ret_devices);
    }
    if (ret_devices->count == 0) {
        problem_set(ret_problem, "%u OpenCL platform%s, and no device on %s", (unsigned)count,
                    text_plural(count), count == 1 ? "it" : "them");
    }
    return ret_devices->count > 0;
}
