/* provider/jail/seccomp.h - the system-call filter of every jail, as a BPF program that bwrap
 * loads.
 *
 * A list of what is denied (jobs are arbitrary native programs), with everything newer than the
 * list answered ENOSYS, as an older kernel would. Arguments that the kernel reads as 32 bits are
 * compared as such: a comparison of all 64 could be passed with rubbish in the upper half. */
#ifndef BOURSE_PROVIDER_JAIL_SECCOMP_H
#define BOURSE_PROVIDER_JAIL_SECCOMP_H

#include "base/problem.h"

#include <stdbool.h>

/* A memory file with the program, positioned at its start, or -1. Without `memory_files`,
 * memfd_create is denied too: where no cgroup counts memory, such files would escape every
 * limit. */
int seccomp_profile(bool memory_files, struct problem *ret_problem);

#endif
