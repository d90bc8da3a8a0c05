/* This file reads processor time by stage from /proc/PID/task/TID/schedstat (nanoseconds on a
 * processor). */
#include "bench/shared/thread_usage.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_line(const char *path, char *ret_line, size_t capacity)
{
    FILE *file = fopen(path, "re");
    bool got = file != NULL && fgets(ret_line, (int)capacity, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    if (got) {
        ret_line[strcspn(ret_line, "\n")] = '\0';
    }
    return got;
}

static void add(struct usage *usage, const char *name, uint64_t cpu_ns)
{
    size_t i = 0;
    while (i < usage->count && strcmp(usage->stages[i].name, name) != 0) {
        i++;
    }
    if (i == usage->count) {
        if (usage->count == STAGES_MAX) {
            return;
        }
        usage->count++;
        usage->stages[i].cpu_ns = 0;
        (void)snprintf(usage->stages[i].name, sizeof usage->stages[i].name, "%s", name);
    }
    usage->stages[i].cpu_ns += cpu_ns;
}

/* Adds one thread. Threads of one kind that a number tells apart count together. */
static void add_thread(struct usage *usage, const char *group, pid_t pid, const char *thread)
{
    char path[96];
    char comm[64] = "?";
    char times[96] = "0";
    char name[STAGE_NAME_SIZE];
    (void)snprintf(path, sizeof path, "/proc/%d/task/%.16s/comm", (int)pid, thread);
    (void)read_line(path, comm, sizeof comm); /* it may have ended: then it counts no more */
    (void)snprintf(path, sizeof path, "/proc/%d/task/%.16s/schedstat", (int)pid, thread);
    (void)read_line(path, times, sizeof times);
    size_t length = strcspn(comm, "/0123456789");
    (void)snprintf(name, sizeof name, "%s/%.*s", group, (int)(length < 14 ? length : 14), comm);
    add(usage, name, strtoull(times, NULL, 10));
}

static void add_children(struct usage *usage, const char *group, pid_t pid, const char *thread)
{
    char path[96];
    int child;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", (int)pid, thread);
    FILE *children = fopen(path, "re");
    while (children != NULL && fscanf(children, "%d", &child) == 1) {
        usage_add_process(usage, group, child);
    }
    if (children != NULL) {
        (void)fclose(children);
    }
}

void usage_add_process(struct usage *usage, const char *group, pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    if (threads == NULL) {
        return;
    }
    for (struct dirent *entry = readdir(threads); entry != NULL; entry = readdir(threads)) {
        if (entry->d_name[0] != '.') {
            add_thread(usage, group, pid, entry->d_name);
            if (pid != getpid()) {
                add_children(usage, group, pid, entry->d_name);
            }
        }
    }
    (void)closedir(threads);
}

uint64_t usage_of(const struct usage *usage, const char *name)
{
    for (size_t i = 0; i < usage->count; i++) {
        if (strcmp(usage->stages[i].name, name) == 0) {
            return usage->stages[i].cpu_ns;
        }
    }
    return 0;
}

uint64_t usage_total(const struct usage *usage)
{
    uint64_t total_ns = 0;
    for (size_t i = 0; i < usage->count; i++) {
        total_ns += usage->stages[i].cpu_ns;
    }
    return total_ns;
}

uint64_t usage_resident_bytes(pid_t pid)
{
    char path[64];
    char line[128] = "";
    unsigned long long pages = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    if (!read_line(path, line, sizeof line) || sscanf(line, "%*u %llu", &pages) != 1) {
        return 0;
    }
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
