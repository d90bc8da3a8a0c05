/* runtime/capability.h - what a process may do beyond its user, and how it gives that up for good.
 *
 * Capabilities belong to a thread. A thread has those of the thread that started it, so a program
 * gives them up before it starts its first one. */
#ifndef BOURSE_RUNTIME_CAPABILITY_H
#define BOURSE_RUNTIME_CAPABILITY_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Sets of capabilities have one bit for each, as in /proc/PID/status. */
#define CAPABILITY_BIND_PORTS (UINT64_C(1) << 10) /* CAP_NET_BIND_SERVICE */

/* This thread keeps those of `kept` that it has, and no other. What it executes gets none that it
 * lacks (no_new_privs; the bounding set is `kept`, too, where this process may say so). False with
 * the problem, and then the program ends: what it gave up is gone. */
bool capability_renounce(uint64_t kept, struct problem *ret_problem);

/* As whom process `pid` runs: "root, with no capability", or "user bourse". Shorter than `size` or
 * cut. False when the process is gone. */
bool capability_standing(pid_t pid, char *ret_text, size_t size);

#endif
