/* provider/jail/isolation.h finds out what this host can enforce, by opening a trial jail.
 *
 * The level is part of every offer: 0 is none (the agent refuses jobs), 1 is a process sandbox. A
 * missing namespace, no-new-privs or seccomp means level 0. Other gaps are warnings that the agent
 * prints and publishes. */
#ifndef BOURSE_PROVIDER_JAIL_ISOLATION_H
#define BOURSE_PROVIDER_JAIL_ISOLATION_H

#include "provider/jail/jail.h"

#include <stdbool.h>

enum { ISOLATION_WARNINGS = 8 };

struct isolation {
    int level;                /* 0 or 1 */
    char refusal[512];        /* reason for level 0, with what to do; else empty */
    bool namespaces, seccomp; /* the trial jail started with them */
    int landlock_abi;         /* 0: none */
    int cgroup_version;       /* 0: none */
    bool memory_enforced;     /* a cgroup does; else rlimits and a watch, best effort */
    bool processes_enforced;  /* a cgroup does; else RLIMIT_NPROC */
    bool cpu_enforced;        /* a cgroup does; else the CPU set */
    char warnings[ISOLATION_WARNINGS][256];
    size_t warning_count;
};

/* Opens a trial jail with every layer and runs /bin/true in it. `cgroups` may be NULL. */
void isolation_probe(struct launcher *launcher, const char *worker_path, struct cgroups *cgroups,
                     struct isolation *ret_isolation);

#endif
