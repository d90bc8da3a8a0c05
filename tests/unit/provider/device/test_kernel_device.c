/* The tests take devices for kernels from bourse-kernel's list to the offer. */
#include "provider/device/kernel_device.h"
#include "provider/policy.h"
#include "tests/support/config_text.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST                                                                                       \
    "{\"api\":\"opencl\",\"devices\":["                                                            \
    "{\"id\":\"0\",\"platform\":\"Portable Computing "                                             \
    "Language\",\"name\":\"pthread-skylake\",\"vendor\":"                                          \
    "\"GenuineIntel\",\"driver\":\"3.1\",\"kind\":\"cpu\",\"memory_bytes\":4294967296,"            \
    "\"local_bytes\":524288,\"compute_units\":2,\"work_group\":4096,\"fp64\":true,\"fp16\":false}" \
    ","                                                                                            \
    "{\"id\":\"1\",\"platform\":\"NVIDIA CUDA\",\"name\":\"NVIDIA H100 80GB HBM3\",\"vendor\":"    \
    "\"NVIDIA Corporation\",\"driver\":\"550\",\"kind\":\"gpu\",\"memory_bytes\":85899345920,"     \
    "\"local_bytes\":49152,\"compute_units\":132,\"work_group\":1024,\"fp64\":true,\"fp16\":true}" \
    "],\"problem\":\"\"}\n"

#define CUDA_LIST                                                                                  \
    "{\"api\":\"cuda\",\"devices\":[{\"id\":\"0000:3b:00.0\",\"platform\":\"NVIDIA CUDA\","        \
    "\"name\":\"NVIDIA H100 PCIe\",\"vendor\":\"NVIDIA Corporation\",\"driver\":\"CUDA 12.4\","    \
    "\"target\":\"sm_90\",\"kind\":\"gpu\",\"memory_bytes\":85899345920,\"fp64\":true}],"          \
    "\"problem\":\"\"}\n"

static struct config config;
static struct machine machine;
static struct offers offers;
static const struct isolation jailed = {.level = 1};
static const struct profile profile = {.mflops = {.value = 12000}};
static const struct key32 account = {{7}};

static void begin(void)
{
    memset(&machine, 0, sizeof machine);
    machine.cores = 4;
    machine.memory_bytes = UINT64_C(16) << 30;
    (void)snprintf(machine.arch, sizeof machine.arch, "x86_64");
    (void)snprintf(machine.instrument, sizeof machine.instrument, "cpu.x86_64");
    ck_assert(kernel_device_read(LIST, strlen(LIST), KERNEL_OPENCL,
                                 &machine.kernel_devices[KERNEL_OPENCL]));
    for (size_t i = 0; i < machine.kernel_devices[KERNEL_OPENCL].count; i++) {
        machine.kernel_devices[KERNEL_OPENCL].items[i].mflops = 56000;
        machine.kernel_devices[KERNEL_OPENCL].items[i].bandwidth_bytes = 17000000000;
    }
}

static bool offer(const char *text, struct problem *problem)
{
    ck_assert_msg(read_text(text, &config, problem), "%s", problem->text);
    return policy_offers(&config, &machine, &profile, &jailed, &account, &offers, problem);
}

static const struct attribute *attribute(size_t which, const char *name)
{
    const struct offer *one = &offers.items[which];
    for (size_t i = 0; i < one->device.attribute_count; i++) {
        if (strcmp(one->attributes[i].name, name) == 0) {
            return &one->attributes[i];
        }
    }
    return NULL;
}

START_TEST(a_list_is_read_and_nonsense_is_not)
{
    static const char *const wrong[] = {"",
                                        "{}",
                                        "[]",
                                        "{\"api\":\"opencl\",\"devices\":[{}]}",
                                        "{\"api\":\"opencl\",\"devices\":[{\"name\":\"x\"}]}",
                                        "{\"devices\":[]}"};
    struct kernel_device_list list;
    ck_assert_uint_eq(machine.kernel_devices[KERNEL_OPENCL].count, 2);
    ck_assert(machine.kernel_devices[KERNEL_OPENCL].is_known &&
              machine.kernel_devices[KERNEL_OPENCL].items[1].index == 1);
    ck_assert_uint_eq(machine.kernel_devices[KERNEL_OPENCL].items[1].compute_units, 132);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert(!kernel_device_read(wrong[i], strlen(wrong[i]), KERNEL_OPENCL, &list));
        ck_assert(list.count == 0);
    }
}
END_TEST

