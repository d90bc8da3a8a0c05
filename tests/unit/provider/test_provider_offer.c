/* The tests go from the machine and the config to the offer. The machine is in
 * test_provider_machine.c, the config in test_provider_config.c. */
#include "formats/requirement.h"
#include "provider/config.h"
#include "provider/device/discover.h"
#include "provider/device/probe.h"
#include "provider/policy.h"
#include "provider/work/lanes_internal.h"
#include "tests/support/config_text.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)

static struct machine machine; /* large */

static struct config config;

static const struct isolation jailed = {.level = 1};
static const struct profile profile = {.mflops = {.value = 12000},
                                       .bandwidth_bytes = {.value = 9000000000}};
static const struct key32 account = {{7}};
static struct offers offers;
static const struct offer *const first = &offers.items[0];

static void machine_of(uint32_t cores, uint64_t memory_bytes)
{
    struct problem problem;
    char text[64];
    (void)snprintf(text, sizeof text, "core:%u pu:1", cores);
    ck_assert(discover_machine(text, &machine, &problem));
    machine.memory_bytes = memory_bytes;
    (void)snprintf(machine.model, sizeof machine.model, "Example 9000");
}

static const struct attribute *attribute(const char *name)
{
    for (size_t i = 0; i < first->device.attribute_count; i++) {
        if (strcmp(first->attributes[i].name, name) == 0) {
            return &first->attributes[i];
        }
    }
    return NULL;
}

static size_t count_text(const char *name, const char *text)
{
    size_t count = 0;
    for (size_t i = 0; i < first->device.attribute_count; i++) {
        count += strcmp(first->attributes[i].name, name) == 0 &&
                 strcmp(first->attributes[i].text, text) == 0;
    }
    return count;
}

START_TEST(an_offer_leaves_the_owner_a_quarter)
{
    struct problem problem;
    machine_of(4, 16 * GIB);
    ck_assert(config_read("/nonexistent", NULL, &config, &problem));
    ck_assert_msg(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem),
                  "%s", problem.text);
    ck_assert_uint_eq(first->device.slots, 4);
    ck_assert_uint_le(4 * (first->memory_bytes + first->disk_bytes), 12 * GIB);
    ck_assert_uint_ge(4 * (first->memory_bytes + first->disk_bytes), 11 * GIB);
    ck_assert_str_eq(attribute("kind")->text, "cpu");
    ck_assert_uint_eq(count_text("kind", "cpu-riscv"), 0);
    (void)snprintf(machine.arch, sizeof machine.arch, "riscv64");
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_uint_eq(count_text("kind", "cpu"), 1);
    ck_assert_uint_eq(count_text("kind", "cpu-riscv"), 1);
    ck_assert_int_eq(attribute("isolation")->number, 1);
    ck_assert_int_eq(attribute("landlock")->number, 0); /* stated, so that `= false` holds */
    ck_assert_int_eq(attribute("cgroup")->number, 0);
    ck_assert_int_eq(attribute("memory")->number, (int64_t)first->memory_bytes);
    ck_assert_int_eq(attribute("gflops")->number, 12);
    ck_assert_str_eq(attribute("model")->text, "Example 9000");
    ck_assert_ptr_nonnull(attribute("program"));
    ck_assert_str_eq(attribute("executor")->text, "command");
    ck_assert_ptr_null(attribute("gemm_fp32"));
    ck_assert_uint_eq(count_text("measured", "gflops"), 1); /* what is measured says so */
    ck_assert_uint_eq(count_text("measured", "fp64"), 1);
    ck_assert_uint_eq(count_text("measured", "bandwidth"), profile.bandwidth_bytes.value > 0);
    ck_assert_uint_eq(count_text("measured", "memory"), 0); /* the config's */
    ck_assert_uint_eq(count_text("measured", "gemm_fp32"), 0);
    ck_assert_ptr_null(attribute("region")); /* not configured, not claimed */
    ck_assert_uint_le(first->device.attribute_count, LIMIT_ATTRIBUTES);
    ck_assert_uint_eq(first->ask.slots, 4);
}
END_TEST

