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