START_TEST(a_device_of_cuda_is_offered_beside_one_of_opencl)
{
    struct kernel_device_list *list = &machine.kernel_devices[KERNEL_CUDA];
    struct problem problem = {""};
    ck_assert(!kernel_device_read(CUDA_LIST, strlen(CUDA_LIST), KERNEL_OPENCL, list));
    ck_assert(kernel_device_read(CUDA_LIST, strlen(CUDA_LIST), KERNEL_CUDA, list));
    ck_assert(list->items[0].api == KERNEL_CUDA && list->items[0].node == -1);
    ck_assert_str_eq(list->items[0].id, "0000:3b:00.0");
    ck_assert_str_eq(list->items[0].target, "sm_90");
    list->items[0].mflops = 56000;
    list->items[0].bandwidth_bytes = 17000000000;
    ck_assert_msg(offer("devices: [{cuda: h100, price: 0.5}, {opencl: 1, name: a}]\n", &problem),
                  "%s", problem.text);
    ck_assert_uint_eq(offers.count, 3);
    ck_assert_str_eq(attribute(1, "api")->text, "cuda");
    ck_assert_str_eq(attribute(1, "kind")->text, "gpu");
    ck_assert_str_eq(attribute(1, "instrument")->text, "gpu.nvidia.h100-pcie");
    ck_assert_str_eq(attribute(1, "label")->text, "cuda-h100");
    ck_assert_int_eq(attribute(1, "isolation")->number, 0);
    ck_assert_str_eq(attribute(2, "api")->text, "opencl");
    ck_assert_int_eq(attribute(2, "memory")->number, 85899345920);
    ck_assert(offer_is_open(&offers.items[1]) && !offer_is_open(&offers.items[0]));
    ck_assert_uint_eq(offers.items[1].kernel_bytes, 85899345920);
    ck_assert_uint_eq(offers.items[0].kernel_bytes, 0);
    ck_assert(!offer("devices: [{cuda: 0, name: gpu0, slots: 2}]\n", &problem));
    ck_assert_str_eq(problem.text,
                     "\"gpu0\" has 2 slots, and its files in /dev are in the jails of its jobs, "
                     "which then reach the memory of one another; a device with isolation 0 has "
                     "one slot: leave `slots` out");
    ck_assert_msg(offer("devices: [{opencl: 0, slots: 2}]\n", &problem), "%s", problem.text);
    ck_assert(!offer_is_open(&offers.items[1])); /* its memory is the jails' own */
    ck_assert(!offer("devices: [{cuda: 0, name: a}, {cuda: h100, name: b}]\n", &problem));
    ck_assert_str_eq(problem.text, "\"a\" and \"b\" are one device, CUDA 0 \"NVIDIA H100 PCIe\"; "
                                   "offer it once");
    ck_assert_msg(offer("devices: [{opencl: 0, name: a}, {opencl: 0, name: b}]\n", &problem), "%s",
                  problem.text); /* made of cores, of which each has its own */
    ck_assert(!offer("devices: [{cuda: 1, name: a}]\n", &problem));
    ck_assert_str_eq(problem.text, "no CUDA device \"1\"; there is 0 \"NVIDIA H100 PCIe\"");
    ck_assert(!read_text("devices: [{cuda: 0, opencl: 0}]\n", &config, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "a device is reached by one interface"));
    ck_assert(!read_text("devices: [{cuda: 0, simulate: groq-lpu-v1}]\n", &config, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "leave cuda or simulate out"));
}
END_TEST

static bool has_text(size_t which, const char *name, const char *text)
{
    const struct offer *its = &offers.items[which];
    bool found = false;
    for (size_t i = 0; i < its->device.attribute_count && !found; i++) {
        found = strcmp(its->attributes[i].name, name) == 0 &&
                strcmp(its->attributes[i].text, text) == 0;
    }
    return found;
}

