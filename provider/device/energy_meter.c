#include "provider/device/energy_meter.h"

#include "base/checked.h"
#include "provider/idle/sensor_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POWERCAP "/sys/class/powercap"
enum { ZONES_MAX = 64, TEXT_SIZE = 512 };

struct zone {
    int fd;
    int64_t range_uj; /* the counter starts again from 0 after this */
    int64_t last_uj;
};

struct energy_meter {
    char root[SENSOR_FILE_PATH_SIZE];
    pthread_mutex_t mutex; /* guards what follows */
    struct zone zones[ZONES_MAX];
    size_t zone_count;
    int64_t energy_uj;
    int64_t looked_ns;
};

static bool read_counter(int fd, int64_t *ret_uj)
{
    char text[32];
    char *end;
    const ssize_t got = pread(fd, text, sizeof text - 1, 0);
    if (got <= 0) {
        return false;
    }
    text[got] = '\0';
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    *ret_uj = value;
    return errno == 0 && end != text && value >= 0;
}

/* The zones core and uncore are parts of their package, and psys counts packages again. */
static bool counts(const char *root, const char *folder)
{
    char name[32];
    return sensor_file_line(root, folder, "name", name, sizeof name) &&
           (strncmp(name, "package", strlen("package")) == 0 || strcmp(name, "dram") == 0);
}

/* Returns false for a zone that counts and cannot be read. */
static bool open_zone(struct energy_meter *meter, const char *entry)
{
    char folder[TEXT_SIZE];
    char path[SENSOR_FILE_PATH_SIZE + TEXT_SIZE + 16];
    struct zone zone;
    (void)snprintf(folder, sizeof folder, POWERCAP "/%.256s", entry);
    if (!counts(meter->root, folder)) {
        return true;
    }
    if (meter->zone_count == ZONES_MAX ||
        !sensor_file_number(meter->root, folder, "max_energy_range_uj", &zone.range_uj)) {
        return false;
    }
    (void)snprintf(path, sizeof path, "%s%s/energy_uj", meter->root, folder);
    zone.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (zone.fd < 0) {
        return false;
    }
    meter->zones[meter->zone_count++] = zone;
    return read_counter(zone.fd, &meter->zones[meter->zone_count - 1].last_uj);
}

/* Zones of "intel-rapl-mmio:" count packages again. AMD's processors have "intel-rapl:", too. */
static bool open_zones(struct energy_meter *meter)
{
    DIR *stream = sensor_file_list(meter->root, POWERCAP);
    bool good = stream != NULL;
    for (struct dirent *entry = NULL; good && (entry = readdir(stream)) != NULL;) {
        if (strncmp(entry->d_name, "intel-rapl:", strlen("intel-rapl:")) == 0) {
            good = open_zone(meter, entry->d_name);
        }
    }
    if (stream != NULL) {
        (void)closedir(stream);
    }
    return good && meter->zone_count > 0;
}

struct energy_meter *energy_meter_open(const char *root)
{
    struct energy_meter *meter = calloc(1, sizeof *meter);
    if (meter == NULL || pthread_mutex_init(&meter->mutex, NULL) != 0) {
        free(meter);
        return NULL;
    }
    (void)snprintf(meter->root, sizeof meter->root, "%s", root);
    if (!open_zones(meter)) {
        energy_meter_close(&meter);
    }
    return meter;
}

void energy_meter_close(struct energy_meter **self)
{
    struct energy_meter *meter = *self;
    if (meter != NULL) {
        for (size_t i = 0; i < meter->zone_count; i++) {
            (void)close(meter->zones[i].fd);
        }
        (void)pthread_mutex_destroy(&meter->mutex);
        free(meter);
        *self = NULL;
    }
}

/* Adds what the counters have counted since the last look. The mutex is held. */
static bool look(struct energy_meter *meter, int64_t now_ns)
{
    bool good = true;
    for (size_t i = 0; i < meter->zone_count; i++) {
        struct zone *zone = &meter->zones[i];
        int64_t counted_uj;
        if (!read_counter(zone->fd, &counted_uj)) {
            good = false;
            continue;
        }
        int64_t more_uj = counted_uj - zone->last_uj;
        more_uj += more_uj < 0 ? zone->range_uj : 0;
        zone->last_uj = counted_uj;
        good = more_uj >= 0 && checked_add(meter->energy_uj, more_uj, &meter->energy_uj) && good;
    }
    meter->looked_ns = now_ns;
    return good;
}

/* Reads the busy time of all cores from "cpu  user nice system idle iowait irq softirq steal". */
static bool read_busy(const char *root, int64_t *ret_ns)
{
    char text[TEXT_SIZE];
    long long t[8];
    const long ticks = sysconf(_SC_CLK_TCK);
    if (ticks <= 0 || !sensor_file_text(root, "/proc", "stat", text, sizeof text) ||
        sscanf(text, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &t[0], &t[1], &t[2], &t[3],
               &t[4], &t[5], &t[6], &t[7]) != 8) {
        return false;
    }
    return checked_mul(t[0] + t[1] + t[2] + t[5] + t[6] + t[7], NS_PER_S / ticks, ret_ns);
}

struct energy_mark energy_meter_mark(struct energy_meter *meter, int64_t now_ns)
{
    struct energy_mark mark = {.at_ns = now_ns};
    if (meter == NULL) {
        return mark;
    }
    pthread_mutex_lock(&meter->mutex);
    mark.is_known = look(meter, now_ns);
    mark.energy_uj = meter->energy_uj;
    pthread_mutex_unlock(&meter->mutex);
    mark.is_known = read_busy(meter->root, &mark.busy_ns) && mark.is_known;
    return mark;
}

void energy_meter_keep(struct energy_meter *meter, int64_t now_ns)
{
    if (meter != NULL) {
        pthread_mutex_lock(&meter->mutex);
        if (now_ns - meter->looked_ns >= ENERGY_METER_LOOK_NS) {
            (void)look(meter, now_ns);
        }
        pthread_mutex_unlock(&meter->mutex);
    }
}

int64_t energy_meter_share_uj(const struct energy_mark *from, const struct energy_mark *until,
                              int64_t cpu_ns)
{
    const int64_t busy_ns = until->busy_ns - from->busy_ns;
    const int64_t energy_uj = until->energy_uj - from->energy_uj;
    int64_t share_uj;
    if (!from->is_known || !until->is_known || cpu_ns <= 0 || energy_uj <= 0 || busy_ns <= 0 ||
        until->at_ns - from->at_ns < ENERGY_METER_LEAST_NS) {
        return -1;
    }
    return cpu_ns >= busy_ns                                             ? energy_uj
           : checked_muldiv_floor(energy_uj, cpu_ns, busy_ns, &share_uj) ? share_uj
                                                                         : -1;
}
