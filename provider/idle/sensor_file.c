#include "provider/idle/sensor_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool join(const char *root, const char *folder, const char *name,
                 char ret_path[SENSOR_FILE_PATH_SIZE])
{
    const int length = snprintf(ret_path, SENSOR_FILE_PATH_SIZE, "%s%s/%s", root, folder, name);
    return length > 0 && length < SENSOR_FILE_PATH_SIZE;
}

/* Opens a regular file. Returns -1 for anything else. */
static int open_regular(const char *root, const char *folder, const char *name)
{
    char path[SENSOR_FILE_PATH_SIZE];
    struct stat status;
    const int file = join(root, folder, name, path)
                         ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
                         : -1;
    if (file >= 0 && (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))) {
        (void)close(file);
        return -1;
    }
    return file;
}

FILE *sensor_file_open(const char *root, const char *folder, const char *name)
{
    const int file = open_regular(root, folder, name);
    FILE *stream = file < 0 ? NULL : fdopen(file, "r");
    if (stream == NULL && file >= 0) {
        (void)close(file);
    }
    return stream;
}

bool sensor_file_text(const char *root, const char *folder, const char *name, char *ret_text,
                      size_t capacity)
{
    const int file = open_regular(root, folder, name);
    size_t length = 0;
    bool good = file >= 0;
    while (good && length < capacity - 1) {
        const ssize_t got = read(file, ret_text + length, capacity - 1 - length);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            good = got == 0;
            break;
        }
        length += (size_t)got;
    }
    ret_text[length] = '\0';
    if (file >= 0) {
        (void)close(file);
    }
    return good;
}

bool sensor_file_line(const char *root, const char *folder, const char *name, char *ret_text,
                      size_t capacity)
{
    if (!sensor_file_text(root, folder, name, ret_text, capacity)) {
        return false;
    }
    size_t length = strcspn(ret_text, "\n");
    while (length > 0 && (ret_text[length - 1] == ' ' || ret_text[length - 1] == '\t')) {
        length--;
    }
    ret_text[length] = '\0';
    return true;
}

bool sensor_file_number(const char *root, const char *folder, const char *name, int64_t *ret_number)
{
    char text[64];
    char *end;
    if (!sensor_file_line(root, folder, name, text, sizeof text)) {
        return false;
    }
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0') {
        return false;
    }
    *ret_number = number;
    return true;
}

DIR *sensor_file_list(const char *root, const char *folder)
{
    char path[SENSOR_FILE_PATH_SIZE];
    return join(root, folder, "", path) ? opendir(path) : NULL;
}