START_TEST(a_device_whose_products_were_right_computes_matrices)
{
    struct problem problem = {""};
    struct kernel_device_list *list = &machine.kernel_devices[KERNEL_OPENCL];
    list->items[1].gemm_mflops = 98000;
    ck_assert_msg(offer("devices: [{opencl: 0, name: a}, {opencl: 1, name: b}]\n", &problem), "%s",
                  problem.text);
    ck_assert(has_text(1, "executor", "kernel") && has_text(2, "executor", "kernel"));
    ck_assert(!has_text(1, "executor", "tensor") && attribute(1, "gemm_fp32") == NULL);
    ck_assert(has_text(2, "executor", "tensor") && has_text(2, "measured", "gemm_fp32"));
    ck_assert_int_eq(attribute(2, "gemm_fp32")->number, 98000);
    ck_assert_int_eq(attribute(2, "fp32")->number, INT64_C(56000000000)); /* without tiles */
    ck_assert(!has_text(2, "executor", "command"));
}
END_TEST

/* Writes a file below the folder, with the folders above it. */
static void put(const char *folder, const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    ck_assert_msg(file != NULL, "%s", path);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void put_information(const char *folder, const char *text)
{
    put(folder, "gpus/0000:3b:00.0/information", text);
}

static void remove_folder(const char *folder)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static size_t count_nodes(const struct kernel_device *device)
{
    size_t count = 0;
    while (kernel_device_nodes(device)[count] != NULL) {
        count++;
    }
    return count;
}

START_TEST(a_jail_has_the_files_of_its_device_alone)
{
    static const struct {
        const char *text;
        int node;
    } files[] = {
        {"Model: \t\t NVIDIA H100 PCIe\nDevice Minor: \t 3\nGPU Excluded:\t No\n", 3},
        {"Device Minor: \t 12\n", 12},
        {"Device Minor: \t\n", -1},
        {"Device Minor: -1\n", -1},
        {"Model: x\n", -1},
        {"", -1},
    };
    char folder[] = "/tmp/bourse-gpus-XXXXXX";
    struct kernel_device device = {
        .api = KERNEL_CUDA, .id = "0000:3b:00.0", .kind = "gpu", .vendor = "NVIDIA Corporation"};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    kernel_device_learn_node(folder, &device);
    ck_assert_int_eq(device.node, -1);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        put_information(folder, files[i].text);
        kernel_device_learn_node(folder, &device);
        ck_assert_msg(device.node == files[i].node, "%s: %d", files[i].text, device.node);
        ck_assert_uint_eq(count_nodes(&device), device.node >= 0 ? 3 : 10);
    }
    device.node = 3;
    ck_assert_str_eq(kernel_device_nodes(&device)[0], "/dev/nvidiactl");
    ck_assert_str_eq(kernel_device_nodes(&device)[1], "/dev/nvidia-uvm");
    ck_assert_str_eq(kernel_device_nodes(&device)[2], "/dev/nvidia3");
    device.node = 12;
    ck_assert_str_eq(kernel_device_nodes(&device)[2], "/dev/nvidia12");
    device.node = 254;
    ck_assert_str_eq(kernel_device_nodes(&device)[2], "/dev/nvidia254");
    put_information(folder, "Device Minor: 4\n");
    (void)snprintf(device.id, sizeof device.id, "x/../0000:3b:00.0"); /* no place on the bus */
    kernel_device_learn_node(folder, &device);
    ck_assert_int_eq(device.node, -1);
    remove_folder(folder);
}
END_TEST

