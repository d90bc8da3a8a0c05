/* The tests read the charge of batteries and the power of processors from folders that stand for a
 * machine. */
#include "provider/idle/idle_watch.h"
#include "provider/idle/power_sensor.h"
#include "tests/support/machine_files.h"
#include "tests/support/suite.h"

#include <check.h>

#define NS INT64_C(1000000000)

START_TEST(the_emptiest_battery_of_the_machine_counts)
{
    ck_assert_int_eq(power_sensor_charge(folder), -1);
    put("sys/class/power_supply/hid-1/type", "Battery\n");
    put("sys/class/power_supply/hid-1/scope", "Device\n");
    put("sys/class/power_supply/hid-1/capacity", "3\n");
    put("sys/class/power_supply/AC/type", "Mains\n");
    put("sys/class/power_supply/AC/capacity", "2\n");
    put("sys/class/power_supply/BAT0/type", "Battery\n");
    ck_assert_int_eq(power_sensor_charge(folder), -1);
    put("sys/class/power_supply/BAT0/capacity", "80\n");
    ck_assert_int_eq(power_sensor_charge(folder), 80);
    put("sys/class/power_supply/BAT1/type", "Battery\n");
    put("sys/class/power_supply/BAT1/capacity", "55\n");
    ck_assert_int_eq(power_sensor_charge(folder), 55);
    put("sys/class/power_supply/BAT1/capacity", "101\n"); /* no kernel says so */
    ck_assert_int_eq(power_sensor_charge(folder), 80);
}
END_TEST

START_TEST(the_counters_of_all_processors_make_the_power)
{
    struct power_meter meter = {.looked_ns = 0};
    int64_t milliwatts = -1;
    ck_assert(!power_sensor_power(&meter, folder, NS, &milliwatts));
    put("sys/class/powercap/intel-rapl:0/energy_uj", "1000000\n");
    put("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "9000000\n");
    put("sys/class/powercap/intel-rapl:1/energy_uj", "5000000\n");
    put("sys/class/powercap/intel-rapl:0:0/energy_uj", "77\n"); /* a part of processor 0 */
    ck_assert(power_sensor_power(&meter, folder, 2 * NS, &milliwatts));
    ck_assert_int_eq(milliwatts, 0); /* the counters were not there before */
    put("sys/class/powercap/intel-rapl:0/energy_uj", "4000000\n");
    put("sys/class/powercap/intel-rapl:1/energy_uj", "6000000\n");
    ck_assert(power_sensor_power(&meter, folder, 4 * NS, &milliwatts));
    ck_assert_int_eq(milliwatts, 2000);                            /* 4 J in 2 s */
    put("sys/class/powercap/intel-rapl:0/energy_uj", "1000000\n"); /* the counter began anew */
    ck_assert(power_sensor_power(&meter, folder, 5 * NS, &milliwatts));
    ck_assert_int_eq(milliwatts, 6000);
}
END_TEST

/* The battery that is full enough, and the power, go through a whole watch. */
START_TEST(a_watch_holds_for_a_low_battery_and_for_power)
{
    const struct idle_terms wanted = {.is_set = true,
                                      .after_ns = NS,
                                      .give_back_ns = NS,
                                      .load_milli = -1,
                                      .watches_battery = true,
                                      .battery_percent = 60,
                                      .milliwatts = 50000};
    char text[IDLE_REASON_SIZE];
    put("sys/class/power_supply/BAT0/type", "Battery\n");
    put("sys/class/power_supply/BAT0/status", "Discharging\n");
    put("sys/class/power_supply/BAT0/capacity", "61\n");
    ck_assert(!idle_watch_check(&wanted, folder, &problem));
    ck_assert(says(
        "no counter of energy below /sys/class/powercap (often only root may read it) can be"));
    put("sys/class/powercap/intel-rapl:0/energy_uj", "0\n");
    ck_assert(idle_watch_check(&wanted, folder, &problem));
    struct idle_watch *watch = idle_watch_create(&wanted, folder, 1, NS);
    ck_assert_ptr_nonnull(watch);
    ck_assert_int_eq(idle_watch_look(watch, NS), IDLE_HOLD);
    for (int i = 0; i < 8; i++) {
        (void)idle_watch_look(watch, idle_watch_due_ns(watch));
    }
    ck_assert_int_eq(idle_watch_look(watch, idle_watch_due_ns(watch)), IDLE_WORK);
    put("sys/class/power_supply/BAT0/capacity", "59\n");
    for (int i = 0; i < 4; i++) {
        (void)idle_watch_look(watch, idle_watch_due_ns(watch));
    }
    idle_watch_reason(watch, idle_watch_due_ns(watch), text);
    ck_assert_msg(strstr(text, "on its battery, which ha") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "59 %, and the owner's limit is 60 %") != NULL, "%s", text);
    put("sys/class/power_supply/BAT0/status", "Charging\n");
    put("sys/class/powercap/intel-rapl:0/energy_uj", "900000000000\n");
    for (int i = 0; i < 4; i++) {
        (void)idle_watch_look(watch, idle_watch_due_ns(watch));
    }
    idle_watch_reason(watch, idle_watch_due_ns(watch), text);
    ck_assert_msg(strstr(text, " W, and the owner's limit is 50 W") != NULL, "%s", text);
    idle_watch_destroy(&watch);
}
END_TEST

SUITE("the sensor of power", setup, teardown, TEST(the_emptiest_battery_of_the_machine_counts),
      TEST(the_counters_of_all_processors_make_the_power),
      TEST(a_watch_holds_for_a_low_battery_and_for_power))
