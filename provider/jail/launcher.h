/* provider/jail/launcher.h - the process that starts jails: forked before the agent has threads,
 * single-threaded.
 *
 * fork() in a threaded program is a trap, and a jail must die with whoever watches it: so one
 * small process does nothing but fork and exec on request. It ends at end of file of its socket,
 * that is when the agent ends for whatever reason, and everything it started dies with it (bwrap
 * --die-with-parent).
 *
 * Each started program has a control socket of its own: it reports the exit there, and closing
 * our end (or dying) kills the program. */
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
/* A descriptor that becomes readable when the launcher has ended, and not before: without it no
 * jail can be started, and a new one cannot be forked by an agent that has threads. */
int launcher_end(const struct launcher *launcher);
/* Ends the launcher and with it every program that it started; waits for it. */
void launcher_stop(struct launcher **self);

struct launch {
    const char *const
        *argv;        /* NULL-terminated; argv[0] is an absolute path; the environment is empty */
    const int *files; /* become descriptors 3, 4, ... of the program */
    size_t file_count;
    int error_file;            /* its standard error; -1: /dev/null, as stdin and stdout are */
    const char *const *groups; /* paths of files that it writes "0" to before exec: cgroup_procs */
    size_t group_count;
    const cpu_set_t *cpus; /* NULL: as they are */
};

/* Starts a program in a process group of its own. *ret_control is the control socket: it reads
 * end of file (after one status message) when the program has ended; closing it kills the
 * program. */
bool launcher_launch(struct launcher *launcher, const struct launch *launch, int *ret_control,
                     struct problem *ret_problem);
/* Waits at most timeout_ms for the end of the program behind `control`; true when it has ended,
 * with the wait status (or -1 when the launcher itself is gone). */
bool launcher_wait(int control, int timeout_ms, int *ret_status);
/* Asks for the program to be killed; launcher_wait then tells when it has ended. */
void launcher_kill(int control);

#endif