START_TEST(the_offer_says_what_the_jail_lacks)
{
    struct problem problem;
    struct isolation host = {.level = 1,
                             .landlock_abi = 2,
                             .cgroup_version = 2,
                             .memory_enforced = true,
                             .processes_enforced = true,
                             .cpu_enforced = true};
    machine_of(4, 16 * GIB);
    ck_assert(config_read("/nonexistent", NULL, &config, &problem));
    ck_assert(policy_offers(&config, &machine, &profile, &host, &account, &offers, &problem));
    ck_assert_int_eq(attribute("landlock")->number, 1);
    ck_assert_int_eq(attribute("cgroup")->number, 2);
    host.memory_enforced = false; /* one limit that no group enforces */
    ck_assert(policy_offers(&config, &machine, &profile, &host, &account, &offers, &problem));
    ck_assert_int_eq(attribute("cgroup")->number, 0);
    ck_assert_int_eq(attribute("isolation")->number, 1);
}
END_TEST

/* A job asks for room for its image: what is not said is the default. */
START_TEST(other_bounds_of_images_are_offered)
{
    struct problem problem;
    machine_of(4, 16 * GIB);
    ck_assert(config_read("/nonexistent", NULL, &config, &problem));
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_ptr_null(attribute("image_files"));
    ck_assert_ptr_null(attribute("image_size"));
    config.image_files = 5000;
    config.image_bytes = 2 * GIB;
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_int_eq(attribute("image_files")->number, 5000);
    ck_assert_int_eq(attribute("image_size")->number, 2 * GIB);
}
END_TEST

START_TEST(matrices_are_offered_where_they_were_measured)
{
    struct problem problem;
    struct profile quick = profile;
    quick.gemm_mflops.value = 98000;
    machine_of(4, 16 * GIB);
    ck_assert(config_read("/nonexistent", NULL, &config, &problem));
    ck_assert(policy_offers(&config, &machine, &quick, &jailed, &account, &offers, &problem));
    ck_assert_uint_eq(count_text("executor", "tensor"), 1);
    ck_assert_int_eq(attribute("gemm_fp32")->number, 98000);
    ck_assert_uint_eq(count_text("measured", "gemm_fp32"), 1);
    ck_assert_uint_eq(count_text("measured", "fp32"), 1);
}
END_TEST

START_TEST(models_are_computed_where_an_engine_computed_one)
{
    struct problem problem;
    machine_of(4, 16 * GIB);
    ck_assert(config_read("/nonexistent", NULL, &config, &problem));
    (void)snprintf(config.onnx_library, sizeof config.onnx_library, "/opt/ort.so.1");
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_uint_eq(count_text("executor", "onnx"), 0); /* nothing was tried */
    machine.models = (struct model_engine){
        .library = "/opt/ort.so.1", .name = "onnxruntime-1.30.0", .is_known = true};
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_uint_eq(count_text("executor", "onnx"), 1);
    ck_assert_str_eq(attribute("engine")->text, "onnxruntime-1.30.0");
    config.memory_bytes = GIB / 16; /* too little for a slot */
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_uint_eq(count_text("executor", "onnx"), 0);
    config.memory_bytes = GIB;
    (void)snprintf(config.onnx_library, sizeof config.onnx_library, "/opt/other.so.1");
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_uint_eq(count_text("executor", "onnx"), 0); /* that one was not tried */
    (void)snprintf(config.onnx_library, sizeof config.onnx_library, "/opt/ort.so.1");
    (void)snprintf(machine.models.unusable, sizeof machine.models.unusable, "it does not load");
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_uint_eq(count_text("executor", "onnx"), 0);
    machine.models = (struct model_engine){.is_known = false};
}
END_TEST

