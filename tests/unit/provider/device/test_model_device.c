/* The tests make offers of devices that compute models by an execution provider of ONNX Runtime.
 * The offers come from the config and the trial's lines. */
#include "provider/device/model_device.h"

#include "provider/policy.h"
#include "tests/support/config_text.h"
#include "tests/support/suite.h"

#include <string.h>

#define SAID "onnxruntime-1.30.0-fast\nmflops 2500\n"
#define ENTRY                                                                                      \
    "devices: [{onnx: WebGPU, name: web, options: {a: b}, environment: {C: d}, nodes: []}]\n"

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
    (void)snprintf(machine.instrument, sizeof machine.instrument, "cpu.x86_64");
}

/* Notes that the config's devices were tried, with these lines as the result. */
static void tried(const char *said)
{
    struct problem problem;
    machine.model_devices.is_known = true;
    for (size_t i = 0; i < config.device_count; i++) {
        if (config.devices[i].provider.name[0] == '\0') {
            continue;
        }
        struct model_device *device = &machine.model_devices.items[machine.model_devices.count++];
        device->provider = config.devices[i].provider;
        (void)snprintf(device->name, sizeof device->name, "%s", config.devices[i].name);
        ck_assert_msg(model_device_read(said, strlen(said), device, &problem), "%s", problem.text);
    }
}

static void read_config(const char *text)
{
    struct problem problem;
    ck_assert_msg(read_text(text, &config, &problem), "%s", problem.text);
}

