/* The tests make offers of devices with plug-ins, from the config and the plug-in's answers. */
#include "provider/device/plugin_device.h"

#include "provider/policy.h"
#include "tests/support/config_text.h"
#include "tests/support/suite.h"

#include <string.h>
#include <sys/stat.h>

#define SAID                                                                                       \
    "{\"bourse\":1,\"name\":\"An FPGA\",\"kind\":\"fpga\",\"vendor\":\"acme\",\"model\":\"x-1\","  \
    "\"memory\":8589934592,\"operations\":[\"fft\",\"fir\"]}\n"                                    \
    "{\"fp32\":2500000000,\"bandwidth\":19000000000}\n"                                            \
    "{\"power\":12}\n"

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
}

static void attach(const char *name, const char *path, const char *node)
{
    struct problem problem;
    struct plugin_device *device = &machine.plugins.items[machine.plugins.count++];
    machine.plugins.is_known = true;
    ck_assert_msg(plugin_device_read(SAID, strlen(SAID), device, &problem), "%s", problem.text);
    (void)snprintf(device->name, sizeof device->name, "%s", name);
    (void)snprintf(device->program.path, sizeof device->program.path, "%s", path);
    if (node != NULL) {
        device->program.node_count = 1;
        (void)snprintf(device->program.nodes[0], sizeof device->program.nodes[0], "%s", node);
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

#define TWO                                                                                        \
    "devices:\n- {plugin: /opt/a, name: a}\n"                                                      \
    "- {plugin: /opt/b, nodes: [/dev/b0], name: b, price: 0.5, memory: 1GiB}\n"

START_TEST(a_device_is_offered_as_its_plugin_says)
{
    struct problem problem = {""};
    attach("a", "/opt/a", NULL);
    attach("b", "/opt/b", "/dev/b0");
    ck_assert_msg(offer(TWO, &problem), "%s", problem.text);
    ck_assert_uint_eq(offers.count, 3);
    ck_assert_ptr_null(offers.items[0].plugin);
    ck_assert_str_eq(attribute(0, "executor")->text, "command");
    for (size_t i = 1; i < 3; i++) {
        ck_assert_str_eq(attribute(i, "kind")->text, "fpga");
        ck_assert_str_eq(attribute(i, "instrument")->text, "fpga.acme.x-1");
        ck_assert_str_eq(attribute(i, "model")->text, "An FPGA");
        ck_assert_str_eq(attribute(i, "executor")->text, "plugin");
        ck_assert_str_eq(attribute(i, "operation")->text, "fft");
        ck_assert(attribute(i, "memory")->number == INT64_C(8589934592));
        ck_assert(attribute(i, "fp32")->number == INT64_C(2500000000));
        ck_assert_int_eq(attribute(i, "gflops")->number, 2);
        ck_assert_ptr_null(attribute(i, "measured")); /* the plug-in declares its figures */
        ck_assert_ptr_null(attribute(i, "program"));
        ck_assert_ptr_null(attribute(i, "arch"));
    }
    ck_assert_int_eq(attribute(1, "isolation")->number, 1);
    ck_assert_int_eq(attribute(2, "isolation")->number, 0); /* a device file is in its jail */
    ck_assert_uint_eq(offers.items[0].device.slots, 2);     /* each plug-in's device took a core */
    ck_assert_ptr_eq(offers.items[2].plugin, &machine.plugins.items[1]);
}
END_TEST

static bool read_of(const char *challenge, const char *probe, struct plugin_device *device,
                    struct problem *problem)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "{\"bourse\":1,\"name\":\"An FPGA\",\"kind\":\"fpga\",\"vendor\":\"acme\","
                   "\"model\":\"x-1\",\"operations\":[\"fft\"]%s}\n%s\n{}\n",
                   challenge, probe);
    return plugin_device_read(text, strlen(text), device, problem);
}

START_TEST(a_claim_can_be_challenged_where_the_plugin_multiplies)
{
    static const char multiplies[] = ",\"challenge\":\"gemm_fp32\"";
    static const char speed[] = "{\"gemm_fp32\":7654321000}";
    struct problem problem = {""};
    struct plugin_device *device = &machine.plugins.items[0];
    attach("a", "/opt/a", NULL);
    attach("b", "/opt/b", "/dev/b0");
    ck_assert_msg(read_of(multiplies, speed, device, &problem), "%s", problem.text);
    ck_assert_msg(read_of("", speed, device + 1, &problem), "%s", problem.text);
    ck_assert_msg(offer(TWO, &problem), "%s", problem.text);
    ck_assert_int_eq(attribute(1, "gemm_fp32")->number, 7654);
    ck_assert_str_eq(attribute(1, "challenge")->text, "gemm_fp32");
    ck_assert_ptr_null(attribute(1, "measured"));
    ck_assert_int_eq(attribute(2, "gemm_fp32")->number, 7654); /* claimed, and no more */
    ck_assert_ptr_null(attribute(2, "challenge"));
    ck_assert(!read_of(multiplies, "{\"gemm_fp32\":999999}", device, &problem));
    ck_assert_str_eq(problem.text,
                     "the plug-in lets its \"gemm_fp32\" be challenged, and its probe "
                     "tells no such figure of 1e6 or more");
}
END_TEST