START_TEST(a_device_with_all_that_there_is_has_room_for_its_programs)
{
    static char text[64 * CONFIG_PROGRAMS_MAX];
    struct problem problem = {""};
    struct profile quick = profile;
    size_t length =
        (size_t)snprintf(text, sizeof text,
                         "name: attic\nregion: eu\nimage_files: 5000\nimage_size: 2GiB\n"
                         "power_w: 65\nprograms:\n");
    for (int i = 0; i < CONFIG_PROGRAMS_MAX; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "  p%d: /usr/bin/env\n", i);
    }
    quick.gemm_mflops.value = 98000;
    machine_of(3, 16 * GIB);
    (void)snprintf(machine.vendor, sizeof machine.vendor, "example");
    machine.features = discover_features(
        "x86_64", "avx512f avx512bw avx512dq avx512vl amx_tile amx_bf16 amx_int8");
    machine.wasm =
        (struct wasm_engine){.path = "/usr/bin/node", .has_group = true, .is_known = true};
    machine.models = (struct model_engine){.name = "onnxruntime-1.30.0", .is_known = true};
    ck_assert_msg(read_text(text, &config, &problem), "%s", problem.text);
    (void)snprintf(config.wasm_engine, sizeof config.wasm_engine, "/usr/bin/node");
    config.onnx_library[0] = '\0';
    ck_assert_msg(policy_offers(&config, &machine, &quick, &jailed, &account, &offers, &problem),
                  "%s", problem.text);
    ck_assert_uint_eq(count_text("program", "p0"), 1);
    ck_assert_uint_eq(count_text("executor", "wasm"), 1);
    ck_assert_uint_eq(count_text("executor", "onnx"), 1);
    ck_assert_uint_eq(count_text("feature", "avx512"), 1);
    ck_assert_uint_eq(count_text("feature", "amx-tile"), 1);
    ck_assert_uint_eq(count_text("feature", "amx-bf16"), 1);
    ck_assert_uint_eq(count_text("feature", "amx-int8"), 1);
    machine.features = 0;
    ck_assert_uint_le(offers.items[0].device.attribute_count, POLICY_ATTRIBUTES_MAX);
    machine.wasm = (struct wasm_engine){.is_known = false};
    machine.models = (struct model_engine){.is_known = false};
}
END_TEST

START_TEST(modules_are_run_where_an_engine_ran_one)
{
    struct problem problem;
    machine_of(4, 16 * GIB);
    ck_assert(config_read("/nonexistent", NULL, &config, &problem));
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_uint_eq(count_text("executor", "wasm"), 0); /* nothing was tried */
    machine.wasm = (struct wasm_engine){.path = "/usr/bin/node", .is_known = true};
    (void)snprintf(config.wasm_engine, sizeof config.wasm_engine, "/usr/bin/node");
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_uint_eq(count_text("executor", "wasm"), 1);
    config.memory_bytes = GIB / 4; /* too little without a control group, and enough with one */
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_uint_eq(count_text("executor", "wasm"), 0);
    machine.wasm.has_group = true;
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_uint_eq(count_text("executor", "wasm"), 1);
    (void)snprintf(config.wasm_engine, sizeof config.wasm_engine, "/usr/bin/other"); /* untried */
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_uint_eq(count_text("executor", "wasm"), 0);
    (void)snprintf(config.wasm_engine, sizeof config.wasm_engine, "/usr/bin/node");
    (void)snprintf(machine.wasm.unusable, sizeof machine.wasm.unusable, "it does not run");
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_uint_eq(count_text("executor", "wasm"), 0);
    machine.wasm = (struct wasm_engine){.is_known = false};
}
END_TEST

START_TEST(what_cannot_be_kept_is_not_offered)
{
    struct problem problem = {""};
    struct isolation open = {.level = 0, .refusal = "no namespaces"};
    machine_of(4, 16 * GIB);
    ck_assert(config_read("/nonexistent", NULL, &config, &problem));
    ck_assert(!policy_offers(&config, &machine, &profile, &open, &account, &offers, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "no namespaces"));

    config.slots = 8;
    ck_assert(!policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert(!policy_check(&config, &machine, &problem)); /* as the config alone shows */
    ck_assert_str_eq(problem.text, "slots: 8, but this process may use 4 cores");
    config.slots = 4;
    config.memory_bytes = 8 * GIB;
    ck_assert(!policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert(!policy_check(&config, &machine, &problem));
    config.memory_bytes = 2 * GIB;
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert(policy_check(&config, &machine, &problem));

    config.memory_bytes = 0;
    machine_of(4, GIB / 8);
    ck_assert(!policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "fewer slots"));
}
END_TEST

START_TEST(leases_are_firm_unless_the_config_says_otherwise)
{
    struct problem problem = {""};
    machine_of(8, 16 * GIB);
    ck_assert_msg(read_text("name: attic\nmemory: 1GiB\ndisk: 512MiB\n"
                            "interruptible: {notice: 2m, minimum_run: 0s}\n"
                            "devices:\n"
                            "  - {name: alike}\n"
                            "  - {name: firm, interruptible: false}\n"
                            "  - {name: usual, interruptible: {}}\n",
                            &config, &problem),
                  "%s", problem.text);
    ck_assert_msg(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem),
                  "%s", problem.text);
    for (size_t i = 0; i < 2; i++) {
        ck_assert(offers.items[i].ask.is_interruptible);
        ck_assert_int_eq(offers.items[i].ask.notice_ms, 120000);
        ck_assert_int_eq(offers.items[i].ask.minimum_run_ms, 0);
    }
    ck_assert(!offers.items[2].ask.is_interruptible);
    ck_assert(offers.items[3].ask.is_interruptible);
    ck_assert_int_eq(offers.items[3].ask.notice_ms, 30000);
    ck_assert_int_eq(offers.items[3].ask.minimum_run_ms, 300000);
    ck_assert(read_text("name: attic\n", &config, &problem));
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert(!first->ask.is_interruptible);
}
END_TEST

