/* This file opens and closes the subtree of control groups that holds the groups of all jails. */
#include "provider/jail/cgroup.h"
#include "provider/jail/cgroup_internal.h"
#include "provider/jail/cgroup_text.h"
#include "provider/jail/keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *const controller_names[CONTROLLERS] = {"memory", "pids", "cpu"};

/* Makes the folder and locks it. An agent started right after another was killed meets the other's
 * keeper, which is about to remove the subtree. The new agent waits for the removal and makes its
 * own subtree. */
static bool claim(struct cgroups *cgroups, const char *path)
{
    enum { STEP_MS = 20 };
    const struct timespec pause = {.tv_nsec = STEP_MS * 1000000};
    struct stat locked, named;
    while (cgroup_make_folder(path)) {
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

static bool give(const char *folder, const char *name, uid_t owner, gid_t group)
{
    char path[CGROUP_PATH_BYTES];
    return owner == (uid_t)-1 ||
           (cgroup_join(path, "%s%s%s", folder, name[0] != '\0' ? "/" : "", name) &&
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
        all = (!which[i] || cgroup_write_text(cgroups, folder, "cgroup.subtree_control", text)) &&
              all;
    }
    return all;
}

static void find_enabled(struct hierarchy *ours)
{
    char before[CONTROL_TEXT_BYTES] = "";
    (void)cgroup_read_text(ours->home, "cgroup.subtree_control", before);
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
    if (cgroup_join(leaf, "%s/agent", ours->path) &&
        cgroup_read_text(leaf, "cgroup.procs", members)) {
        for (char *line = strtok_r(members, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest)) {
            (void)cgroup_write_text(cgroups, ours->home, "cgroup.procs", line);
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
    if (!cgroup_read_text(base, "cgroup.controllers", controllers)) {
        return false;
    }
    for (size_t i = 0; i < CONTROLLERS; i++) {
        ours->has[i] = cgroup_text_has(controllers, controller_names[i]);
    }
    if (!(ours->has[0] || ours->has[1]) || !cgroup_join(ours->home, "%s", base) ||
        !cgroup_join(ours->path, "%s/bourse-%s", base, name) ||
        !cgroup_join(leaf, "%s/agent", ours->path) || !claim(cgroups, ours->path)) {
        return false;
    }
    find_enabled(ours);
    if (cgroup_make_folder(leaf) && cgroup_write_text(cgroups, leaf, "cgroup.procs", "0") &&
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
    return cgroups->lock < 0 ? claim(cgroups, path) : cgroup_make_folder(path);
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
        bool made = cgroup_join(next->path, "%.100s/%s%.300s/bourse-%s", root, controller_names[i],
                                own, name) &&
                    make_or_claim(cgroups, next->path);
        if (!made && !cgroups->taken) {
            made =
                cgroup_join(next->path, "%.100s/%s/bourse-%s", root, controller_names[i], name) &&
                make_or_claim(cgroups, next->path);
        }
        if (!made) {
            continue;
        }
        if (!give(next->path, "", owner, group)) {
            cgroup_remove_folder(cgroups, next->path);
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
                cgroup_join(path, "%s/%s", ours->path, entry->d_name)) {
                cgroup_remove_group(cgroups, path);
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
        if (cgroup_join(leaf, "%s/agent", ours->path)) {
            cgroup_remove_folder(cgroups, leaf);
        }
    }
    for (size_t i = cgroups->count; i > 0; i--) { /* the locked one goes last */
        cgroup_remove_folder(cgroups, cgroups->hierarchies[i - 1].path);
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
    if (cgroups == NULL || !cgroup_read_text("", self, table)) {
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
        opened = (cgroup_join(base, "%.200s%.300s", root, own) &&
                  open_unified(cgroups, base, name, owner, group)) ||
                 (!cgroups->taken && own[0] != '\0' && cgroup_join(base, "%s", root) &&
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

/* The share is a thirtieth of that of any other group. With less, a worker might not hear within a
 * second that the owner is back. On version 2, the agent is in a leaf of the subtree, and goes
 * before the jails there. */
bool cgroups_give_way(const struct cgroups *cgroups)
{
    bool set = false;
    for (size_t i = 0; i < cgroups->count; i++) {
        const struct hierarchy *ours = &cgroups->hierarchies[i];
        char leaf[CGROUP_PATH_BYTES];
        if (!ours->has[2]) {
            continue;
        }
        if (cgroups->version == 1) {
            set = cgroup_write_text(cgroups, ours->path, "cpu.shares", "32");
        } else if (cgroup_join(leaf, "%s/agent", ours->path)) {
            set = cgroup_write_text(cgroups, ours->path, "cpu.weight", "3") &&
                  cgroup_write_text(cgroups, leaf, "cpu.weight", "10000");
        }
    }
    return set;
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
