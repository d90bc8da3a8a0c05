/* The meter reads folders that stand for a machine with counters of energy, and shares what they
 * say by the CPU time of a piece of work. */
#include "provider/device/energy_meter.h"

#include "base/cleanup.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS INT64_C(1000000)

/* Writes a file of the machine, with the folders above it. */
static void put(const char *name, const char *text)
{
    char file[512];
    (void)snprintf(file, sizeof file, "%s/%s", folder, name);
    for (char *slash = strchr(file + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(file, 0755);
        *slash = '/';
    }
    FILE *out = fopen(file, "w");
    ck_assert_msg(out != NULL, "%s", file);
    (void)fputs(text, out);
    fclose(out);
}

static void put_zone(const char *zone, const char *name, const char *energy_uj)
{
    char file[128];
    (void)snprintf(file, sizeof file, "sys/class/powercap/%s/name", zone);
    put(file, name);
    (void)snprintf(file, sizeof file, "sys/class/powercap/%s/max_energy_range_uj", zone);
    put(file, "1000000\n");
    (void)snprintf(file, sizeof file, "sys/class/powercap/%s/energy_uj", zone);
    put(file, energy_uj);
}

static void put_package(const char *energy_uj)
{
    put("sys/class/powercap/intel-rapl:0/energy_uj", energy_uj);
}

/* Busy for `busy` hundredths of a second: the columns are user, nice, system, idle, iowait, irq,
 * softirq and steal. */
static void put_busy(int busy)
{
    char text[128];
    (void)snprintf(text, sizeof text, "cpu  %d 0 10 5000 70 0 0 0 0 0\ncpu0 1 2 3\n", busy);
    put("proc/stat", text);
}

static void put_machine(void)
{
    put_zone("intel-rapl:0", "package-0\n", "100\n");
    put_zone("intel-rapl:0:0", "core\n", "90\n");
    put_zone("intel-rapl:0:1", "dram\n", "40\n");
    put_zone("intel-rapl:1", "psys\n", "900\n");
    put_zone("intel-rapl-mmio:0", "package-0\n", "100\n");
    put_busy(50);
}

START_TEST(packages_and_their_memory_count_once)
{
    put_machine();
    CLEANUP(energy_meter_close) struct energy_meter *meter = energy_meter_open(folder);
    ck_assert_ptr_nonnull(meter);
    const struct energy_mark from = energy_meter_mark(meter, 0);
    ck_assert(from.is_known);
    ck_assert_int_eq(from.energy_uj, 0);
    put_package("400\n");
    put("sys/class/powercap/intel-rapl:0:0/energy_uj", "390\n");
    put("sys/class/powercap/intel-rapl:0:1/energy_uj", "60\n");
    put("sys/class/powercap/intel-rapl:1/energy_uj", "99999\n");
    put("sys/class/powercap/intel-rapl-mmio:0/energy_uj", "400\n");
    put_busy(90);
    const struct energy_mark until = energy_meter_mark(meter, 400 * MS);
    ck_assert(until.is_known);
    ck_assert_int_eq(until.energy_uj, 300 + 20);
    ck_assert_int_eq(until.busy_ns - from.busy_ns, 400 * MS);
    /* A quarter of the busy time has a quarter of the energy. */
    ck_assert_int_eq(energy_meter_share_uj(&from, &until, 100 * MS), 80);
}
END_TEST

START_TEST(a_counter_that_starts_again_goes_on)
{
    put_machine();
    put_package("999900\n");
    CLEANUP(energy_meter_close) struct energy_meter *meter = energy_meter_open(folder);
    put_package("50\n");
    ck_assert_int_eq(energy_meter_mark(meter, 0).energy_uj, 150);
    /* A meter in use looks before the counter comes around a second time. */
    put_package("600000\n");
    energy_meter_keep(meter, ENERGY_METER_LOOK_NS);
    put_package("500000\n");
    ck_assert_int_eq(energy_meter_mark(meter, 2 * ENERGY_METER_LOOK_NS).energy_uj,
                     150 + 599950 + 900000);
}
END_TEST

START_TEST(a_machine_without_counters_has_no_meter)
{
    put_busy(50);
    ck_assert_ptr_null(energy_meter_open(folder));
    put("sys/class/powercap/dtpm/name", "package-0\n");
    ck_assert_ptr_null(energy_meter_open(folder));
    put_zone("intel-rapl:0", "package-0\n", "a lot\n");
    ck_assert_ptr_null(energy_meter_open(folder));
    put_package("5\n");
    CLEANUP(energy_meter_close) struct energy_meter *meter = energy_meter_open(folder);
    ck_assert_ptr_nonnull(meter);
    put_package("\n");
    ck_assert(!energy_meter_mark(meter, 0).is_known);
    ck_assert(!energy_meter_mark(NULL, 0).is_known);
    energy_meter_keep(NULL, 0);
}
END_TEST

START_TEST(a_busy_time_that_cannot_be_read_is_no_measurement)
{
    put_machine();
    put("proc/stat", "intr 5\n");
    CLEANUP(energy_meter_close) struct energy_meter *meter = energy_meter_open(folder);
    ck_assert_ptr_nonnull(meter);
    ck_assert(!energy_meter_mark(meter, 0).is_known);
}
END_TEST

START_TEST(what_cannot_be_shared_is_not_measured)
{
    const struct energy_mark from = {.is_known = true, .at_ns = 0};
    const struct energy_mark until = {
        .is_known = true, .at_ns = 200 * MS, .energy_uj = 1000, .busy_ns = 100 * MS};
    struct energy_mark other = until;
    ck_assert_int_eq(energy_meter_share_uj(&from, &until, 50 * MS), 500);
    ck_assert_int_eq(energy_meter_share_uj(&from, &until, 500 * MS),
                     1000); /* never more than all */
    ck_assert_int_eq(energy_meter_share_uj(&from, &until, 0), -1);
    other.at_ns = 99 * MS; /* too short */
    ck_assert_int_eq(energy_meter_share_uj(&from, &other, 50 * MS), -1);
    other = until;
    other.busy_ns = 0;
    ck_assert_int_eq(energy_meter_share_uj(&from, &other, 50 * MS), -1);
    other = until;
    other.energy_uj = 0;
    ck_assert_int_eq(energy_meter_share_uj(&from, &other, 50 * MS), -1);
    other = until;
    other.is_known = false;
    ck_assert_int_eq(energy_meter_share_uj(&from, &other, 50 * MS), -1);
    ck_assert_int_eq(energy_meter_share_uj(&other, &until, 50 * MS), -1);
}
END_TEST

SUITE("energy meter", setup, teardown, TEST(packages_and_their_memory_count_once),
      TEST(a_counter_that_starts_again_goes_on), TEST(a_machine_without_counters_has_no_meter),
      TEST(a_busy_time_that_cannot_be_read_is_no_measurement),
      TEST(what_cannot_be_shared_is_not_measured))