START_TEST(one_machine_offers_several_devices)
{
    struct problem problem = {""};
    machine_of(8, 16 * GIB);
    ck_assert_msg(read_text("name: attic\nprice: 0.25\nmemory: 1GiB\ndisk: 512MiB\nprocesses: 64\n"
                            "devices:\n"
                            "  - {name: quiet, slots: 2, price: 0, term: 2h}\n"
                            "  - {name: large, memory: 4GiB, disk: 1GiB, processes: 9}\n",
                            &config, &problem),
                  "%s", problem.text);
    ck_assert_msg(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem),
                  "%s", problem.text);
    ck_assert_uint_eq(offers.count, 3);
    const struct offer *quiet = &offers.items[1];
    const struct offer *large = &offers.items[2];
    ck_assert_uint_eq(first->device.slots, 5); /* what is left */
    ck_assert_uint_eq(quiet->device.slots, 2);
    ck_assert_uint_eq(large->device.slots, 1);
    ck_assert_uint_eq(first->first_core, 0);
    ck_assert_uint_eq(quiet->first_core, 5); /* a core is of one device */
    ck_assert_uint_eq(large->first_core, 7);
    ck_assert_int_eq(first->ask.price_micro, 250000);
    ck_assert_int_eq(quiet->ask.price_micro, 0);
    ck_assert_int_eq(quiet->ask.max_term_ms, 7200000);
    ck_assert_int_eq(large->ask.price_micro, 250000); /* as the first */
    ck_assert_uint_eq(quiet->memory_bytes, GIB);
    ck_assert_uint_eq(large->memory_bytes, 4 * GIB);
    ck_assert_uint_eq(quiet->processes, 64);
    ck_assert_uint_eq(large->processes, 9);
    ck_assert_str_eq(quiet->device.label, "quiet");
    for (size_t i = 0; i < offers.count; i++) {
        ck_assert_ptr_eq(policy_offer_of(&offers, &offers.items[i].device.device),
                         &offers.items[i]);
        ck_assert(id128_equal(&offers.items[i].ask.device, &offers.items[i].device.device));
        ck_assert_ptr_eq(offers.items[i].device.attributes, offers.items[i].attributes);
    }
    struct id128 nobody = {{9}};
    ck_assert_ptr_null(policy_offer_of(&offers, &nobody));
    struct id128 kept = quiet->device.device;
    ck_assert(read_text("devices: [{name: large}, {name: quiet}]\n", &config, &problem));
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert(id128_equal(&offers.items[2].device.device, &kept)); /* by name, wherever it stands */
}
END_TEST

START_TEST(devices_share_what_the_machine_has)
{
    struct problem problem = {""};
    machine_of(4, 16 * GIB);
    ck_assert(read_text("devices: [{name: a, slots: 4}]\n", &config, &problem));
    ck_assert(!policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "may use 4 cores"));
    ck_assert(read_text("slots: 3\ndevices: [{name: a}, {name: b}]\n", &config, &problem));
    ck_assert(!policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert(read_text("slots: 2\nmemory: 2GiB\ndisk: 2GiB\ndevices: [{name: a, memory: 9GiB}]\n",
                        &config, &problem));
    ck_assert(!policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "of 3 slots"));
    ck_assert(read_text("slots: 2\ndevices: [{name: a, slots: 2}]\n", &config, &problem));
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_uint_le(2 * (offers.items[0].memory_bytes + offers.items[1].memory_bytes +
                           offers.items[0].disk_bytes + offers.items[1].disk_bytes),
                      12 * GIB);
}
END_TEST

