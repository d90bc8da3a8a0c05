#include "provider/idle/input_sensor.h"

#include "base/text.h"
#include "provider/idle/sensor_file.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { INTERRUPTS_MAX = 1 << 12, INTERRUPTS_AT_ONCE = 1 << 14, DEVICES_MAX = 1 << 16 };

void input_sensor_init(struct input_sensor *sensor, const char *root)
{
    *sensor = (struct input_sensor){.root = root};
}

static uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

/* Hashes a source's name and value, so that the sum over all sources changes with any of them. */
static uint64_t trace(const char *kind, const char *name, uint64_t value)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *text = kind; *text != '\0'; text++) {
        hash = mixed(hash, (unsigned char)*text);
    }
    for (const char *text = name; *text != '\0'; text++) {
        hash = mixed(hash, (unsigned char)*text);
    }
    return mixed(hash, value);
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
}

/* Returns true for tty1, ttyS0 and the like. */
static bool is_terminal_name(const char *name)
{
    if (strncmp(name, "tty", 3) != 0) {
        return false;
    }
    return is_number(name + 3 + (name[3] == 'S'));
}

static uint64_t look_at_terminals(struct input_sensor *sensor, const char *folder, bool is_pts)
{
    uint64_t sum = 0;
    DIR *stream = sensor_file_list(sensor->root, folder);
    for (struct dirent *entry = NULL; stream != NULL && (entry = readdir(stream)) != NULL;) {
        struct stat status;
        if (!(is_pts ? is_number(entry->d_name) : is_terminal_name(entry->d_name)) ||
            fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !(S_ISCHR(status.st_mode) || S_ISREG(status.st_mode))) {
            continue;
        }
        sensor->terminals++;
        sum += trace(folder, entry->d_name,
                     mixed((uint64_t)status.st_atim.tv_sec, (uint64_t)status.st_atim.tv_nsec));
    }
    if (stream != NULL) {
        (void)closedir(stream);
    }
    return sum;
}

/* Adds the keyboards and mice. Their interfaces are of class 3 and protocol 1 or 2, and are called
 * DEVICE:CONFIGURATION.INTERFACE. */
static uint64_t look_at_usb(struct input_sensor *sensor)
{
    static const char folder[] = "/sys/bus/usb/devices";
    uint64_t sum = 0;
    DIR *stream = sensor_file_list(sensor->root, folder);
    for (struct dirent *entry = NULL; stream != NULL && (entry = readdir(stream)) != NULL;) {
        char name[sizeof entry->d_name + 32];
        char text[16];
        int64_t reports;
        const int length = (int)strcspn(entry->d_name, ":");
        if (entry->d_name[length] == '\0') {
            continue;
        }
        (void)snprintf(name, sizeof name, "%s/bInterfaceClass", entry->d_name);
        if (!sensor_file_line(sensor->root, folder, name, text, sizeof text) ||
            strcmp(text, "03") != 0) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%s/bInterfaceProtocol", entry->d_name);
        if (!sensor_file_line(sensor->root, folder, name, text, sizeof text) ||
            (strcmp(text, "01") != 0 && strcmp(text, "02") != 0)) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%.*s/urbnum", length, entry->d_name);
        if (sensor_file_number(sensor->root, folder, name, &reports)) {
            sensor->usb++;
            sum += trace(folder, entry->d_name, (uint64_t)reports);
        }
    }
    if (stream != NULL) {
        (void)closedir(stream);
    }
    return sum;
}

/* Returns true for a line of a keyboard, mouse or touchpad that is built in. */
static bool is_input_line(const char *line)
{
    static const char *const names[] = {"i8042", "kbd",  "keyboard", "mouse", "touch",
                                        "elan",  "syna", "alps",     "wacom", "msft0001"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasestr(line, names[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Adds the counts of all processors: the numbers behind "1:". */
static uint64_t count_line(const char *line)
{
    const char *at = strchr(line, ':');
    uint64_t count = 0;
    while (at != NULL) {
        char *end;
        at++;
        const unsigned long long number = strtoull(at, &end, 10);
        if (end == at || (*end != ' ' && *end != '\0')) {
            break;
        }
        count += number;
        at = *end == '\0' ? NULL : end;
    }
    return count;
}

/* A line has some 11 bytes for each processor. The rest of a longer line counts as a line of its
 * own, without a number. */
static uint64_t look_at_interrupts(struct input_sensor *sensor)
{
    uint64_t sum = 0;
    char buffer[INTERRUPTS_AT_ONCE];
    char line[INTERRUPTS_AT_ONCE];
    FILE *file = sensor_file_open(sensor->root, "/proc", "interrupts");
    if (file == NULL) {
        return 0;
    }
    (void)setvbuf(file, buffer, _IOFBF, sizeof buffer);
    for (int lines = 0; lines < INTERRUPTS_MAX && fgets(line, sizeof line, file) != NULL; lines++) {
        line[strcspn(line, "\n")] = '\0';
        if (is_input_line(line)) {
            sensor->lines++;
            sum += trace("interrupts", "", count_line(line));
        }
    }
    (void)fclose(file);
    return sum;
}

/* Finds a Bluetooth keyboard or mouse in the kernel's list of input devices. Each device has lines
 * such as `I: Bus=0005 ...`, `N: Name="..."` and `H: Handlers=kbd event3`. */
static void look_for_unseen(struct input_sensor *sensor)
{
    bool is_bluetooth = false;
    char name[sizeof sensor->unseen] = "";
    char *rest = NULL;
    char *text = malloc(DEVICES_MAX);
    sensor->unseen[0] = '\0';
    if (text == NULL ||
        !sensor_file_text(sensor->root, "/proc/bus/input", "devices", text, DEVICES_MAX)) {
        free(text);
        return;
    }
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "I: ", 3) == 0) {
            is_bluetooth = strncmp(line + 3, "Bus=0005 ", 9) == 0;
            name[0] = '\0';
        } else if (strncmp(line, "N: Name=\"", 9) == 0) {
            text_printable(line + 9, strcspn(line + 9, "\""), name, sizeof name);
        } else if (is_bluetooth && strncmp(line, "H: ", 3) == 0 &&
                   (strstr(line, "kbd") != NULL || strstr(line, "mouse") != NULL)) {
            memcpy(sensor->unseen, name, sizeof name);
        }
    }
    free(text);
}

bool input_sensor_look(struct input_sensor *sensor, bool *ret_input)
{
    sensor->terminals = sensor->usb = sensor->lines = 0;
    const uint64_t state = look_at_terminals(sensor, "/dev", false) +
                           look_at_terminals(sensor, "/dev/pts", true) + look_at_usb(sensor) +
                           look_at_interrupts(sensor);
    if (!sensor->has_looked) {
        look_for_unseen(sensor);
    }
    *ret_input = sensor->has_looked && state != sensor->state;
    sensor->has_looked = true;
    sensor->state = state;
    return sensor->terminals + sensor->usb + sensor->lines > 0;
}
