/* The tests go from the machine and the config to the offer: discover, probe, config, policy. */
#include "provider/config.h"
#include "provider/device/discover.h"
#include "provider/device/probe.h"
#include "provider/policy.h"

#include "base/cleanup.h"
#include "formats/requirement.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIB (UINT64_C(1) << 30)

static struct machine machine; /* large */

/* ---------------------------------------------------------------- machine */

START_TEST(a_synthetic_machine_is_counted)
{
    struct problem problem;
    ck_assert(discover_machine("pack:2 numa:1(memory=8GB) l3:1(size=32MB) core:4 pu:2", &machine,
                               &problem));
    ck_assert_uint_eq(machine.packages, 2);
    ck_assert_uint_eq(machine.numa_nodes, 2);
    ck_assert_uint_eq(machine.cores, 8);
    ck_assert_uint_eq(machine.threads, 16);
    ck_assert_uint_eq(machine.cache_bytes, 32000000);
    ck_assert_uint_eq(machine.memory_bytes, 16000000000);
    ck_assert_uint_eq(machine.cpus[0], 0);
    ck_assert_uint_eq(machine.cpus[1], 2); /* one processing unit of each core */
    ck_assert_int_eq(strncmp(machine.instrument, "cpu.", 4), 0);
}
END_TEST

START_TEST(a_large_machine_and_a_single_core_are_machines_too)
{
    struct problem problem;
    ck_assert(discover_machine("pack:8 core:64 pu:2", &machine, &problem));
    ck_assert_uint_eq(machine.cores, 512);
    ck_assert(discover_machine("core:1 pu:1", &machine, &problem));
    ck_assert_uint_eq(machine.cores, 1);
    ck_assert(!discover_machine("this is no topology", &machine, &problem));
}
END_TEST

