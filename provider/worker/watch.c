/* provider/worker/watch.c measures what the processes of the jail use. Where a cgroup counts their
 * memory, its figures are read, because its limit is for memory and files together. Otherwise the
 * memory is summed over /proc, like the CPU time of processes that still run. */
#include "provider/worker/worker.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The fields of /proc/PID/stat are counted from the state, which follows the command's name. The
 * name may hold any bytes, and the last ')' ends it. */
enum { FIELD_UTIME = 11, FIELD_CSTIME = 14, FIELD_THREADS = 17, FIELD_RESIDENT = 21, FIELDS = 22 };

static bool read_fields(const char *pid, unsigned long long fields[FIELDS])
{
    char path[64];
    char text[1024];
    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false; /* the process has just ended */
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

/* Returns the number after `key ` at the start of a line, or 0. */
static uint64_t stat_value(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ') {
            return strtoull(line + length + 1, NULL, 10);
        }
    }
    return 0;
}

/* Returns the bytes of the folders' files and of the captured output. These files live in memory,
 * and the cgroup counts them as shared memory. */
static uint64_t file_bytes(const struct worker *worker, bool work_too)
{
    uint64_t bytes = stage_usage(worker, work_too).used_bytes;
    for (size_t i = 0; i < 2; i++) {
        struct stat status;
        bytes += fstat(worker->capture[i], &status) == 0 ? (uint64_t)status.st_blocks * 512 : 0;
    }
    return bytes;
}

uint64_t watch_group_memory(const struct worker *worker, bool work_too)
{
    char text[8192];
    /* Files may come and go between the three readings. The larger of the two sums is taken, so
     * that such a file is not counted as memory. */
    uint64_t before = file_bytes(worker, work_too);
    ssize_t length = pread(worker->memory_file, text, sizeof text - 1, 0);
    uint64_t after = file_bytes(worker, work_too);
    text[length > 0 ? length : 0] = '\0';
    uint64_t files = before > after ? before : after;
    uint64_t shared = stat_value(text, "shmem");
    /* Version 2 of cgroups calls the figure "anon", version 1 "rss". */
    return stat_value(text, "anon") + stat_value(text, "rss") +
           (shared > files ? shared - files : 0);
}

bool watch_alone(const struct resident *resident)
{
    DIR *proc = opendir("/proc");
    bool alone = proc != NULL;
    for (struct dirent *entry = NULL; alone && (entry = readdir(proc)) != NULL;) {
        if (isdigit((unsigned char)entry->d_name[0])) {
            long found = strtol(entry->d_name, NULL, 10);
            alone =
                found == 1 || found == (long)resident->pid || found == (long)resident->companion;
        }
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
    return alone;
}

/* A process that waits in the kernel (D) is as good as stopped: it stops before its next
 * instruction. */
bool watch_stopped(void)
{
    DIR *proc = opendir("/proc");
    bool stopped = proc != NULL;
    for (struct dirent *entry = NULL; stopped && (entry = readdir(proc)) != NULL;) {
        char path[64];
        char text[1024];
        if (!isdigit((unsigned char)entry->d_name[0]) || strcmp(entry->d_name, "1") == 0) {
            continue;
        }
        (void)snprintf(path, sizeof path, "/proc/%.20s/stat", entry->d_name);
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        const ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
        text[length > 0 ? length : 0] = '\0';
        const char *end = strrchr(text, ')');
        stopped = end == NULL || end[1] == '\0' || strchr("TtDZX", end[2]) != NULL;
        if (file >= 0) {
            (void)close(file);
        }
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
    return stopped;
}
