/* provider/jail/cgroup.h limits a whole jail by control groups, with one driver for version 2 and
 * version 1.
 *
 * If the process is root, cgroups_open makes /<own group>/bourse-<name> in each hierarchy and gives
 * it to the service user. Later, as that user, the agent makes a group below it for each jail. An
 * ordinary user gets a driver only where a version 2 subtree is delegated to that user. Without a
 * driver the agent runs on rlimits alone and says so. */
#ifndef BOURSE_PROVIDER_JAIL_CGROUP_H
#define BOURSE_PROVIDER_JAIL_CGROUP_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroups;
struct cgroup;

enum { CGROUP_HIERARCHIES = 4, CGROUP_PATH_BYTES = 512, CGROUP_PATIENCE_MS = 5000 };

/* The driver looks for control groups here; a test points it at a tree of its own. */
struct cgroup_place {
    const char *root; /* NULL: /sys/fs/cgroup */
    const char *self; /* NULL: /proc/self/cgroup */
    bool plain_files; /* the tree has ordinary files, which the driver creates */
    int patience_ms;  /* time for a former owner to leave; 0: CGROUP_PATIENCE_MS */
};

/* Makes the subtree `name`, which belongs to one owner at a time. The call waits while another
 * owner has it, or while a dead owner's keeper still tidies up. The call fails after the patience.
 * The subtree is given to owner:group; (uid_t)-1 leaves its owner as it is. Returns false with the
 * reason when no hierarchy is usable.
 *
 * On version 2 this process moves into a leaf of the subtree. If `owner` is another user, the call
 * forks a keeper (keeper.h), which removes the subtree when this process ends. So call cgroups_open
 * before threads exist. */
bool cgroups_open(const struct cgroup_place *place, const char *name, uid_t owner, gid_t group,
                  struct cgroups **ret_cgroups, struct problem *ret_problem);
/* Removes the subtree and frees. On version 2 this process goes back to its former group, unless
 * other programs use the controllers there. The subtree stays then, for the next owner. */
void cgroups_close(struct cgroups **self);

/* The driver can enforce the limits for which these functions return true. */
int cgroups_version(const struct cgroups *cgroups); /* 2 or 1 */
bool cgroups_memory(const struct cgroups *cgroups);
bool cgroups_processes(const struct cgroups *cgroups);
bool cgroups_cpu(const struct cgroups *cgroups);

/* Lets the jails together have a small share of the processors where others want them. Call it
 * before dropping privileges. Returns false when the share cannot be set. */
bool cgroups_give_way(const struct cgroups *cgroups);

/* 0: no limit. */
struct cgroup_limits {
    uint64_t memory_bytes;
    uint32_t processes;
    uint32_t cpu_milli;
};

bool cgroup_create(struct cgroups *cgroups, const char *name, const struct cgroup_limits *limits,
                   struct cgroup **ret_group, struct problem *ret_problem);
/* Returns the paths of the files for joining the group: cgroup.procs, or tasks of version 1. A
 * process of one thread joins by writing "0" to each. There are at most CGROUP_HIERARCHIES
 * paths. */
size_t cgroup_procs(const struct cgroup *group, const char *ret_paths[CGROUP_HIERARCHIES]);

/* Returns the group's memory.stat, open for reading as long as the group lives; -1 if memory is not
 * counted. */
int cgroup_memory_file(const struct cgroup *group);
/* Replaces the process limit that the group was made with. */
bool cgroup_set_processes(const struct cgroup *group, uint32_t processes);

/* The counters start when the group is made. */
struct cgroup_events {
    uint64_t out_of_memory; /* processes killed at the memory limit */
    uint64_t forks_refused; /* forks refused at the process limit */
};
struct cgroup_events cgroup_events(const struct cgroup *group);

/* Kills the remaining processes of the group, for at most about two seconds, then removes the group
 * and frees. */
void cgroup_destroy(struct cgroup **self);

#endif
