#include "provider/jail/cgroup.h"

#include "provider/jail/cgroup_internal.h"
#include "provider/jail/cgroup_text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_US = 100000 };

struct cgroup {
    const struct cgroups *cgroups;
    size_t count;
    char paths[CGROUP_HIERARCHIES][CGROUP_PATH_BYTES];
    char procs[CGROUP_HIERARCHIES][CGROUP_PATH_BYTES + 16];
    int memory_events, pids_events; /* kept open, read around every subtask; -1: none */
    int memory_file;
};

/* These files of a test tree must go before their folder can go. */
static const char *const control_files[] = {"cgroup.procs",
                                            "cgroup.subtree_control",
                                            "cgroup.kill",
                                            "memory.max",
                                            "pids.max",
                                            "cpu.max",
                                            "cpu.weight",
                                            "cpu.shares",
                                            "memory.swap.max",
                                            "memory.limit_in_bytes",
                                            "memory.memsw.limit_in_bytes",
                                            "cpu.cfs_quota_us",
                                            "cpu.cfs_period_us"};

__attribute__((format(printf, 2, 3))) bool cgroup_join(char ret_path[CGROUP_PATH_BYTES],
                                                       const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(ret_path, CGROUP_PATH_BYTES, format, arguments);
    va_end(arguments);
    return length >= 0 && length < CGROUP_PATH_BYTES;
}

static int open_file(const char *folder, const char *name)
{
    char path[CGROUP_PATH_BYTES];
    return cgroup_join(path, "%s/%s", folder, name) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

bool cgroup_read_text(const char *folder, const char *name, char ret_text[CONTROL_TEXT_BYTES])
{
    int file = open_file(folder, name);
    if (file < 0) {
        return false;
    }
    ssize_t length = read(file, ret_text, CONTROL_TEXT_BYTES - 1);
    (void)close(file);
    ret_text[length > 0 ? length : 0] = '\0';
    return length >= 0;
}

bool cgroup_write_text(const struct cgroups *cgroups, const char *folder, const char *name,
                       const char *text)
{
    char path[CGROUP_PATH_BYTES];
    if (!cgroup_join(path, "%s/%s", folder, name)) {
        return false;
    }
    int flags = O_WRONLY | O_CLOEXEC | (cgroups->plain_files ? O_CREAT | O_TRUNC : 0);
    int file = open(path, flags, 0644);
    bool written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    int error = errno;
    if (file >= 0) {
        (void)close(file);
    }
    errno = error;
    return written;
}

bool cgroup_make_folder(const char *path)
{
    return mkdir(path, 0755) == 0 || errno == EEXIST;
}

void cgroup_remove_folder(const struct cgroups *cgroups, const char *path)
{
    if (cgroups->plain_files) {
        for (size_t i = 0; i < sizeof control_files / sizeof *control_files; i++) {
            char file[CGROUP_PATH_BYTES];
            if (cgroup_join(file, "%s/%s", path, control_files[i])) {
                (void)unlink(file);
            }
        }
    }
    (void)rmdir(path); /* a busy or foreign group stays; it costs nothing */
}

static bool set_memory(const struct cgroups *cgroups, const char *path, uint64_t bytes)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    if (cgroups->version == 2) {
        bool set = cgroup_write_text(cgroups, path, "memory.max", text);
        /* The file is absent where the kernel does not count swap. */
        (void)cgroup_write_text(cgroups, path, "memory.swap.max", "0");
        return set;
    }
    bool set = cgroup_write_text(cgroups, path, "memory.limit_in_bytes", text);
    (void)cgroup_write_text(cgroups, path, "memory.memsw.limit_in_bytes", text);
    return set;
}

static bool set_cpu(const struct cgroups *cgroups, const char *path, uint32_t milli)
{
    char text[64];
    unsigned long quota = (unsigned long)milli * (PERIOD_US / 1000);
    if (cgroups->version == 2) {
        (void)snprintf(text, sizeof text, "%lu %d", quota, PERIOD_US);
        return cgroup_write_text(cgroups, path, "cpu.max", text);
    }
    (void)snprintf(text, sizeof text, "%d", PERIOD_US);
    bool set = cgroup_write_text(cgroups, path, "cpu.cfs_period_us", text);
    (void)snprintf(text, sizeof text, "%lu", quota);
    return cgroup_write_text(cgroups, path, "cpu.cfs_quota_us", text) && set;
}

static bool set_limits(const struct cgroups *cgroups, const struct hierarchy *hierarchy,
                       const char *path, const struct cgroup_limits *limits)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%u", (unsigned)limits->processes);
    return (!hierarchy->has[0] || limits->memory_bytes == 0 ||
            set_memory(cgroups, path, limits->memory_bytes)) &&
           (!hierarchy->has[1] || limits->processes == 0 ||
            cgroup_write_text(cgroups, path, "pids.max", text)) &&
           (!hierarchy->has[2] || limits->cpu_milli == 0 ||
            set_cpu(cgroups, path, limits->cpu_milli));
}

