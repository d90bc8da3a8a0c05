/* provider/jail/cgroup.h - limits on a whole jail by control groups: one driver, version 2 and
 * version 1 behind it.
 *
 * As root, cgroups_open makes /<own group>/bourse-<name> in each hierarchy and gives it to the
 * service user; later, as that user, each jail gets a group below it. An ordinary user gets a
 * driver only where a version 2 subtree is delegated to him. Without one the agent runs on
 * rlimits alone and says so. */
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

struct cgroup_place { /* where to look; a test points it at a tree of its own */
    const char *root; /* NULL: /sys/fs/cgroup */
    const char *self; /* NULL: /proc/self/cgroup */
    bool plain_files; /* the tree is made of ordinary files, which the driver creates */
    int patience_ms;  /* how long a former owner may take to leave; 0: CGROUP_PATIENCE_MS */
};

/* Makes the subtree `name`, which belongs to one owner at a time: while another has it, or has died
 * and its keeper still tidies up, this waits, and after the patience fails. Gives it to owner:group
 * ((uid_t)-1: leaves it). False with the reason when no hierarchy is usable. On version 2 this
 * process moves into a leaf of the subtree. With another owner than ourselves it forks a keeper,
 * which removes the subtree when this process ends: call it before threads exist. */
bool cgroups_open(const struct cgroup_place *place, const char *name, uid_t owner, gid_t group,
                  struct cgroups **ret_cgroups, struct problem *ret_problem);
/* Removes the subtree and frees. */
void cgroups_close(struct cgroups **self);

/* Which limits it can enforce. */
int cgroups_version(const struct cgroups *cgroups); /* 2 or 1 */
bool cgroups_memory(const struct cgroups *cgroups);
bool cgroups_processes(const struct cgroups *cgroups);
bool cgroups_cpu(const struct cgroups *cgroups);

struct cgroup_limits { /* 0: no limit */
    uint64_t memory_bytes;
    uint32_t processes;
    uint32_t cpu_milli;
};

bool cgroup_create(struct cgroups *cgroups, const char *name, const struct cgroup_limits *limits,
                   struct cgroup **ret_group, struct problem *ret_problem);
/* Paths of the files that a process of one thread writes "0" to in order to join: cgroup.procs, or
 * tasks of version 1; at most CGROUP_HIERARCHIES. */
size_t cgroup_procs(const struct cgroup *group, const char *ret_paths[CGROUP_HIERARCHIES]);

/* The group's memory.stat, open for reading as long as the group lives; -1 where no memory is
 * counted. */
int cgroup_memory_file(const struct cgroup *group);
/* Another process limit than it was made with. */
bool cgroup_set_processes(const struct cgroup *group, uint32_t processes);

struct cgroup_events {      /* counters since the group was made */
    uint64_t out_of_memory; /* processes killed at the memory limit */
    uint64_t forks_refused; /* at the process limit */
};
struct cgroup_events cgroup_events(const struct cgroup *group);

/* Kills what is left in the group (at most about two seconds of trying), removes it, frees. */
void cgroup_destroy(struct cgroup **self);

#endif
