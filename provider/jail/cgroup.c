#include "provider/jail/cgroup.h"

#include "provider/jail/cgroup_text.h"
#include "provider/jail/keeper.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CONTROLLERS = 3, PERIOD_US = 100000, CONTROL_TEXT_BYTES = 4096 };
static const char *const controller_names[CONTROLLERS] = {"memory", "pids", "cpu"};

struct hierarchy {
    char path[CGROUP_PATH_BYTES]; /* our subtree */
    char home[CGROUP_PATH_BYTES]; /* version 2: the former group of this process */
    bool has[CONTROLLERS];
    bool enabled[CONTROLLERS]; /* version 2: by this process, in `home` */
};

struct cgroups {
    int version;
    bool plain_files;
    struct hierarchy hierarchies[CGROUP_HIERARCHIES];
    size_t count;
    int lock;        /* on the first hierarchy's folder, held by us and our keeper */
    int patience_ms; /* time left for a former owner to leave */
    bool taken;      /* a former owner did not leave */
    struct keeper keeper;
};

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
                                            "memory.swap.max",
                                            "memory.limit_in_bytes",
                                            "memory.memsw.limit_in_bytes",
                                            "cpu.cfs_quota_us",
                                            "cpu.cfs_period_us"};

__attribute__((format(printf, 2, 3))) static bool join(char ret_path[CGROUP_PATH_BYTES],
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
    return join(path, "%s/%s", folder, name) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

static bool read_text(const char *folder, const char *name, char ret_text[CONTROL_TEXT_BYTES])
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

static bool write_text(const struct cgroups *cgroups, const char *folder, const char *name,
                       const char *text)
{
    char path[CGROUP_PATH_BYTES];
    if (!join(path, "%s/%s", folder, name)) {
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

static bool make_folder(const char *path)
{
    return mkdir(path, 0755) == 0 || errno == EEXIST;
}

/* Makes the folder and locks it. An agent started right after another was killed meets the other's
 * keeper, which is about to remove the subtree. The new agent waits for the removal and makes its
 * own subtree. */
static bool claim(struct cgroups *cgroups, const char *path)
{
    enum { STEP_MS = 20 };
    const struct timespec pause = {.tv_nsec = STEP_MS * 1000000};
    struct stat locked, named;
    while (make_folder(path)) {
        int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        bool is_ours = folder >= 0 && flock(folder, LOCK_EX | LOCK_NB) == 0;
        if (is_ours && fstat(folder, &locked) == 0 && stat(path, &named) == 0 &&
            locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) {
            cgroups->lock = folder;
            return true;
        }
        if (folder >= 0) {
            (void)close(folder); /* another owner's, or removed meanwhile */
        }
        if (cgroups->patience_ms <= 0) {
            cgroups->taken = true;
            return false;
        }
        cgroups->patience_ms -= STEP_MS;
        (void)nanosleep(&pause, NULL); /* no event tells the end of the lock */
    }
    return false;
}

static void unclaim(struct cgroups *cgroups)
{
    if (cgroups->lock >= 0) {
        (void)close(cgroups->lock);
        cgroups->lock = -1;
    }
}

static void remove_folder(const struct cgroups *cgroups, const char *path)
{
    if (cgroups->plain_files) {
        for (size_t i = 0; i < sizeof control_files / sizeof *control_files; i++) {
            char file[CGROUP_PATH_BYTES];
            if (join(file, "%s/%s", path, control_files[i])) {
                (void)unlink(file);
            }
        }
    }
    (void)rmdir(path); /* a busy or foreign group stays; it costs nothing */
}

static bool give(const char *folder, const char *name, uid_t owner, gid_t group)
{
    char path[CGROUP_PATH_BYTES];
    return owner == (uid_t)-1 || (join(path, "%s%s%s", folder, name[0] != '\0' ? "/" : "", name) &&
                                  chown(path, owner, group) == 0);
}

/* Writes `sign`, + or -, before the name of each controller in `which`. */
static bool hand_down(const struct cgroups *cgroups, const char *folder, char sign,
                      const bool which[CONTROLLERS])
{
    bool all = true;
    for (size_t i = 0; i < CONTROLLERS; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%c%s", sign, controller_names[i]);
        all = (!which[i] || write_text(cgroups, folder, "cgroup.subtree_control", text)) && all;
    }
    return all;
}

static void find_enabled(struct hierarchy *ours)
{
    char before[CONTROL_TEXT_BYTES] = "";
    (void)read_text(ours->home, "cgroup.subtree_control", before);
    for (size_t i = 0; i < CONTROLLERS; i++) {
        ours->enabled[i] = ours->has[i] && !cgroup_text_has(before, controller_names[i]);
    }
}

/* Moves the processes of the leaf back to the former group, where nothing else uses the controllers
 * there. A group that hands controllers down takes no process (EBUSY). */
static void go_home(const struct cgroups *cgroups, const struct hierarchy *ours)
{
    char leaf[CGROUP_PATH_BYTES];
    char members[CONTROL_TEXT_BYTES];
    char *rest = NULL;
    (void)hand_down(cgroups, ours->home, '-', ours->enabled);
    if (join(leaf, "%s/agent", ours->path) && read_text(leaf, "cgroup.procs", members)) {
        for (char *line = strtok_r(members, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest)) {
            (void)write_text(cgroups, ours->home, "cgroup.procs", line);
        }
    }
}

static void remove_subtree(const void *subject);

/* A group may not both hold processes and hand controllers down, so this process moves into a leaf.
 * The jails' groups are siblings of that leaf. A move between them needs rights on the subtree
 * only. */
static bool open_unified(struct cgroups *cgroups, const char *base, const char *name, uid_t owner,
                         gid_t group)
{
    struct hierarchy *ours = &cgroups->hierarchies[0];
    char controllers[CONTROL_TEXT_BYTES];
    char leaf[CGROUP_PATH_BYTES];
    if (!read_text(base, "cgroup.controllers", controllers)) {
        return false;
    }
    for (size_t i = 0; i < CONTROLLERS; i++) {
        ours->has[i] = cgroup_text_has(controllers, controller_names[i]);
    }
    if (!(ours->has[0] || ours->has[1]) || !join(ours->home, "%s", base) ||
        !join(ours->path, "%s/bourse-%s", base, name) || !join(leaf, "%s/agent", ours->path) ||
        !claim(cgroups, ours->path)) {
        return false;
    }
    find_enabled(ours);
    if (make_folder(leaf) && write_text(cgroups, leaf, "cgroup.procs", "0") &&
        hand_down(cgroups, base, '+', ours->has) &&
        hand_down(cgroups, ours->path, '+', ours->has) && give(ours->path, "", owner, group) &&
        give(ours->path, "cgroup.procs", owner, group) &&
        give(ours->path, "cgroup.subtree_control", owner, group) && give(leaf, "", owner, group) &&
        give(leaf, "cgroup.procs", owner, group)) {
        cgroups->count = 1;
        cgroups->version = 2;
        return true;
    }
    cgroups->version = 2;
    cgroups->count = 1;
    remove_subtree(cgroups);
    cgroups->count = 0;
    unclaim(cgroups);
    return false;
}

/* The lock is on the first hierarchy's folder. */
static bool make_or_claim(struct cgroups *cgroups, const char *path)
{
    return cgroups->lock < 0 ? claim(cgroups, path) : make_folder(path);
}

static bool open_version_1(struct cgroups *cgroups, const char *root, const char *table,
                           const char *name, uid_t owner, gid_t group)
{
    for (size_t i = 0; i < CONTROLLERS && !cgroups->taken; i++) {
        struct hierarchy *next = &cgroups->hierarchies[cgroups->count];
        char own[CGROUP_PATH_BYTES];
        *next = (struct hierarchy){0};
        if (!cgroup_text_path(table, controller_names[i], own, sizeof own)) {
            continue;
        }
        /* The path may be of an outer cgroup namespace, of which only the mount point is
         * visible. */
        bool made =
            join(next->path, "%.100s/%s%.300s/bourse-%s", root, controller_names[i], own, name) &&
            make_or_claim(cgroups, next->path);
        if (!made && !cgroups->taken) {
            made = join(next->path, "%.100s/%s/bourse-%s", root, controller_names[i], name) &&
                   make_or_claim(cgroups, next->path);
        }
        if (!made) {
            continue;
        }
        if (!give(next->path, "", owner, group)) {
            remove_folder(cgroups, next->path);
            if (cgroups->count == 0) {
                unclaim(cgroups);
            }
            continue;
        }
        next->has[i] = true;
        cgroups->count++;
    }
    cgroups->version = 1;
    return cgroups->count > 0;
}

/* A limit counts as enforced only after a trial group could be made with it. */
static void keep_what_works(struct cgroups *cgroups)
{
    for (size_t i = 0; i < CONTROLLERS; i++) {
        struct cgroup_limits limits = {.memory_bytes = i == 0 ? UINT64_C(1) << 30 : 0,
                                       .processes = i == 1 ? 64 : 0,
                                       .cpu_milli = i == 2 ? 1000 : 0};
        struct cgroup *trial = NULL;
        bool works = cgroup_create(cgroups, "trial", &limits, &trial, NULL);
        cgroup_destroy(&trial);
        for (size_t h = 0; h < cgroups->count && !works; h++) {
            cgroups->hierarchies[h].has[i] = false;
        }
    }
}

static void remove_group(const struct cgroups *cgroups, const char *path);

/* Removes the groups of jails, and ends what runs there. */
static void empty_subtree(const void *subject)
{
    const struct cgroups *cgroups = subject;
    for (size_t i = 0; i < cgroups->count; i++) {
        const struct hierarchy *ours = &cgroups->hierarchies[i];
        DIR *stream = opendir(ours->path);
        for (struct dirent *entry = NULL; stream != NULL && (entry = readdir(stream)) != NULL;) {
            char path[CGROUP_PATH_BYTES];
            if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
                (ours->home[0] == '\0' || strcmp(entry->d_name, "agent") != 0) &&
                join(path, "%s/%s", ours->path, entry->d_name)) {
                remove_group(cgroups, path);
            }
        }
        if (stream != NULL) {
            (void)closedir(stream);
        }
    }
}

static void remove_subtree(const void *subject)
{
    const struct cgroups *cgroups = subject;
    char leaf[CGROUP_PATH_BYTES];
    if (cgroups->version == 2 && cgroups->count > 0) {
        const struct hierarchy *ours = &cgroups->hierarchies[0];
        (void)hand_down(cgroups, ours->path, '-', ours->has);
        go_home(cgroups, ours);
        if (join(leaf, "%s/agent", ours->path)) {
            remove_folder(cgroups, leaf);
        }
    }
    for (size_t i = cgroups->count; i > 0; i--) { /* the locked one goes last */
        remove_folder(cgroups, cgroups->hierarchies[i - 1].path);
    }
}

static bool start_keeper(struct cgroups *cgroups, uid_t owner, gid_t group, struct problem *problem)
{
    const struct keeper_work work = {.empty = empty_subtree,
                                     .remove = remove_subtree,
                                     .subject = cgroups,
                                     .owner = owner,
                                     .group = group,
                                     .lock = cgroups->lock};
    return keeper_start(&work, &cgroups->keeper, problem);
}

bool cgroups_open(const struct cgroup_place *place, const char *name, uid_t owner, gid_t group,
                  struct cgroups **ret_cgroups, struct problem *ret_problem)
{
    const char *root = place != NULL && place->root != NULL ? place->root : "/sys/fs/cgroup";
    const char *self = place != NULL && place->self != NULL ? place->self : "/proc/self/cgroup";
    char table[CONTROL_TEXT_BYTES];
    char own[CGROUP_PATH_BYTES];
    char base[CGROUP_PATH_BYTES];
    struct cgroups *cgroups = calloc(1, sizeof *cgroups);
    if (cgroups == NULL || !read_text("", self, table)) {
        problem_set(ret_problem, "control groups: cannot read %s", self);
        free(cgroups);
        return false;
    }
    cgroups->keeper.socket = -1;
    cgroups->lock = -1;
    cgroups->patience_ms =
        place != NULL && place->patience_ms != 0 ? place->patience_ms : CGROUP_PATIENCE_MS;
    cgroups->plain_files = place != NULL && place->plain_files;
    bool opened = false;
    if (cgroup_text_path(table, "", own, sizeof own)) {
        /* If other processes share our group, root can still use the top of the tree. */
        opened = (join(base, "%.200s%.300s", root, own) &&
                  open_unified(cgroups, base, name, owner, group)) ||
                 (!cgroups->taken && own[0] != '\0' && join(base, "%s", root) &&
                  open_unified(cgroups, base, name, owner, group));
    }
    opened =
        opened || (!cgroups->taken && open_version_1(cgroups, root, table, name, owner, group));
    if (opened) {
        keep_what_works(cgroups);
        opened = cgroups_memory(cgroups) || cgroups_processes(cgroups) || cgroups_cpu(cgroups);
    }
    if (opened && owner != (uid_t)-1 && owner != geteuid() &&
        !start_keeper(cgroups, owner, group, ret_problem)) {
        cgroups_close(&cgroups);
        return false;
    }
    if (cgroups->taken) {
        problem_set(ret_problem, "another agent has the control group bourse-%s", name);
        cgroups_close(&cgroups);
        return false;
    }
    if (!opened) {
        problem_set(ret_problem,
                    "no control group below %s may be written: start the agent as root "
                    "or delegate a group to it (systemd: Delegate=yes)",
                    root);
        cgroups_close(&cgroups);
        return false;
    }
    *ret_cgroups = cgroups;
    return true;
}

void cgroups_close(struct cgroups **self)
{
    struct cgroups *cgroups = *self;
    if (cgroups == NULL) {
        return;
    }
    if (cgroups->keeper.socket >= 0) {
        keeper_finish(&cgroups->keeper);
    } else {
        empty_subtree(cgroups);
        remove_subtree(cgroups);
    }
    unclaim(cgroups);
    free(cgroups);
    *self = NULL;
}

int cgroups_version(const struct cgroups *cgroups)
{
    return cgroups->version;
}

static bool any_has(const struct cgroups *cgroups, size_t controller)
{
    for (size_t i = 0; i < cgroups->count; i++) {
        if (cgroups->hierarchies[i].has[controller]) {
            return true;
        }
    }
    return false;
}

bool cgroups_memory(const struct cgroups *cgroups)
{
    return any_has(cgroups, 0);
}

bool cgroups_processes(const struct cgroups *cgroups)
{
    return any_has(cgroups, 1);
}

bool cgroups_cpu(const struct cgroups *cgroups)
{
    return any_has(cgroups, 2);
}

static bool set_memory(const struct cgroups *cgroups, const char *path, uint64_t bytes)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    if (cgroups->version == 2) {
        bool set = write_text(cgroups, path, "memory.max", text);
        (void)write_text(cgroups, path, "memory.swap.max", "0"); /* absent if swap is uncounted */
        return set;
    }
    bool set = write_text(cgroups, path, "memory.limit_in_bytes", text);
    (void)write_text(cgroups, path, "memory.memsw.limit_in_bytes", text);
    return set;
}

static bool set_cpu(const struct cgroups *cgroups, const char *path, uint32_t milli)
{
    char text[64];
    unsigned long quota = (unsigned long)milli * (PERIOD_US / 1000);
    if (cgroups->version == 2) {
        (void)snprintf(text, sizeof text, "%lu %d", quota, PERIOD_US);
        return write_text(cgroups, path, "cpu.max", text);
    }
    (void)snprintf(text, sizeof text, "%d", PERIOD_US);
    bool set = write_text(cgroups, path, "cpu.cfs_period_us", text);
    (void)snprintf(text, sizeof text, "%lu", quota);
    return write_text(cgroups, path, "cpu.cfs_quota_us", text) && set;
}

static bool set_limits(const struct cgroups *cgroups, const struct hierarchy *hierarchy,
                       const char *path, const struct cgroup_limits *limits)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%u", (unsigned)limits->processes);
    return (!hierarchy->has[0] || limits->memory_bytes == 0 ||
            set_memory(cgroups, path, limits->memory_bytes)) &&
           (!hierarchy->has[1] || limits->processes == 0 ||
            write_text(cgroups, path, "pids.max", text)) &&
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
        if (!join(path, "%s/%s", hierarchy->path, name) || !make_folder(path) ||
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
            set = write_text(group->cgroups, group->paths[i], "pids.max", text) && set;
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
    if (cgroups->version == 2 && write_text(cgroups, path, "cgroup.kill", "1")) {
        return;
    }
    if (!read_text(path, "cgroup.procs", text)) {
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
static void remove_group(const struct cgroups *cgroups, const char *path)
{
    enum { TRIES = 200 };
    const struct timespec pause = {.tv_nsec = 10000000};
    if (cgroups->plain_files) {
        remove_folder(cgroups, path);
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
            remove_group(group->cgroups, group->paths[i]);
        }
        free(group);
        *self = NULL;
    }
}