bool cgroup_create(struct cgroups *cgroups, const char *name, const struct cgroup_limits *limits,
                   struct cgroup **ret_group, struct problem *ret_problem)
{
    struct cgroup *group = calloc(1, sizeof *group);
    if (group == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    group->cgroups = cgroups;
    group->memory_events = -1;
    group->pids_events = -1;
    group->memory_file = -1;
    for (size_t i = 0; i < cgroups->count; i++) {
        const struct hierarchy *hierarchy = &cgroups->hierarchies[i];
        char *path = group->paths[i];
        group->count = i + 1;
        if (!cgroup_join(path, "%s/%s", hierarchy->path, name) || !cgroup_make_folder(path) ||
            !set_limits(cgroups, hierarchy, path, limits)) {
            problem_set(ret_problem, "cannot set up the control group %s: %s", path,
                        strerror(errno));
            cgroup_destroy(&group);
            return false;
        }
        /* A process of one thread enters a version 1 group through `tasks` at once. Through
         * cgroup.procs it waits for a grace period of the kernel, 10 to 20 ms. */
        (void)snprintf(group->procs[i], sizeof group->procs[i], "%s/%s", path,
                       cgroups->version == 2 ? "cgroup.procs" : "tasks");
        if (hierarchy->has[0]) {
            group->memory_events =
                open_file(path, cgroups->version == 2 ? "memory.events" : "memory.oom_control");
            group->memory_file = open_file(path, "memory.stat");
        }
        if (hierarchy->has[1]) {
            group->pids_events = open_file(path, "pids.events");
        }
    }
    *ret_group = group;
    return true;
}

size_t cgroup_procs(const struct cgroup *group, const char *ret_paths[CGROUP_HIERARCHIES])
{
    for (size_t i = 0; i < group->count; i++) {
        ret_paths[i] = group->procs[i];
    }
    return group->count;
}

int cgroup_memory_file(const struct cgroup *group)
{
    return group->memory_file;
}

bool cgroup_set_processes(const struct cgroup *group, uint32_t processes)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%u", (unsigned)processes);
    bool set = true;
    for (size_t i = 0; i < group->count; i++) {
        if (group->cgroups->hierarchies[i].has[1]) {
            set = cgroup_write_text(group->cgroups, group->paths[i], "pids.max", text) && set;
        }
    }
    return set;
}

static uint64_t count_of(int file, const char *key)
{
    char text[1024];
    ssize_t length = file >= 0 ? pread(file, text, sizeof text - 1, 0) : 0;
    text[length > 0 ? length : 0] = '\0';
    return cgroup_text_value(text, key);
}

struct cgroup_events cgroup_events(const struct cgroup *group)
{
    return (struct cgroup_events){.out_of_memory = count_of(group->memory_events, "oom_kill"),
                                  .forks_refused = count_of(group->pids_events, "max")};
}

static void kill_members(const struct cgroups *cgroups, const char *path)
{
    char text[CONTROL_TEXT_BYTES];
    if (cgroups->version == 2 && cgroup_write_text(cgroups, path, "cgroup.kill", "1")) {
        return;
    }
    if (!cgroup_read_text(path, "cgroup.procs", text)) {
        return;
    }
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        long pid = strtol(line, NULL, 10);
        if (pid > 1) {
            (void)kill((pid_t)pid, SIGKILL);
        }
    }
}

/* The kernel refuses to remove a group until its last process is gone. Version 1 has no event for
 * that, so there are short waits, at most two seconds together. */
void cgroup_remove_group(const struct cgroups *cgroups, const char *path)
{
    enum { TRIES = 200 };
    const struct timespec pause = {.tv_nsec = 10000000};
    if (cgroups->plain_files) {
        cgroup_remove_folder(cgroups, path);
        return;
    }
    for (int i = 0; i < TRIES && rmdir(path) != 0 && errno == EBUSY; i++) {
        kill_members(cgroups, path);
        (void)nanosleep(&pause, NULL);
    }
}

void cgroup_destroy(struct cgroup **self)
{
    struct cgroup *group = *self;
    if (group != NULL) {
        if (group->memory_events >= 0) {
            (void)close(group->memory_events);
        }
        if (group->pids_events >= 0) {
            (void)close(group->pids_events);
        }
        if (group->memory_file >= 0) {
            (void)close(group->memory_file);
        }
        for (size_t i = 0; i < group->count; i++) {
            cgroup_remove_group(group->cgroups, group->paths[i]);
        }
        free(group);
        *self = NULL;
    }
}
