/* provider/worker/start.c starts a process of the jail, and says why one did not start. */
#include "provider/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* vfork makes a subtask cheap: the new process borrows our memory until it executes. The process
 * touches nothing of ours but its stack frame and *ret_error. Descriptors, limits and credentials
 * are its own. */
__attribute__((noinline)) pid_t start_child(const struct child *child, volatile int *ret_error)
{
    pid_t pid = vfork();
    if (pid == 0) {
        *ret_error = confine_execute(child);
        _exit(127);
    }
    return pid;
}

static void set_outcome(struct outcome *outcome, enum result_outcome what, const char *detail)
{
    outcome->outcome = what;
    (void)snprintf(outcome->detail, sizeof outcome->detail, "%s", detail);
}

void start_failed(struct outcome *outcome, const char *name, int error)
{
    if ((error & CHILD_DIRECTORY) != 0) {
        outcome->outcome = OUTCOME_PROGRAM_MISSING;
        (void)snprintf(outcome->detail, sizeof outcome->detail,
                       "%.128s cannot start in its folder: %s", name,
                       strerror(error & ~CHILD_DIRECTORY));
        return;
    }
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
        outcome->outcome = OUTCOME_PROGRAM_MISSING;
        (void)snprintf(outcome->detail, sizeof outcome->detail,
                       "%.128s: no such program in the jail, or its interpreter is missing", name);
        return;
    case EACCES:
    case EISDIR:
    case ENOEXEC:
        outcome->outcome = OUTCOME_PROGRAM_MISSING;
        (void)snprintf(outcome->detail, sizeof outcome->detail,
                       "%.128s: the file is no program that this machine can execute", name);
        return;
    case ELIBBAD:
        outcome->outcome = OUTCOME_PROGRAM_MISSING;
        (void)snprintf(outcome->detail, sizeof outcome->detail,
                       "%.128s: its loader is no program that this machine can execute", name);
        return;
    case E2BIG:
        set_outcome(
            outcome, OUTCOME_REFUSED,
            "the arguments and the environment are larger than this system passes to a program");
        return;
    case ENOMEM:
        set_outcome(outcome, OUTCOME_MEMORY_LIMIT,
                    "the jail has no memory left to start the program");
        return;
    case EAGAIN:
        set_outcome(outcome, OUTCOME_PROCESS_LIMIT,
                    "the jail may have no further process, so the program was not started");
        return;
    default:
        outcome->outcome = OUTCOME_JAIL_FAILED;
        (void)snprintf(outcome->detail, sizeof outcome->detail, "cannot start %.128s: %s", name,
                       strerror(error));
        return;
    }
}

bool start_pipes(int ret_reads[2], int ret_writes[2])
{
    for (size_t i = 0; i < 2; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            if (i == 1) {
                (void)close(ret_reads[0]);
                (void)close(ret_writes[0]);
            }
            return false;
        }
        ret_reads[i] = ends[0];
        ret_writes[i] = ends[1];
        (void)fcntl(ret_reads[i], F_SETFL, O_NONBLOCK); /* cannot fail on a new pipe */
    }
    return true;
}