START_TEST(this_machine_is_read_within_its_affinity)
{
    struct problem problem;
    ck_assert_msg(discover_machine(NULL, &machine, &problem), "%s", problem.text);
    uint32_t all = machine.cores;
    ck_assert_uint_ge(all, 1);
    ck_assert_uint_gt(machine.memory_bytes, 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(machine.cpus[0], &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert(discover_machine(NULL, &machine, &problem));
    ck_assert_uint_eq(machine.cores, 1);
    ck_assert(CPU_ISSET(machine.cpus[0], &one));
}
END_TEST

START_TEST(the_level_is_what_the_flags_say)
{
    ck_assert_str_eq(
        discover_level("x86_64", "fpu sse2 avx2 fma avx512f avx512bw avx512dq avx512vl"), "avx512");
    ck_assert_str_eq(discover_level("x86_64", "fpu avx2 fma avx512f"), "avx2");
    ck_assert_str_eq(discover_level("x86_64", "fpu avx2x fma"), "sse2");
    ck_assert_str_eq(discover_level("aarch64", "fp asimd sve"), "sve");
    ck_assert_str_eq(discover_level("aarch64", "fp asimd"), "neon");
    ck_assert_str_eq(discover_level("riscv64", ""), "");
}
END_TEST

START_TEST(a_device_keeps_its_id)
{
    struct key32 a = {{1}};
    struct key32 b = {{2}};
    struct id128 first = discover_device_id(&a, "cpu");
    struct id128 again = discover_device_id(&a, "cpu");
    struct id128 other = discover_device_id(&b, "cpu");
    struct id128 gpu = discover_device_id(&a, "gpu-0");
    ck_assert(id128_equal(&first, &again));
    ck_assert(!id128_equal(&first, &other));
    ck_assert(!id128_equal(&first, &gpu));
}
END_TEST

START_TEST(figures_keep_two_digits)
{
    ck_assert_int_eq(probe_round(0), 0);
    ck_assert_int_eq(probe_round(99), 99);
    ck_assert_int_eq(probe_round(100), 100);
    ck_assert_int_eq(probe_round(12345), 12000);
    ck_assert_int_eq(probe_round(INT64_MAX), INT64_C(9200000000000000000));
}
END_TEST

static struct probe_figure settle(int64_t kept, int64_t at_s, int64_t measured, int64_t now_s)
{
    const struct probe_figure figure = {.value = kept, .at_s = at_s};
    return probe_settle(&figure, measured, now_s);
}

START_TEST(a_busy_moment_moves_no_figure_and_a_better_one_does)
{
    struct probe_figure figure = settle(0, 0, 100, 1000); /* the first */
    ck_assert(figure.value == 100 && figure.at_s == 1000 && figure.latest == 100);
    figure = settle(13000, 1000, 110000, 2000); /* the first start was a busy one */
    ck_assert(figure.value == 110000 && figure.at_s == 2000 && !probe_doubtful(&figure));
    figure =
        settle(110000, 1000, 115000, 2000); /* about the same: the cell stays, the day is new */
    ck_assert(figure.value == 110000 && figure.at_s == 2000);
    figure = settle(110000, 1000, 100000, 2000);
    ck_assert(figure.value == 110000 && figure.at_s == 2000);
    figure = settle(110000, 1000, 60000, 1000 + PROBE_KEPT_S); /* busy now */
    ck_assert(figure.value == 110000 && figure.at_s == 1000 && figure.latest == 60000);
    ck_assert(!probe_doubtful(&figure));
    figure = settle(110000, 1000, 54000, 2000);
    ck_assert(figure.value == 110000 && probe_doubtful(&figure));
    figure = settle(110000, 1000, 54000, 1001 + PROBE_KEPT_S); /* too long ago */
    ck_assert(figure.value == 54000 && figure.at_s == 1001 + PROBE_KEPT_S);
    figure = settle(110000, 3000, 54000, 2000); /* a day to come is none */
    ck_assert(figure.value == 54000 && figure.at_s == 2000);
    char day[PROBE_DAY_SIZE];
    probe_day(1795305600, day);
    ck_assert_str_eq(day, "2026-11-22");
}
END_TEST

static void write_profile(const char *file, const char *text)
{
    FILE *out = fopen(file, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    fclose(out);
}

START_TEST(a_profile_is_kept_per_model_and_measured_at_every_start)
{
    char folder[] = "/tmp/bourse-probe-XXXXXX";
    char file[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(file, sizeof file, "%s/profile.json", folder);
    struct profile first;
    struct profile again;
    struct profile_gemm gemm = {.engine = "plain C", .mflops = 2000};
    probe_profile(file, "a model", &gemm, 5000, &first);
    ck_assert_int_eq(first.gemm_mflops.value, 2000);
    ck_assert_int_gt(first.mflops.value, 0);
    ck_assert_int_gt(first.bandwidth_bytes.value, 0);
    write_profile(file,
                  "{\"version\": 3, \"model\": \"a model\", \"mflops\": 7, \"mflops_at_s\": 5000,"
                  " \"bandwidth_bytes\": 9000000000000000, \"bandwidth_at_s\": 5001,"
                  " \"gemm_engine\": \"plain C\", \"gemm_mflops\": 2900, \"gemm_at_s\": 5002}");
    probe_profile(file, "a model", &gemm, 6000, &again);
    ck_assert(again.mflops.value > 7 && again.mflops.at_s == 6000);
    ck_assert_int_eq(again.bandwidth_bytes.value, 9000000000000000);
    ck_assert(probe_doubtful(&again.bandwidth_bytes));
    ck_assert(again.gemm_mflops.value == 2900 && again.gemm_mflops.at_s == 5002);
    probe_profile(file, "a model", &gemm, 7000, &again); /* which was written as it stood */
    ck_assert(again.gemm_mflops.value == 2900 && again.gemm_mflops.at_s == 5002);
    ck_assert_int_eq(again.bandwidth_bytes.at_s, 5001);
    struct profile_gemm other = {.engine = "oneDNN 9", .mflops = 900};
    probe_profile(file, "a model", &other, 7000, &again); /* another program is another figure */
    ck_assert_int_eq(again.bandwidth_bytes.at_s, 5001);
    ck_assert(again.gemm_mflops.value == 900 && strcmp(again.engine, "oneDNN 9") == 0);
    probe_profile(file, "another model", &gemm, 7000, &again);
    ck_assert_int_eq(again.bandwidth_bytes.at_s, 7000);
    write_profile(file, "not json");
    probe_profile(file, "a model", &gemm, 7000, &again);
    ck_assert_int_gt(again.mflops.value, 0);
    (void)unlink(file);
    (void)rmdir(folder);
}
END_TEST

/* ---------------------------------------------------------------- config */

static bool read_text(const char *text, struct config *ret_config, struct problem *problem)
{
    char folder[] = "/tmp/bourse-config-XXXXXX";
    char file[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(file, sizeof file, "%s/provider.yaml", folder);
    FILE *out = fopen(file, "w");
    fputs(text, out);
    fclose(out);
    bool good = config_read(folder, NULL, ret_config, problem);
    (void)unlink(file);
    (void)rmdir(folder);
    return good;
}

static struct config config;

START_TEST(an_absent_file_gives_the_defaults)
{
    struct problem problem;
    ck_assert_msg(config_read("/nonexistent", NULL, &config, &problem), "%s", problem.text);
    ck_assert_int_eq(config.price_micro, CONFIG_PRICE_MICRO);
    ck_assert_uint_eq(config.slots, 0);
    ck_assert_str_eq(config.user, "bourse");
    ck_assert_str_eq(config.market, "/nonexistent/market.yaml");
    ck_assert_str_eq(config.spool, "/nonexistent/spool");
    ck_assert_uint_ge(config.program_count, 10); /* the common tools that are here */
    ck_assert_str_eq(config_program(&config, "sh")->path, "/usr/bin/sh");
    ck_assert_ptr_null(config_program(&config, "no-such-program"));
    ck_assert(!config_read("/nonexistent", "/nonexistent/provider.yaml", &config, &problem));
}
END_TEST

START_TEST(every_key_is_read)
{
    struct problem problem;
    ck_assert_msg(read_text("market: /srv/market.yaml\nname: attic\nregion: eu-west\nprice: 0.25\n"
                            "slots: 3\nmemory: 2GiB\ndisk: 1GiB\nprocesses: 64\nterm: 1h\n"
                            "programs: [sh, cat]\nuser: nobody\ncache: 1GiB\nspool: out\n"
                            "image_files: 5000\n",
                            &config, &problem),
                  "%s", problem.text);
    ck_assert_str_eq(config.market, "/srv/market.yaml");
    ck_assert_str_eq(config.name, "attic");
    ck_assert_str_eq(config.region, "eu-west");
    ck_assert_int_eq(config.price_micro, 250000);
    ck_assert_uint_eq(config.slots, 3);
    ck_assert_uint_eq(config.memory_bytes, 2 * GIB);
    ck_assert_uint_eq(config.disk_bytes, GIB);
    ck_assert_uint_eq(config.processes, 64);
    ck_assert_int_eq(config.term_ms, 3600000);
    ck_assert_uint_eq(config.program_count, 2);
    ck_assert_str_eq(config.user, "nobody");
    ck_assert_uint_eq(config.cache_bytes, GIB);
    ck_assert_uint_eq(config.image_bytes, GIB); /* as much as the cache */
    ck_assert_uint_eq(config.image_files, 5000);
    ck_assert_ptr_nonnull(strstr(config.spool, "/out"));
}
END_TEST

START_TEST(programs_may_be_named_with_their_paths)
{
    struct problem problem;
    ck_assert_msg(read_text("programs: {shell: /bin/sh, list: /usr/bin/ls}\n", &config, &problem),
                  "%s", problem.text);
    ck_assert_str_eq(config_program(&config, "shell")->path, "/usr/bin/sh");
    ck_assert_ptr_eq(config_program(&config, "/usr/bin/ls"), &config.programs[1]);
    ck_assert_ptr_null(config_program(&config, "sh"));
    ck_assert(read_text("programs: []\n", &config, &problem));
    ck_assert_uint_eq(config.program_count, 0);
}
END_TEST

/* Jobs see a few folders of the host; the owner adds others, and what he offers is seen anyway. */
START_TEST(folders_that_jobs_see_may_be_added)
{
    struct problem problem;
    ck_assert_msg(read_text("programs: [sh]\n", &config, &problem), "%s", problem.text);
    ck_assert_uint_eq(config.visible_count, 0);
    ck_assert_msg(read_text("programs: [sh]\nvisible: [/usr/share, /usr/bin]\n", &config, &problem),
                  "%s", problem.text);
    ck_assert_uint_eq(config.visible_count, 1); /* /usr/bin is seen by every job */
    ck_assert_str_eq(config.visible[0], "/usr/share");
    if (access("/usr/sbin/chroot", X_OK) == 0) {
        ck_assert_msg(read_text("programs: {c: /usr/sbin/chroot}\n", &config, &problem), "%s",
                      problem.text);
        ck_assert_uint_eq(config.visible_count, 1);
        ck_assert_str_eq(config.visible[0], "/usr/sbin");
    }
}
END_TEST

START_TEST(wrong_keys_and_values_are_refused_with_their_line)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"name: a\npriec: 1\n", "provider.yaml:2: unknown key \"priec\""},
        {"price: -1\n", ":1:"},
        {"price: 1e3\n", ":1:"},
        {"slots: 0\n", ":1:"},
        {"slots: 5000\n", ":1:"},
        {"memory: 10\n", ":1:"},
        {"memory: 1KiB\n", ":1:"},
        {"term: 5s\n", ":1:"},
        {"interruptible: true\n", "say how: {notice: 30s, minimum_run: 5m}"},
        {"interruptible: {notice: 2d}\n", ":1:"},
        {"interruptible: {minimum_run: 8d}\n", ":1:"},
        {"interruptible: {notise: 2m}\n", "notise"},
        {"programs: [sh, no-such-program]\n", "no-such-program"},
        {"programs: {x: /etc/passwd}\n", "below /usr"},
        {"programs: {x: /usr/share}\n", "below /usr"},
        {"programs: {a/b: /usr/bin/sh}\n", "slash"},
        {"programs: [../../bin/sh]\n", "no program"},
        {"image_files: 0\n", "image_files"},
        {"image_files: 131073\n", "131072"},
        {"image_size: 1kB\n", "image_size"},
        {"visible: [/etc]\n", "below /usr or /opt"},
        {"visible: [/usr/../etc]\n", "below /usr or /opt"},
        {"visible: [/usr/]\n", "below /usr or /opt"},
        {"visible: [/usr/share/]\n", "trailing slash"},
        {"visible: [usr/share]\n", "below /usr or /opt"},
        {"visible: [/usr/there-is-none]\n", "no folder"},
        {"visible: [/usr/bin/sh]\n", "no folder"},
        {"- a\n", "provider.yaml"},
        {"devices: {name: a}\n", ":1:"},
        {"devices: [a]\n", ":1:"},
        {"devices:\n - {price: 1}\n", ":2:"},
        {"devices:\n - {name: a}\n - {name: a}\n", "each device needs a name of its own"},
        {"name: a\ndevices:\n - {name: a}\n", ":3:"},
        {"devices:\n - {name: a, slots: 0}\n", ":2:"},
        {"devices:\n - {simulate: groq-lpu-v2}\n", "did you mean \"groq-lpu-v1\"?"},
        {"devices:\n - {simulate: groq-lpu-v1}\n - {simulate: groq-lpu-v1}\n", ":3:"},
        {"devices:\n - {name: sim.h100}\n", "those of simulated devices"},
        {"name: sim.attic\n", "those of simulated devices"},
        {"name: \"\"\n", ":1: name: an empty name"},
        {"devices:\n - {name: \"\"}\n", "an empty name"},
        {"devices:\n - {simulate: groq-lpu-v1, name: \"\"}\n", "an empty name"},
        {"name: \"a\\nb\"\n", ":1: name: control characters"},
        {"price: 1\nregion: \"a\\eb\"\n", ":2: region: control characters"},
        {"devices:\n - {name: \"a\\u202eb\"}\n", "control characters"},
        {"devices:\n - {simulate: groq-lpu-v1, name: \"a\\tb\"}\n", "control characters"},
        {"devices:\n - {name: a, programs: [sh]}\n", "unknown key \"programs\""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problem problem = {""};
        ck_assert_msg(!read_text(wrong[i].text, &config, &problem), "%s", wrong[i].text);
        ck_assert_msg(strstr(problem.text, wrong[i].says) != NULL, "%s: %s", wrong[i].text,
                      problem.text);
    }
}
END_TEST

/* ---------------------------------------------------------------- offer */

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
    machine_of(2, 16 * GIB);
    (void)snprintf(machine.vendor, sizeof machine.vendor, "example");
    ck_assert_msg(read_text("name: attic\nregion: eu\nimage_files: 5000\nimage_size: 2GiB\n"
                            "devices:\n"
                            "  - {simulate: nvidia-h100-sxm5}\n"
                            "  - {simulate: nvidia-a100-sxm4-40}\n",
                            &config, &problem),
                  "%s", problem.text);
    ck_assert_msg(policy_offers(&config, &machine, &quick, &jailed, &account, &offers, &problem),
                  "%s", problem.text);
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
    ck_assert_int_eq(fact(&offers.items[1], "bf16")->number, INT64_C(989400000000000));
    ck_assert_int_eq(fact(&offers.items[1], "fp64")->number, INT64_C(66900000000000));
}
END_TEST

START_TEST(a_job_gets_the_lesser_of_what_it_asks_and_what_is_offered)
{
    struct problem problem;
    machine_of(4, 16 * GIB);
    ck_assert(config_read("/nonexistent", NULL, &config, &problem));
    ck_assert(policy_offers(&config, &machine, &profile, &jailed, &account, &offers, &problem));
    struct jail_limits limits = policy_jail(first, 2, 0, 0, 0, true);
    ck_assert_uint_eq(limits.memory_bytes, 2 * first->memory_bytes);
    ck_assert_uint_eq(limits.processes, 2 * first->processes);
    ck_assert_uint_eq(limits.cpu_milli, 2000);
    limits = policy_jail(first, 1, 1 << 20, INT64_MAX, 3, false);
    ck_assert_uint_eq(limits.memory_bytes, 1 << 20);
    ck_assert_uint_eq(limits.disk_bytes, first->disk_bytes);
    ck_assert_uint_eq(limits.processes, 3);
    ck_assert_uint_eq(limits.cpu_milli, 0);
}
END_TEST

START_TEST(an_ask_is_for_some_and_at_some_hours)
{
    struct problem problem = {""};
    ck_assert_msg(read_text("to: [alice, bob]\n"
                            "hours: [mon-fri 22:00-07:00, sat-sun 00:00-24:00]\n"
                            "utc_offset: -03:30\n"
                            "devices:\n"
                            "  - {name: same}\n"
                            "  - {name: open, to: anyone, hours: always}\n"
                            "  - {name: short, to: [eve], hours: 01:00-02:00}\n"
                            "  - {name: brief, to: anyone, hours: always, daily: 8h, term: 1h}\n",
                            &config, &problem),
                  "%s", problem.text);
    const struct agent_conditions *whole = &config.conditions;
    const struct agent_conditions *same = &config.devices[0].conditions;
    const struct agent_conditions *open = &config.devices[1].conditions;
    const struct agent_conditions *other = &config.devices[2].conditions;
    ck_assert_uint_eq(whole->to_count, 2);
    ck_assert_str_eq(whole->to[1], "bob");
    ck_assert_uint_eq(whole->hours.count, 2);
    ck_assert_int_eq(whole->hours.offset_min, -210);
    ck_assert_uint_eq(whole->hours.windows[1].days, 0x60);
    ck_assert_mem_eq(whole, same, sizeof *whole);
    ck_assert_uint_eq(open->to_count, 0);
    ck_assert_uint_eq(open->hours.count, 0);
    ck_assert_int_eq(open->hours.offset_min, 0); /* as the market wants it without hours */
    ck_assert_uint_eq(other->to_count, 1);
    ck_assert_str_eq(other->to[0], "eve");
    ck_assert_uint_eq(other->hours.count, 1);
    ck_assert_int_eq(other->hours.offset_min, -210);
    const struct agent_conditions *brief = &config.devices[3].conditions;
    ck_assert_int_eq(brief->daily_ms, INT64_C(8) * 3600 * 1000);
    ck_assert_uint_eq(brief->hours.count, 0);
    ck_assert_int_eq(brief->hours.offset_min, -210); /* a day, too, is one of a clock */
    ck_assert_int_eq(whole->daily_ms, 0);
    ck_assert(read_text("daily: 90m\ndevices: [{name: same}, {name: all, daily: any}]\n", &config,
                        &problem));
    ck_assert_int_eq(config.devices[0].conditions.daily_ms, 90 * 60 * 1000);
    ck_assert_int_eq(config.devices[1].conditions.daily_ms, 0);
    ck_assert(read_text("price: 1\n", &config, &problem));
    ck_assert_uint_eq(config.conditions.to_count, 0);
    ck_assert_uint_eq(config.conditions.hours.count, 0);
}
END_TEST

START_TEST(conditions_that_are_none_are_refused_with_their_line)
{
    static const char *const wrong[][2] = {
        {"price: 0\nto: alice\n", ":2: to: a list of accounts"},
        {"to: []\n", "a list of nobody"},
        {"to: [\"\"]\n", "an account has a name"},
        {"hours: [22:00-22:00]\n", "00:00-24:00"},
        {"\n\nhours: mno-fri 22:00-07:00\n", ":3: hours: \"mno\" is no day; did you mean \"mon\"?"},
        {"hours: []\n", "no hours at all"},
        {"utc_offset: CET\n", "write for example +01:00"},
        {"daily: 30s\n", "daily: "},
        {"daily: none\n", "daily: "},
        {"term: 2h\ndaily: 1h\n", ":2: daily: less than `term`, the longest lease"},
        {"hour: 22:00-07:00\n", ":1: unknown key \"hour\"; did you mean \"hours\"?"},
        {"devices: [{name: a, too: [b]}]\n", "did you mean \"to\"?"},
        {"hours: [01:00-02:00, 01:00-02:00, 01:00-02:00, 01:00-02:00, 01:00-02:00,"
         " 01:00-02:00, 01:00-02:00, 01:00-02:00, 01:00-02:00]\n",
         "8"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problem problem = {""};
        ck_assert_msg(!read_text(wrong[i][0], &config, &problem), "%s", wrong[i][0]);
        ck_assert_msg(strstr(problem.text, wrong[i][1]) != NULL, "%s: %s", wrong[i][0],
                      problem.text);
    }
}
END_TEST

SUITE("provider offer", NULL, NULL, TEST(a_synthetic_machine_is_counted),
      TEST(a_large_machine_and_a_single_core_are_machines_too),
      TEST(this_machine_is_read_within_its_affinity), TEST(the_level_is_what_the_flags_say),
      TEST(a_device_keeps_its_id), TEST(figures_keep_two_digits),
      TEST(a_busy_moment_moves_no_figure_and_a_better_one_does),
      TEST(a_profile_is_kept_per_model_and_measured_at_every_start),
      TEST(an_absent_file_gives_the_defaults), TEST(every_key_is_read),
      TEST(programs_may_be_named_with_their_paths), TEST(folders_that_jobs_see_may_be_added),
      TEST(wrong_keys_and_values_are_refused_with_their_line),
      TEST(an_offer_leaves_the_owner_a_quarter), TEST(other_bounds_of_images_are_offered),
      TEST(matrices_are_offered_where_they_were_measured), TEST(what_cannot_be_kept_is_not_offered),
      TEST(leases_are_firm_unless_the_config_says_otherwise),
      TEST(one_machine_offers_several_devices), TEST(devices_share_what_the_machine_has),
      TEST(a_simulated_device_says_so_and_owns_no_core), TEST(an_ask_is_for_some_and_at_some_hours),
      TEST(conditions_that_are_none_are_refused_with_their_line),
      TEST(what_is_offered_can_be_asked_for),
      TEST(a_job_gets_the_lesser_of_what_it_asks_and_what_is_offered))
