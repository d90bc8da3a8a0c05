#include "tests/crash/apart.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int apart(void (*work)(void *context), void *context, char ret_said[APART_SAID_SIZE])
{
    int said = memfd_create("said", MFD_CLOEXEC);
    assert(said >= 0);
    (void)fflush(NULL);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        assert(dup2(said, STDERR_FILENO) == STDERR_FILENO);
        assert(freopen("/dev/null", "w", stdout) != NULL);
        work(context);
        exit(0);
    }
    int status = 0;
    assert(waitpid(child, &status, 0) == child);
    ssize_t length = pread(said, ret_said, APART_SAID_SIZE - 1, 0);
    ret_said[length > 0 ? length : 0] = '\0';
    (void)close(said);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
