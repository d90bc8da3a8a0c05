/* runtime/capability.h manages the capabilities of a process beyond its user, and gives them up for
 * good.
 *
 * Capabilities belong to a thread. A new thread inherits those of its creator, so a program gives
 * them up before it starts its first thread. */
#ifndef BOURSE_RUNTIME_CAPABILITY_H
#define BOURSE_RUNTIME_CAPABILITY_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Sets of capabilities have one bit each, as in /proc/PID/status. */
#define CAPABILITY_OVERRIDE_FILES (UINT64_C(1) << 1) /* CAP_DAC_OVERRIDE */
#define CAPABILITY_BIND_PORTS (UINT64_C(1) << 10)    /* CAP_NET_BIND_SERVICE */

/* Lowers the bounding set to `kept`: no program that this process executes can have more. A process
 * that changes its user calls this function first, because the change takes CAP_SETPCAP away.
 * Without CAP_SETPCAP the set stays as it is. The set is useless then, because no_new_privs keeps
 * programs from gaining its capabilities. */
void capability_bound(uint64_t kept);

/* Keeps the thread's capabilities in `kept` and drops all others. Executed programs cannot gain
 * more (no_new_privs; the bounding set becomes `kept`, too, where the process may lower it).
 * Returns false with the problem; the program then ends, because some capabilities are already
 * gone. */
bool capability_renounce(uint64_t kept, struct problem *ret_problem);

/* Makes every capability of the thread ineffective. The kernel makes the permitted ones effective
 * again when the effective user changes to root. Returns false with errno. */
bool capability_rest(void);

/* Describes how process `pid` runs: "root, with no capability", or "user bourse". The text is cut
 * to `size`. Returns false when the process is gone. */
bool capability_standing(pid_t pid, char *ret_text, size_t size);

#endif