/* An instance of MIG has the driver's files, that of its GPU, and its own two. */
START_TEST(a_jail_has_the_files_of_its_instance_alone)
{
    static const char *const wanted[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia3",
                                         "/dev/nvidia-caps/nvidia-cap40",
                                         "/dev/nvidia-caps/nvidia-cap41"};
    char folder[] = "/tmp/bourse-gpus-XXXXXX";
    struct kernel_device first = {.api = KERNEL_CUDA,
                                  .id = "MIG-1",
                                  .whole = "0000:3b:00.0",
                                  .kind = "gpu",
                                  .vendor = "NVIDIA Corporation",
                                  .gpu_instance = 5,
                                  .compute_instance = 1};
    struct kernel_device second = first;
    second.gpu_instance = 7;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    kernel_device_learn_node(folder, &first);
    ck_assert(first.node == -1 && first.caps[0] == -1 && first.caps[1] == -1);
    ck_assert_uint_eq(count_nodes(&first), 1); /* never the files of other instances */
    put_information(folder, "Device Minor: 3\n");
    put(folder, "capabilities/gpu3/mig/gi5/access", "DeviceFileMinor: 40\nDeviceFileMode: 292\n");
    kernel_device_learn_node(folder, &first);
    ck_assert(first.node == 3 && first.caps[0] == 40 && first.caps[1] == -1);
    ck_assert_uint_eq(count_nodes(&first), 1);
    put(folder, "capabilities/gpu3/mig/gi5/ci1/access", "DeviceFileMinor: 41\n");
    put(folder, "capabilities/gpu3/mig/gi7/access", "DeviceFileMinor: 67\n");
    put(folder, "capabilities/gpu3/mig/gi7/ci1/access", "DeviceFileMinor: 68\n");
    kernel_device_learn_node(folder, &first);
    kernel_device_learn_node(folder, &second);
    ck_assert_uint_eq(count_nodes(&first), 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(kernel_device_nodes(&first)[i], wanted[i]);
    }
    ck_assert_uint_eq(count_nodes(&second), 5);
    ck_assert_str_eq(kernel_device_nodes(&second)[4], "/dev/nvidia-caps/nvidia-cap68");
    ck_assert_str_eq(kernel_device_nodes(&first)[4], wanted[4]);
    remove_folder(folder);
}
END_TEST

START_TEST(a_device_is_named_by_number_or_part_of_its_name)
{
    struct problem problem;
    ck_assert_ptr_eq(kernel_device_find(&machine.kernel_devices[KERNEL_OPENCL], "1", &problem),
                     &machine.kernel_devices[KERNEL_OPENCL].items[1]);
    ck_assert_ptr_eq(kernel_device_find(&machine.kernel_devices[KERNEL_OPENCL], "h100", &problem),
                     &machine.kernel_devices[KERNEL_OPENCL].items[1]);
    ck_assert_ptr_null(kernel_device_find(&machine.kernel_devices[KERNEL_OPENCL], "2", &problem));
    ck_assert_str_eq(problem.text, "no OpenCL device \"2\"; there is 0 \"pthread-skylake\", 1 "
                                   "\"NVIDIA H100 80GB HBM3\"");
}
END_TEST

START_TEST(cores_are_never_taken_for_a_gpu)
{
    struct problem problem = {""};
    ck_assert_msg(
        offer("devices: [{opencl: 0, name: cores}, {opencl: H100, price: 0.5}]\n", &problem), "%s",
        problem.text);
    ck_assert_uint_eq(offers.count, 3);
    ck_assert_str_eq(attribute(1, "kind")->text, "cpu");
    ck_assert_str_eq(attribute(1, "instrument")->text, "cpu.opencl.pocl");
    ck_assert_int_eq(attribute(1, "isolation")->number, 1);
    ck_assert(attribute(1, "memory")->number == (int64_t)offers.items[1].memory_bytes);
    ck_assert_str_eq(attribute(2, "kind")->text, "gpu");
    ck_assert_str_eq(attribute(2, "instrument")->text, "gpu.nvidia.h100-80gb-hbm3");
    ck_assert_str_eq(attribute(2, "label")->text, "opencl-H100");
    ck_assert_int_eq(attribute(2, "isolation")->number, 0); /* the driver's files are in its jail */
    ck_assert(attribute(2, "memory")->number == 85899345920);
    for (size_t i = 1; i < 3; i++) {
        ck_assert_str_eq(attribute(i, "executor")->text, "kernel");
        ck_assert_str_eq(attribute(i, "api")->text, "opencl");
        ck_assert(attribute(i, "fp32")->number == INT64_C(56000000000));
        ck_assert_ptr_null(attribute(i, "program"));
    }
    ck_assert_uint_eq(offers.items[1].first_core, 2); /* a core of its own each */
    ck_assert_uint_eq(offers.items[2].first_core, 3);
    ck_assert_uint_eq(offers.items[0].device.slots, 2);
}
END_TEST

