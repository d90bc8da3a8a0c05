/* The instances of a device that is split by MIG are devices of their own, and the whole device is
 * none. The libraries are stand-ins, which fail wherever they are told to. */
#include "provider/device/kernel_device.h"
#include "provider/kernel/cuda.h"
#include "provider/kernel/mig.h"
#include "provider/kernel/nvml.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST "MIG-00112233-4455-6677-8899-aabbccddee01"
#define LAST "MIG-00112233-4455-6677-8899-aabbccddee03"

static struct nvml_api nvml;
static struct cuda_api cuda;
static struct devices devices;
/* Functions of the fake libraries. */
static void (*fail_at)(const char *function, int result);
static void (*split)(int is_split);
static int (*count_alive)(void);

static void find(const char *name, void *ret_function)
{
    void *place = dlsym(nvml.library, name);
    ck_assert_ptr_nonnull(place);
    memcpy(ret_function, &place, sizeof place);
}

static void begin(void)
{
    struct problem problem = {""};
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    ck_assert_msg(nvml_api_load(BOURSE_FAKE_NVML, &nvml, &problem), "%s", problem.text);
    ck_assert_msg(cuda_api_load(BOURSE_FAKE_CUDA, &cuda, &problem), "%s", problem.text);
    find("fake_nvml_fail", (void *)&fail_at);
    find("fake_nvml_split", (void *)&split);
    find("fake_nvml_alive", (void *)&count_alive);
    fail_at(NULL, 0);
    split(1);
    ck_assert_msg(cuda_find_devices(&cuda, &devices, &problem), "%s", problem.text);
    ck_assert_uint_eq(devices.count, 2);
}

static void end(void)
{
    fail_at(NULL, 0);
    ck_assert_int_eq(count_alive(), 0); /* the list leaves the library as it was */
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
}

START_TEST(the_instances_come_in_the_place_of_their_device)
{
    mig_replace(&nvml, &cuda_interface, &devices);
    ck_assert_uint_eq(devices.count, 3);
    ck_assert_str_eq(devices.items[0].id, FIRST);
    ck_assert_str_eq(devices.items[0].name, "NVIDIA Fake F100 MIG 1g.4mb");
    ck_assert_str_eq(devices.items[0].whole, "0000:3b:00.0");
    ck_assert_str_eq(devices.items[0].target, "sm_90");
    ck_assert_uint_eq(devices.items[0].memory_bytes, 4 << 20);
    ck_assert_uint_eq(devices.items[0].gpu_instance, 1);
    ck_assert_str_eq(devices.items[1].id, LAST);
    ck_assert_uint_eq(devices.items[1].gpu_instance, 5);
    ck_assert_str_eq(devices.items[2].id, "0000:4b:00.0");
    ck_assert_str_eq(devices.items[2].whole, "");
}
END_TEST

START_TEST(a_device_that_is_not_split_stays)
{
    split(0);
    mig_replace(&nvml, &cuda_interface, &devices);
    ck_assert_uint_eq(devices.count, 2);
    ck_assert_str_eq(devices.items[0].id, "0000:3b:00.0");
}
END_TEST

/* CUDA shows no device to a process that may not use an instance. */
START_TEST(instances_are_found_where_cuda_shows_nothing)
{
    devices.count = 0;
    mig_replace(&nvml, &cuda_interface, &devices);
    ck_assert_uint_eq(devices.count, 2);
    ck_assert_str_eq(devices.items[1].id, LAST);
}
END_TEST

START_TEST(no_more_instances_are_taken_than_there_is_room_for)
{
    devices.count = DEVICES_MAX;
    for (size_t i = 2; i < DEVICES_MAX; i++) {
        devices.items[i] = devices.items[1];
    }
    mig_replace(&nvml, &cuda_interface, &devices);
    ck_assert_uint_eq(devices.count, DEVICES_MAX); /* the whole one went, and one instance came */
    ck_assert_str_eq(devices.items[0].id, FIRST);
    ck_assert_str_eq(devices.items[1].id, "0000:4b:00.0");
}
END_TEST

/* A call that fails hides the instances. A device that is known to be split is never offered. */
START_TEST(each_call_fails_alone)
{
    static const struct {
        const char *function;
        size_t count;
    } calls[] = {{"nvmlInit_v2", 2},
                 {"nvmlDeviceGetCount_v2", 2},
                 {"nvmlDeviceGetHandleByIndex_v2", 2},
                 {"nvmlDeviceGetMigMode", 2},
                 {"nvmlDeviceGetPciInfo_v3", 2},
                 {"nvmlDeviceGetMaxMigDeviceCount", 1},
                 {"nvmlDeviceGetMigDeviceHandleByIndex", 1},
                 {"nvmlDeviceGetUUID", 1},
                 {"nvmlDeviceGetName", 1},
                 {"nvmlDeviceGetMemoryInfo", 1},
                 {"nvmlDeviceGetGpuInstanceId", 1},
                 {"nvmlDeviceGetComputeInstanceId", 1},
                 {"nvmlDeviceGetCudaComputeCapability", 3}};
    const struct devices whole = devices;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        devices = whole;
        fail_at(calls[i].function, NVML_UNKNOWN);
        mig_replace(&nvml, &cuda_interface, &devices);
        ck_assert_msg(devices.count == calls[i].count, "%s: %zu", calls[i].function, devices.count);
    }
    fail_at(NULL, 0);
    nvml.nvmlDeviceGetUUID = NULL;
    devices = whole;
    mig_replace(&nvml, &cuda_interface, &devices);
    ck_assert_uint_eq(devices.count, 2);
}
END_TEST