static const struct attribute *fact(const struct offer *offer, const char *name)
{
    for (size_t i = 0; i < offer->device.attribute_count; i++) {
        if (strcmp(offer->attributes[i].name, name) == 0) {
            return &offer->attributes[i];
        }
    }
    return NULL;
}

START_TEST(a_simulated_device_says_so_and_owns_no_core)
{
    struct problem problem = {""};
    struct profile quick = profile;
    quick.gemm_mflops.value = 98000;
    machine_of(2, 16 * GIB);
    ck_assert_msg(read_text("name: attic\ndevices:\n"
                            "  - {simulate: groq-lpu-v1, price: 0.5}\n"
                            "  - {simulate: google-edge-tpu, name: stick}\n",
                            &config, &problem),
                  "%s", problem.text);
    ck_assert_msg(policy_offers(&config, &machine, &quick, &jailed, &account, &offers, &problem),
                  "%s", problem.text);
    const struct offer *lpu = &offers.items[1];
    const struct offer *edge = &offers.items[2];
    ck_assert_uint_eq(first->device.slots, 2); /* all cores are still its own */
    ck_assert_ptr_null(first->simulates);
    ck_assert_int_eq(attribute("simulated")->number, 0);
    ck_assert_str_eq(lpu->simulates->id, "groq-lpu-v1");
    ck_assert_str_eq(lpu->device.instrument, "sim.lpu.groq.v1");
    ck_assert_str_eq(lpu->device.label, "sim.groq-lpu-v1");
    ck_assert_uint_eq(lpu->device.slots, 1);
    ck_assert_int_eq(lpu->ask.price_micro, 500000);
    ck_assert_int_eq(fact(lpu, "simulated")->number, 1);
    ck_assert_str_eq(fact(lpu, "kind")->text, "lpu");
    ck_assert_str_eq(fact(lpu, "instrument")->text, "sim.lpu.groq.v1");
    ck_assert_str_eq(fact(lpu, "vendor")->text, "groq");
    ck_assert_str_eq(fact(lpu, "executor")->text, "tensor");
    ck_assert_int_eq(fact(lpu, "memory")->number, 230000000); /* the device's, not the jail's */
    ck_assert_int_eq(fact(lpu, "gemm_fp32")->number, 62000000);
    ck_assert_ptr_null(fact(lpu, "program"));
    ck_assert_ptr_null(fact(lpu, "cores"));
    ck_assert_ptr_null(fact(lpu, "measured"));
    ck_assert_str_eq(edge->device.label, "sim.stick");
    ck_assert_ptr_null(fact(edge, "gemm_fp32")); /* it multiplies no float32: nothing is claimed */
    ck_assert_ptr_null(fact(edge, "bandwidth"));
    ck_assert_int_eq(fact(edge, "power_mw")->number, 2000); /* the catalogue's 2 W */
    ck_assert_ptr_null(fact(first, "power_mw"));
    ck_assert(!policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "groq-lpu-v1 cannot be simulated"));
}
END_TEST

/* Each attribute that some device of ours has is a field of the language, of its type, and there is
 * no field that none has. */