START_TEST(a_device_that_cannot_be_used_is_left_out)
{
    struct problem problem = {""};
    (void)snprintf(machine.kernel_devices[KERNEL_OPENCL].items[1].unusable,
                   sizeof machine.kernel_devices[KERNEL_OPENCL].items[1].unusable, "it hangs");
    ck_assert(offer("devices: [{opencl: 1, name: a}, {opencl: 0, name: b}]\n", &problem));
    ck_assert_uint_eq(offers.count, 2);
    ck_assert_str_eq(offers.items[1].device.label, "b");
    ck_assert_uint_eq(offers.items[0].device.slots, 3);
    machine.kernel_devices[KERNEL_OPENCL] =
        (struct kernel_device_list){.is_known = true, .problem = "no OpenCL library"};
    ck_assert(offer("devices: [{opencl: 1, name: a}, {opencl: 0, name: b}]\n", &problem));
    ck_assert_uint_eq(offers.count, 1);
    ck_assert_uint_eq(offers.items[0].device.slots, 4);
}
END_TEST

START_TEST(an_unknown_device_is_refused_with_what_there_is)
{
    struct problem problem = {""};
    ck_assert(!offer("devices: [{opencl: MI300, name: a}]\n", &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "no OpenCL device \"MI300\"; there is 0"));
    ck_assert(!read_text("devices: [{opencl: 0, simulate: groq-lpu-v1}]\n", &config, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "a device is real or simulated"));
}
END_TEST

START_TEST(a_jail_has_the_files_of_its_opencl_device_alone)
{
    char folder[] = "/tmp/bourse-gpus-XXXXXX";
    struct kernel_device device = {.api = KERNEL_OPENCL,
                                   .id = "0",
                                   .kind = "gpu",
                                   .vendor = "Advanced Micro Devices, Inc.",
                                   .node = -1,
                                   .render = -1};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_uint_eq(count_nodes(&device), 5);
    ck_assert(kernel_device_shows_others(&device));
    put(folder, "0000:c1:00.0/drm/card1/dev", "");
    put(folder, "0000:c1:00.0/drm/renderD129/dev", "");
    put(folder, "0000:c2:00.0/drm/renderD1/dev", "");
    put(folder, "0000:c3:00.0/drm/renderD130x/dev", "");
    kernel_device_learn_render(folder, &device); /* its place is not known */
    ck_assert_int_eq(device.render, -1);
    (void)strcpy(device.place, "0000:c1:00.0");
    kernel_device_learn_node(folder, &device); /* NVIDIA's driver tells nothing of it */
    kernel_device_learn_render(folder, &device);
    ck_assert_int_eq(device.node, -1);
    ck_assert_int_eq(device.render, 129);
    ck_assert(!kernel_device_shows_others(&device));
    ck_assert_uint_eq(count_nodes(&device), 2);
    ck_assert_str_eq(kernel_device_nodes(&device)[0], "/dev/dri/renderD129");
    ck_assert_str_eq(kernel_device_nodes(&device)[1], "/dev/kfd");
    (void)strcpy(device.vendor, "Intel(R) Corporation");
    device.render = 130;
    ck_assert_uint_eq(count_nodes(&device), 1);
    ck_assert_str_eq(kernel_device_nodes(&device)[0], "/dev/dri/renderD130");
    for (int i = 2; i <= 4; i++) { /* no file below the place is one that a jail may have */
        (void)snprintf(device.place, sizeof device.place, "0000:c%d:00.0", i);
        kernel_device_learn_render(folder, &device);
        ck_assert_int_eq(device.render, -1);
    }
    (void)strcpy(device.vendor, "NVIDIA Corporation");
    (void)strcpy(device.place, "0000:3b:00.0");
    put_information(folder, "Device Minor: 2\n");
    kernel_device_learn_node(folder, &device);
    ck_assert_uint_eq(count_nodes(&device), 3);
    ck_assert_str_eq(kernel_device_nodes(&device)[2], "/dev/nvidia2");
    remove_folder(folder);
}
END_TEST

SUITE("kernel_device", begin, NULL, TEST(a_device_whose_products_were_right_computes_matrices),
      TEST(a_list_is_read_and_nonsense_is_not),
      TEST(a_device_of_cuda_is_offered_beside_one_of_opencl),
      TEST(a_jail_has_the_files_of_its_instance_alone),
      TEST(a_jail_has_the_files_of_its_device_alone),
      TEST(a_jail_has_the_files_of_its_opencl_device_alone),
      TEST(a_device_is_named_by_number_or_part_of_its_name), TEST(cores_are_never_taken_for_a_gpu),
      TEST(a_device_that_cannot_be_used_is_left_out),
      TEST(an_unknown_device_is_refused_with_what_there_is))
