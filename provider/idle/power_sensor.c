#include "provider/idle/power_sensor.h"

#include "provider/idle/sensor_file.h"

#include <stdio.h>
#include <string.h>

enum { CELSIUS_LEAST = -100, CELSIUS_MOST = 1000 };

/* The batteries of mice and phones have the scope "Device". */
static bool is_own_battery(const char *root, const char *folder)
{
    char text[32];
    return !sensor_file_line(root, folder, "scope", text, sizeof text) ||
           strcmp(text, "Device") != 0;
}

bool power_sensor_battery(const char *root, bool *ret_is_on_battery)
{
    bool has_mains = false;
    bool has_power = false;
    bool is_discharging = false;
    DIR *stream = sensor_file_list(root, "/sys/class/power_supply");
    if (stream == NULL) {
        return false;
    }
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        char folder[sizeof entry->d_name + 32];
        char text[32];
        int64_t online = 0;
        (void)snprintf(folder, sizeof folder, "/sys/class/power_supply/%s", entry->d_name);
        if (entry->d_name[0] == '.' || !sensor_file_line(root, folder, "type", text, sizeof text)) {
            continue;
        }
        if (strcmp(text, "Mains") == 0 || strcmp(text, "USB") == 0) {
            has_mains = has_mains || strcmp(text, "Mains") == 0;
            has_power =
                has_power || (sensor_file_number(root, folder, "online", &online) && online == 1);
        } else if (strcmp(text, "Battery") == 0 && is_own_battery(root, folder)) {
            is_discharging =
                is_discharging || (sensor_file_line(root, folder, "status", text, sizeof text) &&
                                   strcmp(text, "Discharging") == 0);
        }
    }
    (void)closedir(stream);
    *ret_is_on_battery = !has_power && (has_mains || is_discharging);
    return true;
}

int32_t power_sensor_charge(const char *root)
{
    int32_t least = -1;
    DIR *stream = sensor_file_list(root, "/sys/class/power_supply");
    for (struct dirent *entry = NULL; stream != NULL && (entry = readdir(stream)) != NULL;) {
        char folder[sizeof entry->d_name + 32];
        char text[32];
        int64_t percent;
        (void)snprintf(folder, sizeof folder, "/sys/class/power_supply/%s", entry->d_name);
        if (entry->d_name[0] == '.' || !sensor_file_line(root, folder, "type", text, sizeof text) ||
            strcmp(text, "Battery") != 0 || !is_own_battery(root, folder) ||
            !sensor_file_number(root, folder, "capacity", &percent) || percent < 0 ||
            percent > 100) {
            continue;
        }
        least = least < 0 || percent < least ? (int32_t)percent : least;
    }
    if (stream != NULL) {
        (void)closedir(stream);
    }
    return least;
}

/* Adds what one processor took since the look before. A counter begins anew at its range. */
static bool add_package(struct power_meter *meter, const char *root, unsigned package,
                        int64_t *sum_uj)
{
    char folder[64];
    int64_t counted_uj;
    int64_t range_uj;
    (void)snprintf(folder, sizeof folder, "/sys/class/powercap/intel-rapl:%u", package);
    const int64_t before_uj = meter->counted_uj[package];
    if (!sensor_file_number(root, folder, "energy_uj", &counted_uj) || counted_uj < 0) {
        meter->counted_uj[package] = -1;
        return false;
    }
    meter->counted_uj[package] = counted_uj;
    if (meter->looked_ns == 0 || before_uj < 0) {
        return true;
    }
    if (counted_uj >= before_uj) {
        *sum_uj += counted_uj - before_uj;
    } else if (sensor_file_number(root, folder, "max_energy_range_uj", &range_uj) &&
               range_uj >= before_uj) {
        *sum_uj += range_uj - before_uj + counted_uj;
    }
    return true;
}

bool power_sensor_power(struct power_meter *meter, const char *root, int64_t now_ns,
                        int64_t *ret_milliwatts)
{
    int64_t sum_uj = 0;
    bool is_known = false;
    for (unsigned package = 0; package < POWER_SENSOR_PACKAGES; package++) {
        is_known = add_package(meter, root, package, &sum_uj) || is_known;
    }
    const int64_t span_us = meter->looked_ns == 0 ? 0 : (now_ns - meter->looked_ns) / 1000;
    meter->looked_ns = now_ns;
    *ret_milliwatts = span_us > 0 ? (int64_t)((double)sum_uj * 1000 / (double)span_us) : 0;
    return is_known;
}

bool power_sensor_heat(const char *root, int32_t *ret_celsius)
{
    bool is_known = false;
    DIR *stream = sensor_file_list(root, "/sys/class/thermal");
    for (struct dirent *entry = NULL; stream != NULL && (entry = readdir(stream)) != NULL;) {
        char folder[sizeof entry->d_name + 32];
        int64_t milli;
        (void)snprintf(folder, sizeof folder, "/sys/class/thermal/%s", entry->d_name);
        if (strncmp(entry->d_name, "thermal_zone", strlen("thermal_zone")) != 0 ||
            !sensor_file_number(root, folder, "temp", &milli) || milli / 1000 < CELSIUS_LEAST ||
            milli / 1000 > CELSIUS_MOST) {
            continue;
        }
        const int32_t celsius = (int32_t)(milli / 1000);
        *ret_celsius = is_known && *ret_celsius > celsius ? *ret_celsius : celsius;
        is_known = true;
    }
    if (stream != NULL) {
        (void)closedir(stream);
    }
    return is_known;
}
