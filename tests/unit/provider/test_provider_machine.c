/* The tests discover machines, and measure this one: discover, probe. */
#include "provider/device/discover.h"
#include "provider/device/probe.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct machine machine; /* large */

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
    ck_assert_str_eq(discover_level("riscv64", "rv64imafdcv"), "rvv");
}
END_TEST

/* Reads the text as /proc/cpuinfo of a machine of this kind. */
static void read_text(const char *arch, const char *text)
{
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    rewind(file);
    memset(&machine, 0, sizeof machine);
    (void)snprintf(machine.arch, sizeof machine.arch, "%s", arch);
    discover_cpuinfo(file, &machine);
    (void)fclose(file);
}

static bool has_feature(const char *name)
{
    for (unsigned i = 0; discover_feature_name(i) != NULL; i++) {
        if (strcmp(discover_feature_name(i), name) == 0) {
            return (machine.features >> i & 1) != 0;
        }
    }
    ck_abort_msg("no feature %s", name);
}

static unsigned feature_count(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < 32; i++) {
        count += machine.features >> i & 1;
    }
    return count;
}

START_TEST(the_features_of_processors_are_read)
{
    read_text("x86_64", "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon 8480+\n"
                        "flags\t\t: fpu sse2 avx2 fma avx512f avx512bw avx512dq avx512vl amx_bf16 "
                        "amx_tile amx_int8\n");
    ck_assert_str_eq(machine.vendor, "intel");
    ck_assert_str_eq(machine.model, "Xeon 8480+");
    ck_assert_str_eq(machine.level, "avx512");
    ck_assert(has_feature("avx512") && has_feature("amx-tile"));
    ck_assert(has_feature("amx-bf16") && has_feature("amx-int8"));
    ck_assert_uint_eq(feature_count(), 4);

    read_text("x86_64", "flags\t\t: fpu sse2 avx2 fma avx512f amx_int8\n");
    ck_assert_uint_eq(feature_count(), 0); /* each lacks a part that it needs */

    read_text("aarch64", "Features\t: fp asimd sve sve2 svebf16\nCPU implementer\t: 0x41\n");
    ck_assert_str_eq(machine.level, "sve");
    ck_assert(has_feature("sve") && has_feature("sve2"));
    ck_assert_uint_eq(feature_count(), 2);
    read_text("aarch64", "Features\t: fp asimd svebf16\n");
    ck_assert_uint_eq(feature_count(), 0);

    read_text("riscv64", "hart\t\t: 0\nisa\t\t: rv64imafdcv_zicbom_zvl128b\n");
    ck_assert_str_eq(machine.level, "rvv");
    ck_assert(has_feature("rvv"));
    read_text("riscv64", "isa\t\t: rv64imafdc_svinval_zve32x\n");
    ck_assert_str_eq(machine.level, "");
    ck_assert_uint_eq(feature_count(), 0);
}
END_TEST

/* Efficient cores may lack what the fast ones have, and a job may run on either. */
START_TEST(a_feature_counts_when_every_processor_has_it)
{
    read_text("x86_64", "flags\t\t: amx_tile amx_int8\nprocessor\t: 1\n"
                        "flags\t\t: amx_tile\n");
    ck_assert(has_feature("amx-tile") && !has_feature("amx-int8"));
    read_text("x86_64", "processor\t: 0\n");
    ck_assert_uint_eq(feature_count(), 0);
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

SUITE("provider machine", NULL, NULL, TEST(a_synthetic_machine_is_counted),
      TEST(a_large_machine_and_a_single_core_are_machines_too),
      TEST(this_machine_is_read_within_its_affinity), TEST(the_level_is_what_the_flags_say),
      TEST(the_features_of_processors_are_read), TEST(a_feature_counts_when_every_processor_has_it),
      TEST(a_device_keeps_its_id), TEST(figures_keep_two_digits),
      TEST(a_busy_moment_moves_no_figure_and_a_better_one_does),
      TEST(a_profile_is_kept_per_model_and_measured_at_every_start))
