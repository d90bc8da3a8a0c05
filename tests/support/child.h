/* tests/support/child.h starts processes that end with their test. A broker that outlived a failed
 * test would hold the test's output open, and its runner would wait for ever. */
#ifndef BOURSE_TESTS_CHILD_H
#define BOURSE_TESTS_CHILD_H

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Forks as fork() does. The kernel kills the child when the thread that forked ends. */
static inline pid_t child_fork(void)
{
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) {
        _exit(127); /* the parent has ended meanwhile */
    }
    return pid;
}

#endif