START_TEST(the_driver_shows_the_instance_that_was_asked_for)
{
    struct problem problem = {""};
    struct devices shown;
    ck_assert(mig_show_only("0000:3b:00.0"));
    ck_assert_ptr_null(getenv("CUDA_VISIBLE_DEVICES"));
    ck_assert(mig_show_only(FIRST));
    ck_assert_str_eq(getenv("CUDA_VISIBLE_DEVICES"), FIRST);
    ck_assert(cuda_find_devices(&cuda, &shown, &problem));
    ck_assert_str_eq(shown.items[0].id, FIRST);
    ck_assert_str_eq(shown.items[1].id, "0000:4b:00.0"); /* its UUID is another one */
    cuda.cuDeviceGetUuid_v2 = NULL;
    ck_assert(cuda_find_devices(&cuda, &shown, &problem));
    ck_assert_str_eq(shown.items[0].id, "0000:3b:00.0");
}
END_TEST

/* Memory and programs are the instance's own, heat and power those of the whole device. */
START_TEST(an_instance_has_figures)
{
    struct nvml_figures figures;
    ck_assert_int_eq(nvml.nvmlInit_v2(), NVML_OK);
    nvml_read(&nvml, LAST, &figures);
    ck_assert(figures.found == NVML_OK && !figures.is_split);
    ck_assert(figures.memory_result == NVML_OK && figures.memory_total == 4 << 20);
    ck_assert(figures.power_result == NVML_OK && figures.power_mw == 61000);
    ck_assert(figures.limit_result == NVML_OK && figures.power_limit_mw == 350000);
    ck_assert_int_eq(figures.compute.result, NVML_OK);
    nvml_read(&nvml, "MIG-nobody", &figures);
    ck_assert_int_eq(figures.found, NVML_NOT_FOUND);
    nvml.nvmlDeviceGetHandleByUUID = NULL;
    nvml_read(&nvml, LAST, &figures);
    ck_assert_int_eq(figures.found, NVML_FUNCTION_NOT_FOUND);
    ck_assert_int_eq(nvml.nvmlShutdown(), NVML_OK);
}
END_TEST

START_TEST(the_agent_reads_the_instances_from_the_list)
{
    static struct kernel_device_list list;
    struct problem problem = {""};
    char *line = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&line, &length);
    mig_replace(&nvml, &cuda_interface, &devices);
    ck_assert(devices_print(out, KERNEL_CUDA, &devices, ""));
    (void)fclose(out);
    ck_assert(kernel_device_read(line, length, KERNEL_CUDA, &list));
    free(line);
    ck_assert_uint_eq(list.count, 3);
    ck_assert_str_eq(list.items[1].id, LAST);
    ck_assert_str_eq(list.items[1].whole, "0000:3b:00.0");
    ck_assert(list.items[1].gpu_instance == 5 && list.items[1].compute_instance == 0);
    ck_assert_str_eq(list.items[2].whole, "");
    ck_assert_ptr_eq(kernel_device_find(&list, LAST, &problem), &list.items[1]);
    ck_assert_ptr_eq(kernel_device_find(&list, "MIG 5g", &problem), &list.items[1]);
}
END_TEST

/* Returns what the list says against the device; "": nothing. */
static const char *said_of(enum kernel_api api, size_t index)
{
    static struct kernel_device_list list;
    char *line = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&line, &length);
    ck_assert(devices_print(out, api, &devices, ""));
    (void)fclose(out);
    ck_assert(kernel_device_read(line, length, api, &list));
    free(line);
    return list.items[index].unusable;
}

START_TEST(a_split_device_of_opencl_is_not_offered_and_says_why)
{
    static const struct device_facts facts[] = {
        {.id = "0",
         .name = "F100",
         .vendor = "NVIDIA Corporation",
         .place = "0000:3b:00.0",
         .kind = "gpu"},
        {.id = "1",
         .name = "F200",
         .vendor = "NVIDIA Corporation",
         .place = "0000:4b:00.0",
         .kind = "gpu"},
        {.id = "2", .name = "untold", .vendor = "NVIDIA Corporation", .kind = "gpu"},
        {.id = "3", .name = "other", .vendor = "FakeMaker", .kind = "gpu"},
    };
    devices.count = 4;
    memcpy(devices.items, facts, sizeof facts);
    mig_mark_split(&nvml, &devices);
    ck_assert(devices.items[0].is_split && !devices.items[1].is_split);
    ck_assert(devices.items[2].is_split && !devices.items[3].is_split);
    ck_assert_str_eq(said_of(KERNEL_OPENCL, 0),
                     "it is split by MIG; offer its instances by `cuda` instead of `opencl`");
    ck_assert_str_eq(said_of(KERNEL_OPENCL, 1), "");
    split(0);
    memcpy(devices.items, facts, sizeof facts);
    mig_mark_split(&nvml, &devices);
    for (size_t i = 0; i < devices.count; i++) {
        ck_assert(!devices.items[i].is_split);
    }
}
END_TEST

SUITE("MIG", begin, end, TEST(the_instances_come_in_the_place_of_their_device),
      TEST(a_device_that_is_not_split_stays), TEST(instances_are_found_where_cuda_shows_nothing),
      TEST(no_more_instances_are_taken_than_there_is_room_for), TEST(each_call_fails_alone),
      TEST(the_driver_shows_the_instance_that_was_asked_for), TEST(an_instance_has_figures),
      TEST(the_agent_reads_the_instances_from_the_list),
      TEST(a_split_device_of_opencl_is_not_offered_and_says_why))
