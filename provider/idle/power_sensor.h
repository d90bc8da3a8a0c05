/* provider/idle/power_sensor.h sees whether the machine runs on its battery, and how hot it is, in
 * /sys/class/power_supply and /sys/class/thermal. */
#ifndef BOURSE_PROVIDER_IDLE_POWER_SENSOR_H
#define BOURSE_PROVIDER_IDLE_POWER_SENSOR_H

#include <stdbool.h>
#include <stdint.h>

/* Returns false when the kernel does not tell. A machine whose list of supplies is empty has no
 * battery. */
bool power_sensor_battery(const char *root, bool *ret_is_on_battery);
/* Reads the hottest zone. Returns false when no zone can be read. */
bool power_sensor_heat(const char *root, int32_t *ret_celsius);

#endif