START_TEST(what_is_offered_can_be_asked_for)
{
    struct problem problem = {""};
    struct profile quick = profile;
    size_t count;
    const struct requirement_field *fields = requirement_fields(&count);
    quick.gemm_mflops.value = 98000;
    machine_of(4, 16 * GIB);
    (void)snprintf(machine.vendor, sizeof machine.vendor, "example");
    machine.kernel_devices[KERNEL_OPENCL] =
        (struct kernel_device_list){.is_known = true,
                                    .count = 1,
                                    .items = {{.name = "x",
                                               .kind = "cpu",
                                               .has_fp64 = true,
                                               .gemm_mflops = 50000,
                                               .gemm_held_mflops = 90000,
                                               .tf32_mflops = 60000,
                                               .tf32_held_mflops = 400000,
                                               .bf16_mflops = 70000,
                                               .bf16_held_mflops = 800000}}};
    machine.features = discover_features("aarch64", "asimd sve");
    machine.plugins = (struct plugin_list){
        .is_known = true,
        .count = 1,
        .items = {{.name = "p",
                   .program = {.path = "/opt/p"},
                   .description = {.kind = "dsp", .operations = {"fir"}, .operation_count = 1}}}};
    ck_assert_msg(read_text("name: attic\nregion: eu\nimage_files: 5000\nimage_size: 2GiB\n"
                            "devices:\n"
                            "  - {opencl: 0, name: x}\n"
                            "  - {simulate: nvidia-h100-sxm5}\n"
                            "  - {simulate: nvidia-a100-sxm4-40}\n"
                            "  - {plugin: /opt/p, name: p}\n",
                            &config, &problem),
                  "%s", problem.text);
    struct config_device *last = &config.devices[config.device_count++];
    *last = config.devices[0];
    last->kernel[0] = '\0';
    (void)snprintf(last->name, sizeof last->name, "w");
    last->provider = (struct model_provider){.name = "WebGPU", .settings = "provider WebGPU\n"};
    machine.model_devices = (struct model_device_list){
        .is_known = true,
        .count = 1,
        .items = {{.name = "w", .provider = last->provider, .kind = "webgpu", .mflops = 3000}}};
    machine.models = (struct model_engine){.name = "onnxruntime-1.30.0", .is_known = true};
    config.onnx_library[0] = '\0';
    ck_assert_msg(policy_offers(&config, &machine, &quick, &jailed, &account, &offers, &problem),
                  "%s", problem.text);
    machine.models = (struct model_engine){.is_known = false};
    machine.features = 0;
    bool had[64] = {false};
    ck_assert_uint_le(count, sizeof had);
    for (size_t i = 0; i < offers.count; i++) {
        for (size_t k = 0; k < offers.items[i].device.attribute_count; k++) {
            const struct attribute *has = &offers.items[i].attributes[k];
            const struct requirement_field *field = requirement_field(has->name);
            ck_assert_msg(field != NULL, "%s cannot be asked for", has->name);
            ck_assert_msg(has->is_text == (field->type == FIELD_TEXT), "%s", has->name);
            had[field - fields] = true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        static const char *const by_exchange[] = {"referee", "trust", "firm", "notice",
                                                  "minimum_run"};
        bool of_market = false;
        for (size_t k = 0; k < sizeof by_exchange / sizeof by_exchange[0]; k++) {
            of_market = of_market || strcmp(fields[i].name, by_exchange[k]) == 0;
        }
        ck_assert_msg(had[i] || of_market, "no device has %s", fields[i].name);
    }
    ck_assert_int_eq(attribute("fp32")->number, INT64_C(98000000000));
    ck_assert_int_eq(attribute("fp64")->number, profile.mflops.value * 1000000);
    ck_assert_str_eq(attribute("feature")->text, "sve");
    /* Rates with the copies to the device and back, and without them. */
    ck_assert_int_eq(fact(&offers.items[1], "gemm_fp32")->number, 50000);
    ck_assert_int_eq(fact(&offers.items[1], "gemm_fp32_held")->number, 90000);
    ck_assert_int_eq(fact(&offers.items[1], "bf16")->number, INT64_C(70000000000));
    ck_assert_int_eq(fact(&offers.items[1], "bf16_held")->number, INT64_C(800000000000));
    ck_assert_int_eq(fact(&offers.items[2], "bf16")->number, INT64_C(989400000000000));
    ck_assert_int_eq(fact(&offers.items[2], "fp64")->number, INT64_C(66900000000000));
}
END_TEST

START_TEST(a_device_holds_a_share_or_what_its_owner_says)
{
    struct problem problem = {""};
    machine_of(8, 16 * GIB);
    machine.kernel_devices[KERNEL_OPENCL] = (struct kernel_device_list){
        .is_known = true, .count = 1, .items = {{.name = "x", .kind = "cpu", .memory_bytes = GIB}}};
    machine.kernel_devices[KERNEL_CUDA] = (struct kernel_device_list){
        .api = KERNEL_CUDA,
        .is_known = true,
        .count = 1,
        .items = {{.api = KERNEL_CUDA, .name = "y", .kind = "gpu", .memory_bytes = 80 * GIB}}};
    ck_assert_msg(read_text("devices:\n"
                            "  - {opencl: 0, name: x, slots: 2, memory: 512MiB}\n"
                            "  - {cuda: 0, name: y}\n"
                            "  - {opencl: 0, name: z, slots: 2, device_cache: 1MiB}\n",
                            &config, &problem),
                  "%s", problem.text);
    ck_assert_msg(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem),
                  "%s", problem.text);
    ck_assert_uint_eq(offers.items[0].held_bytes, 0); /* cores have no other memory */
    ck_assert_uint_eq(offers.items[1].held_bytes, 128 << 20);
    ck_assert_uint_eq(offers.items[2].held_bytes, 20 * GIB);
    ck_assert_uint_eq(offers.items[3].held_bytes, 512 << 10);
}
END_TEST