START_TEST(a_device_whose_plugin_cannot_be_used_is_left_out)
{
    struct problem problem = {""};
    attach("a", "/opt/a", NULL);
    attach("b", "/opt/b", "/dev/b0");
    (void)snprintf(machine.plugins.items[0].unusable, 16, "it dies");
    ck_assert_msg(offer(TWO, &problem), "%s", problem.text);
    ck_assert_uint_eq(offers.count, 2);
    ck_assert_str_eq(offers.items[1].device.label, "b");
    ck_assert_uint_eq(offers.items[0].device.slots, 3);
}
END_TEST

START_TEST(another_plugin_waits_for_a_restart)
{
    struct problem problem = {""};
    attach("a", "/opt/a", NULL);
    ck_assert(!offer(TWO, &problem));
    ck_assert_str_eq(problem.text,
                     "the plug-in of \"b\" is asked at a start alone: restart the agent");
    attach("b", "/opt/b", "/dev/b1");
    ck_assert(!offer(TWO, &problem));
}
END_TEST

START_TEST(a_wrong_entry_is_refused_with_its_line)
{
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {"devices: [{plugin: /opt/a}]\n", "\"name:\" is missing"},
        {"devices: [{plugin: a, name: a}]\n", "a plug-in is named by its whole path"},
        {"devices: [{plugin: /opt/../a, name: a}]\n", "a plug-in is named by its whole path"},
        {"devices: [{plugin: /opt/, name: a}]\n", "a plug-in is named by its whole path"},
        {"devices: [{plugin: /opt/a, opencl: 0, name: a}]\n", "does not go with opencl"},
        {"devices: [{plugin: /opt/a, simulate: groq-lpu-v1}]\n", "does not go with simulate"},
        {"devices: [{name: a, nodes: [/dev/a]}]\n", "nodes are the device files of a plug-in"},
        {"devices: [{plugin: /opt/a, name: a, nodes: [/etc/a]}]\n", "a node is a device file"},
        {"devices: [{plugin: /opt/a, name: a, nodes: [/dev/../a]}]\n", "a node is a device file"},
        {"devices: [{plugin: /opt/a, name: a, nodes: /dev/a}]\n", "nodes"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problem problem;
        ck_assert_msg(!read_text(wrong[i].text, &config, &problem), "taken: %s", wrong[i].text);
        ck_assert_msg(strstr(problem.text, wrong[i].said) != NULL, "%s", problem.text);
    }
}
END_TEST

START_TEST(there_are_as_many_as_the_machine_keeps)
{
    static char text[4096] = "devices:\n";
    struct problem problem;
    for (int i = 0; i <= PLUGIN_DEVICES_MAX; i++) {
        const size_t used = strlen(text);
        ck_assert(i == 0 || read_text(text, &config, &problem));
        (void)snprintf(text + used, sizeof text - used, "- {plugin: /opt/a, name: d%d}\n", i);
    }
    ck_assert(!read_text(text, &config, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "more than 16 devices with a plug-in"));
}
END_TEST

START_TEST(what_is_missing_of_a_program_is_said)
{
    struct plugin_program program = {.path = "/usr/bin/env"};
    struct problem problem;
    ck_assert_msg(plugin_device_check(&program, &problem), "%s", problem.text);
    program.node_count = 1;
    (void)snprintf(program.nodes[0], sizeof program.nodes[0], "/dev/null");
    ck_assert_msg(plugin_device_check(&program, &problem), "%s", problem.text);
    (void)snprintf(program.nodes[0], sizeof program.nodes[0], "/dev/no-such-device");
    ck_assert(!plugin_device_check(&program, &problem));
    ck_assert_str_eq(problem.text,
                     "the device file /dev/no-such-device: No such file or directory");
    (void)snprintf(program.nodes[0], sizeof program.nodes[0], "/usr/bin/env");
    ck_assert(!plugin_device_check(&program, &problem));
    ck_assert_str_eq(problem.text, "/usr/bin/env is no device file");
    (void)snprintf(program.path, sizeof program.path, "/usr/bin");
    ck_assert(!plugin_device_check(&program, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "it cannot be executed"));
}
END_TEST

START_TEST(less_than_three_lines_are_no_answers)
{
    struct plugin_device device;
    struct problem problem;
    ck_assert(!plugin_device_read("", 0, &device, &problem));
    ck_assert(!plugin_device_read(SAID, strlen(SAID) - 1, &device, &problem));
    ck_assert_str_eq(problem.text, "bourse-plugin prints 2 lines of 3");
}
END_TEST

SUITE("plugin_device", begin, NULL, TEST(a_device_is_offered_as_its_plugin_says),
      TEST(a_claim_can_be_challenged_where_the_plugin_multiplies),
      TEST(a_device_whose_plugin_cannot_be_used_is_left_out),
      TEST(another_plugin_waits_for_a_restart), TEST(a_wrong_entry_is_refused_with_its_line),
      TEST(there_are_as_many_as_the_machine_keeps), TEST(what_is_missing_of_a_program_is_said),
      TEST(less_than_three_lines_are_no_answers))
