/* What the processes of the jail use, summed over /proc: the fallback where no cgroup counts for
 * us, and the CPU time of processes that still run. */
#include "provider/worker/worker.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Fields of /proc/PID/stat behind the command's name, which may hold anything but ends with the
 * last ')'. */
enum { FIELD_UTIME = 11, FIELD_CSTIME = 14, FIELD_THREADS = 17, FIELD_RESIDENT = 21, FIELDS = 22 };

static bool read_fields(const char *pid, unsigned long long fields[FIELDS])
{
    char path[64];
    char text[1024];
    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false; /* it has just ended */
    }
    ssize_t length = read(file, text, sizeof text - 1);
    (void)close(file);
    if (length <= 0) {
        return false;
    }
    text[length] = '\0';
    char *at = strrchr(text, ')');
    if (at == NULL || at[1] == '\0' || at[2] == '\0') {
        return false;
    }
    at += 3; /* ") S": past the state's letter */
    for (size_t i = 1; i < FIELDS; i++) {
        char *end;
        long long value = strtoll(at, &end, 10);
        if (end == at) {
            return false;
        }
        fields[i] = value < 0 ? 0 : (unsigned long long)value;
        at = end;
    }
    return true;
}

struct load watch_load(void)
{
    struct load load = {0};
    uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    DIR *proc = opendir("/proc");
    if (proc == NULL) {
        return load;
    }
    for (struct dirent *entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
        unsigned long long fields[FIELDS];
        if (!isdigit((unsigned char)entry->d_name[0]) || strcmp(entry->d_name, "1") == 0 ||
            !read_fields(entry->d_name, fields)) {
            continue;
        }
        for (size_t i = FIELD_UTIME; i <= FIELD_CSTIME; i++) {
            load.cpu_ns += fields[i] * tick_ns;
        }
        load.processes += (uint32_t)fields[FIELD_THREADS];
        load.resident_bytes += fields[FIELD_RESIDENT] * page_bytes;
    }
    (void)closedir(proc);
    return load;
}

bool watch_alone(pid_t pid)
{
    DIR *proc = opendir("/proc");
    bool alone = proc != NULL;
    for (struct dirent *entry = NULL; alone && (entry = readdir(proc)) != NULL;) {
        if (isdigit((unsigned char)entry->d_name[0])) {
            long found = strtol(entry->d_name, NULL, 10);
            alone = found == 1 || found == (long)pid;
        }
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
    return alone;
}