START_TEST(a_job_gets_the_lesser_of_what_it_asks_and_what_is_offered)
{
    struct problem problem;
    machine_of(4, 16 * GIB);
    ck_assert(config_read("/nonexistent", NULL, &config, &problem));
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    struct jail_limits limits = lane_jail_limits(first, 2, 0, 0, 0, true);
    ck_assert_uint_eq(limits.memory_bytes, 2 * first->memory_bytes);
    ck_assert_uint_eq(limits.processes, 2 * first->processes);
    ck_assert_uint_eq(limits.cpu_milli, 2000);
    limits = lane_jail_limits(first, 1, 1 << 20, INT64_MAX, 3, false);
    ck_assert_uint_eq(limits.memory_bytes, 1 << 20);
    ck_assert_uint_eq(limits.disk_bytes, first->disk_bytes);
    ck_assert_uint_eq(limits.processes, 3);
    ck_assert_uint_eq(limits.cpu_milli, 0);
}
END_TEST

/* Returns the number of the first device's attribute, or -1 without one. */
static int64_t number_of(const char *name)
{
    return attribute(name) != NULL ? attribute(name)->number : -1;
}

START_TEST(a_share_of_the_cores_bounds_jobs_and_what_is_claimed)
{
    static const char *const figures[] = {"gflops", "bandwidth", "fp64", "gemm_fp32", "fp32"};
    int64_t whole[sizeof figures / sizeof figures[0]];
    struct problem problem = {""};
    struct profile quick = profile;
    quick.gemm_mflops.value = 41000;
    machine_of(4, 16 * GIB);
    ck_assert(config_read("/nonexistent", NULL, &config, &problem));
    ck_assert_uint_eq(config.cpu_percent, 100);
    ck_assert(policy_offers(&config, &machine, &quick, &jailed, &account, &offers, &problem));
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        whole[i] = number_of(figures[i]);
        ck_assert_msg(whole[i] > 0, "%s", figures[i]);
    }
    config.cpu_percent = 25;
    config.lines.cpu = 7;
    struct isolation bounded = jailed;
    bounded.cpu_enforced = true;
    ck_assert(policy_offers(&config, &machine, &quick, &bounded, &account, &offers, &problem));
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        const int64_t quarter = whole[i] / 4;
        ck_assert_msg(
            number_of(figures[i]) <= quarter && number_of(figures[i]) >= quarter - quarter / 50 - 1,
            "%s: %lld of %lld", figures[i], (long long)number_of(figures[i]), (long long)whole[i]);
    }
    ck_assert_uint_eq(lane_jail_limits(first, 2, 0, 0, 0, true).cpu_milli, 500);
    bounded.cpu_enforced = false;
    ck_assert(!policy_offers(&config, &machine, &quick, &bounded, &account, &offers, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, ":7: cpu: no control group bounds the processors"));
}
END_TEST

SUITE("provider offer", NULL, NULL, TEST(an_offer_leaves_the_owner_a_quarter),
      TEST(the_offer_says_what_the_jail_lacks), TEST(other_bounds_of_images_are_offered),
      TEST(matrices_are_offered_where_they_were_measured),
      TEST(a_device_with_all_that_there_is_has_room_for_its_programs),
      TEST(modules_are_run_where_an_engine_ran_one),
      TEST(models_are_computed_where_an_engine_computed_one),
      TEST(what_cannot_be_kept_is_not_offered),
      TEST(leases_are_firm_unless_the_config_says_otherwise),
      TEST(one_machine_offers_several_devices), TEST(devices_share_what_the_machine_has),
      TEST(a_simulated_device_says_so_and_owns_no_core), TEST(what_is_offered_can_be_asked_for),
      TEST(a_device_holds_a_share_or_what_its_owner_says),
      TEST(a_job_gets_the_lesser_of_what_it_asks_and_what_is_offered),
      TEST(a_share_of_the_cores_bounds_jobs_and_what_is_claimed))
