/* provider/jail/seccomp.h builds the system-call filter of every jail, as a BPF program that bwrap
 * loads.
 *
 * The filter lists the denied calls, because jobs are arbitrary native programs. Calls newer than
 * the list get ENOSYS, as from an older kernel. Arguments that the kernel reads as 32 bits are
 * compared as 32 bits. A comparison of all 64 bits could be passed with rubbish in the upper
 * half. */
#ifndef BOURSE_PROVIDER_JAIL_SECCOMP_H
#define BOURSE_PROVIDER_JAIL_SECCOMP_H

#include "base/problem.h"

#include <stdbool.h>

/* Returns a memory file with the filter program, positioned at its start, or -1. If `memory_files`
 * is false, memfd_create is denied too. Without a cgroup that counts memory, memory files would
 * escape every limit. */
int seccomp_profile(bool memory_files, struct problem *ret_problem);

#endif
