/* provider/idle/power_sensor.h sees whether the machine runs on its battery, how hot it is, and how
 * much its processors take, in /sys/class/power_supply, /sys/class/thermal and /sys/class/powercap.
 */
#ifndef BOURSE_PROVIDER_IDLE_POWER_SENSOR_H
#define BOURSE_PROVIDER_IDLE_POWER_SENSOR_H

#include <stdbool.h>
#include <stdint.h>

/* Returns false when the kernel does not tell. A machine whose list of supplies is empty has no
 * battery. */
bool power_sensor_battery(const char *root, bool *ret_is_on_battery);
/* Returns the percent of the emptiest battery of the machine, or -1 when none tells it. */
int32_t power_sensor_charge(const char *root);

enum { POWER_SENSOR_PACKAGES = 16 };
/* The counters of energy as the last look found them (RAPL, one for each processor). */
struct power_meter {
    int64_t counted_uj[POWER_SENSOR_PACKAGES]; /* -1: the counter was not there */
    int64_t looked_ns;                         /* 0: never */
};
/* Reads what all processors together took since the look before, as a mean. Returns false when the
 * kernel does not tell, which often only root may know. The first look tells nothing and is true
 * with 0, when the counters can be read. */
bool power_sensor_power(struct power_meter *meter, const char *root, int64_t now_ns,
                        int64_t *ret_milliwatts);
/* Reads the hottest zone. Returns false when no zone can be read. */
bool power_sensor_heat(const char *root, int32_t *ret_celsius);

#endif
