/* The launcher is the process that starts jails. The agent forks it before it has threads, and the
 * launcher itself is single-threaded.
 *
 * A fork() in a threaded program is a trap, and a jail must die with the process that watches it.
 * So one small process does nothing but fork and exec on request. The launcher ends at end of file
 * of its socket, which comes when the agent ends for any reason. Every program of the launcher dies
 * with it (bwrap --die-with-parent).
 *
 * Each started program has a control socket of its own. The launcher reports the exit there.
 * Closing our end (or dying) kills the program. */
#ifndef BOURSE_PROVIDER_JAIL_LAUNCHER_H
#define BOURSE_PROVIDER_JAIL_LAUNCHER_H

#include "base/problem.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    LAUNCHER_ARGUMENTS = 320,
    LAUNCHER_FILES = 12,
    LAUNCHER_GROUPS = 8,
    LAUNCHER_MESSAGE_BYTES = 32768
};

struct launcher; /* thread-safe once started */

/* Forks the launcher. Call it as the service user (after privilege_drop) and before any thread
 * exists. */
bool launcher_start(struct launcher **ret_launcher, struct problem *ret_problem);
/* Returns a descriptor that becomes readable when the launcher has ended, and not before. Without
 * the launcher no jail can be started. An agent that has threads cannot fork a new one. */
int launcher_end(const struct launcher *launcher);
/* Ends the launcher and every program that it started, and waits for the launcher. */
void launcher_stop(struct launcher **self);

/* Gives every program that is started from now on the lowest priority, for the processors and the
 * disk. Programs of the machine's owner then hardly notice it. Returns false when the kernel does
 * not let us. */
bool launcher_give_way(const struct launcher *launcher);

struct launch {
    /* NULL-terminated; argv[0] is an absolute path. The environment is empty. */
    const char *const *argv;
    const int *files; /* become descriptors 3, 4, ... of the program */
    size_t file_count;
    /* Standard error of the program; -1: /dev/null, which stdin and stdout always are. */
    int error_file;
    /* The program's process writes "0" to these files before exec (cgroup_procs). */
    const char *const *groups;
    size_t group_count;
    const cpu_set_t *cpus; /* NULL: unchanged */
};

/* Starts a program in a process group of its own. *ret_control is the control socket. The launcher
 * writes one status message to the socket and closes its end when the program has ended. Closing
 * *ret_control kills the program. */
bool launcher_launch(struct launcher *launcher, const struct launch *launch, int *ret_control,
                     struct problem *ret_problem);
/* Waits at most timeout_ms for the end of the program behind `control`. Returns true when the
 * program has ended, with the wait status, or -1 when the launcher itself is gone. */
bool launcher_wait(int control, int timeout_ms, int *ret_status);
/* Asks for the program to be killed. launcher_wait tells when it has ended. */
void launcher_kill(int control);

#endif
