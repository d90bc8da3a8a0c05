#include "bench/shared/programs.h"

#include "base/checked.h"
#include "runtime/clock.h"
#include "runtime/market.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_MS = 2, FOLDERS_OPEN = 16 };

void program_pause(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * NS_PER_MS};
    (void)nanosleep(&pause, NULL);
}

pid_t program_start(const char *const words[], const char *log)
{
    const pid_t pid = fork();
    if (pid == 0) {
        const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        const int said =
            log == NULL ? null : open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(said, STDOUT_FILENO);
        (void)dup2(said, STDERR_FILENO);
        execv(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    return pid;
}

bool program_has_ended(pid_t *pid, int *ret_status)
{
    if (*pid <= 0 || waitpid(*pid, ret_status, WNOHANG) != *pid) {
        return *pid <= 0;
    }
    *pid = 0;
    return true;
}

bool program_end(pid_t *pid, int signal, int64_t wait_ns)
{
    int status = 0;
    bool was_killed = false;
    const int64_t deadline_ns = clock_monotonic_ns() + wait_ns;
    if (*pid > 0) {
        (void)kill(*pid, signal);
    }
    while (!program_has_ended(pid, &status)) {
        if (!was_killed && clock_monotonic_ns() > deadline_ns) {
            was_killed = true;
            (void)kill(*pid, SIGKILL);
        }
        program_pause();
    }
    return signal == SIGKILL || (!was_killed && status == 0);
}

bool program_start_broker(const char *programs, const char *market, int64_t wait_ns, pid_t *ret_pid,
                          struct problem *ret_problem)
{
    char path[PROGRAM_PATH_SIZE];
    char file[PROGRAM_PATH_SIZE];
    char log[PROGRAM_PATH_SIZE];
    struct market seen = {.pid = 0};
    int status = 0;
    const int64_t deadline_ns = clock_monotonic_ns() + wait_ns;
    (void)snprintf(path, sizeof path, "%s/bourse-broker", programs);
    (void)snprintf(file, sizeof file, "%s/" MARKET_FILE, market);
    (void)snprintf(log, sizeof log, "%s.log", market);
    const char *words[] = {path, "run", "--dir", market, NULL};
    *ret_pid = program_start(words, log);
    while (!market_read(file, &seen, ret_problem) || seen.pid != *ret_pid) {
        if (program_has_ended(ret_pid, &status) || clock_monotonic_ns() > deadline_ns) {
            problem_set(ret_problem, "the broker of %s did not start", market);
            return false;
        }
        program_pause();
    }
    return true;
}

bool program_folder(const char *name, char *ret_path, size_t capacity, struct problem *ret_problem)
{
    (void)snprintf(ret_path, capacity, "/tmp/bourse-%s-XXXXXX", name);
    if (mkdtemp(ret_path) == NULL) {
        ret_path[0] = '\0';
        problem_set(ret_problem, "a folder below /tmp: %s", strerror(errno));
        return false;
    }
    return true;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    (void)remove(path); /* a file that stays shows at its folder, which is not empty then */
    return 0;
}

void program_folder_remove(const char *path)
{
    if (path[0] != '\0') {
        (void)nftw(path, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
    }
}