static bool offer(struct problem *problem)
{
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

START_TEST(a_provider_is_a_device_of_its_own)
{
    struct problem problem;
    begin();
    read_config(ENTRY);
    ck_assert_str_eq(config.devices[0].provider.settings,
                     "provider WebGPU\noption a=b\nenvironment C=d\n");
    tried(SAID);
    ck_assert_msg(offer(&problem), "%s", problem.text);
    ck_assert_uint_eq(offers.count, 2);
    ck_assert_str_eq(offers.items[1].device.instrument, "webgpu.onnxruntime.webgpu");
    ck_assert_str_eq(offers.items[1].device.label, "web");
    ck_assert_str_eq(attribute(1, "kind")->text, "webgpu");
    ck_assert_str_eq(attribute(1, "executor")->text, "onnx");
    ck_assert_str_eq(attribute(1, "engine")->text, "onnxruntime-1.30.0-fast");
    ck_assert_str_eq(attribute(1, "api")->text, "onnxruntime");
    ck_assert_str_eq(attribute(1, "backend")->text, "webgpu");
    ck_assert(attribute(1, "fp32")->number == INT64_C(2500000000));
    ck_assert_int_eq(attribute(1, "gflops")->number, 2);
    ck_assert_int_eq(attribute(1, "isolation")->number, 1); /* no device file */
    ck_assert_ptr_null(attribute(1, "gemm_fp32"));
    ck_assert_ptr_null(attribute(0, "backend"));
    ck_assert_ptr_eq(offers.items[1].model_device, &machine.model_devices.items[0]);
    ck_assert_ptr_null(offers.items[0].model_device);
}
END_TEST

START_TEST(a_device_file_lowers_the_isolation)
{
    struct problem problem;
    begin();
    read_config("devices: [{onnx: QNN, name: n, nodes: [/dev/null]}]\n");
    tried("onnxruntime-1.30.0-qnn\ntype npu\nvendor Qualcomm Inc.\nmflops 1\n");
    ck_assert_msg(offer(&problem), "%s", problem.text);
    ck_assert_str_eq(offers.items[1].device.instrument, "npu.qualcomm.qnn");
    ck_assert_str_eq(attribute(1, "vendor")->text, "qualcomm");
    ck_assert_int_eq(attribute(1, "isolation")->number, 0);
}
END_TEST

START_TEST(a_device_that_cannot_be_used_is_left_out)
{
    struct problem problem;
    begin();
    read_config(ENTRY);
    tried(SAID);
    (void)snprintf(machine.model_devices.items[0].unusable,
                   sizeof machine.model_devices.items[0].unusable, "no driver");
    ck_assert_msg(offer(&problem), "%s", problem.text);
    ck_assert_uint_eq(offers.count, 1);
    ck_assert_uint_eq(offers.items[0].device.slots, 4); /* its core is the first device's */
}
END_TEST

START_TEST(other_settings_need_a_restart)
{
    static const char *const others[] = {
        "devices: [{onnx: WebGPU, name: web, options: {a: c}, environment: {C: d}, nodes: []}]\n",
        "devices: [{onnx: WebGPU, name: web, options: {a: b}, environment: {C: d}}]\n",
        "devices: [{onnx: WebGPU, name: new, options: {a: b}, environment: {C: d}, nodes: []}]\n",
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct problem problem = {""};
        begin();
        read_config(ENTRY);
        tried(SAID);
        read_config(others[i]);
        ck_assert(!offer(&problem));
        ck_assert_ptr_nonnull(strstr(problem.text, "is tried at a start alone: restart the agent"));
    }
}
END_TEST

START_TEST(kinds_follow_the_providers)
{
    static const char *const kinds[][2] = {
        {"WebGPU", "webgpu"},
        {"WebGpuExecutionProvider", "webgpu"},
        {"CUDA", "gpu"},
        {"TensorRT", "gpu"},
        {"TensorrtExecutionProvider", "gpu"},
        {"MIGraphX", "gpu"},
        {"QNN", "npu"},
        {"CoreML", "npu"},
        {"XNNPACK", "cpu"},
        {"CPU", "cpu"},
        {"OpenVINO", "custom"},
        {"Azure", "custom"},
        {"ExecutionProvider", "custom"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        ck_assert_str_eq(model_device_kind(kinds[i][0]), kinds[i][1]);
    }
}
END_TEST

START_TEST(lines_that_say_too_little_are_refused)
{
    static const char *const wrong[] = {
        "", "\n", "name", "name\n", "name\nmflops 0\n", "name\nmflops -3\n", "name\nmflops 3"};
    struct model_device device = {.provider = {.name = "WebGPU"}};
    struct problem problem = {""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!model_device_read(wrong[i], strlen(wrong[i]), &device, &problem), "%s",
                      wrong[i]);
    }
    ck_assert(model_device_read("a\nother\ntype gpu\nmflops 3\n", 27, &device, &problem));
    ck_assert_str_eq(device.kind, "webgpu"); /* whatever the hardware is */
}
END_TEST

START_TEST(entries_that_are_none_are_refused_with_their_line)
{
    static const char *const wrong[][2] = {
        {"onnx: WebGPU, opencl: 0", "does not go with opencl"},
        {"onnx: WebGPU, simulate: groq-lpu-v1", "does not go with simulate"},
        {"onnx: WebGPU, plugin: /opt/p", "does not go with onnx"},
        {"onnx: 'Web GPU'", "is of letters and digits, as in WebGPU"},
        {"onnx: ''", "is of letters and digits, as in WebGPU"},
        {"onnx: CPU", "processor cores compute models without an entry of their own"},
        {"options: {a: b}", "goes with a provider of ONNX Runtime"},
        {"environment: {a: b}", "goes with a provider of ONNX Runtime"},
        {"library: /usr/bin/env", "goes with a provider of ONNX Runtime"},
        {"onnx: CUDA, library: /nonexistent.so", "is no file below /usr or /opt"},
        {"onnx: CUDA, library: /etc/passwd", "is no file below /usr or /opt"},
        {"onnx: CUDA, options: {'a=b': c}", "a name is printable, without \"=\""},
        {"onnx: CUDA, options: [a]", "options"},
        {"onnx: CUDA, nodes: [/etc/passwd]", "a node is a device file"},
        {"nodes: [/dev/null]", "name it with `plugin` or `onnx`"},
    };
    char text[2400];
    struct problem problem = {""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        (void)snprintf(text, sizeof text, "devices: [{name: x, %s}]\n", wrong[i][0]);
        ck_assert_msg(!read_text(text, &config, &problem), "%s", text);
        ck_assert_msg(strstr(problem.text, wrong[i][1]) != NULL, "%s: %s", text, problem.text);
    }
    const int length = snprintf(text, sizeof text, "devices: [{name: x, onnx: CUDA, options: {");
    for (int i = 0; i < 16; i++) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "a%d: %080d, ", i, i);
    }
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), "}}]\n");
    ck_assert_int_gt(length, 0);
    ck_assert(!read_text(text, &config, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "are longer than 1023 bytes"));
}
END_TEST

SUITE("model device", NULL, NULL, TEST(a_provider_is_a_device_of_its_own),
      TEST(a_device_file_lowers_the_isolation), TEST(a_device_that_cannot_be_used_is_left_out),
      TEST(other_settings_need_a_restart), TEST(kinds_follow_the_providers),
      TEST(lines_that_say_too_little_are_refused),
      TEST(entries_that_are_none_are_refused_with_their_line))
