#include "provider/jail/keeper.h"

#include "runtime/capability.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOW_HALF UINT64_C(0xffffffff)

/* The removal reads folders and control files, writes control files, kills, waits and removes. The
 * others are calls of the C library's memory and of its sanitizers. */
static const char *const allowed[] = {"read",
                                      "write",
                                      "close",
                                      "lseek",
                                      "fstat",
                                      "fstat64",
                                      "newfstatat",
                                      "fstatat64",
                                      "statx",
                                      "getdents",
                                      "getdents64",
                                      "rmdir",
                                      "unlink",
                                      "unlinkat",
                                      "kill",
                                      "nanosleep",
                                      "clock_gettime",
                                      "clock_nanosleep",
                                      "clock_nanosleep_time64",
                                      "restart_syscall",
                                      "brk",
                                      "mmap",
                                      "mmap2",
                                      "munmap",
                                      "mremap",
                                      "mprotect",
                                      "madvise",
                                      "futex",
                                      "sched_yield",
                                      "gettid",
                                      "getpid",
                                      "getrandom",
                                      "sigaltstack",
                                      "rt_sigprocmask",
                                      "rt_sigreturn",
                                      "exit",
                                      "exit_group"};

static int allow(scmp_filter_ctx filter, const char *name, const struct scmp_arg_cmp *compare,
                 unsigned count)
{
    int call = seccomp_syscall_resolve_name(name);
    return call < 0 ? 0 /* unknown to this architecture */
                    : seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, count, compare);
}

/* Files may be opened and not made. The process may become root and nobody else. */
static int allow_by_argument(scmp_filter_ctx filter)
{
    const struct scmp_arg_cmp no_new_file = SCMP_A1(SCMP_CMP_MASKED_EQ, O_CREAT, 0);
    const struct scmp_arg_cmp no_new_file_at = SCMP_A2(SCMP_CMP_MASKED_EQ, O_CREAT, 0);
    const struct scmp_arg_cmp root = SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_HALF, 0);
    int error = allow(filter, "open", &no_new_file, 1);
    error = error != 0 ? error : allow(filter, "openat", &no_new_file_at, 1);
    error = error != 0 ? error : allow(filter, "setresuid", &root, 1);
    return error != 0 ? error : allow(filter, "setresuid32", &root, 1);
}

static bool filter_calls(struct problem *ret_problem)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int error = filter == NULL ? -ENOMEM : 0;
    for (size_t i = 0; error == 0 && i < sizeof allowed / sizeof *allowed; i++) {
        error = allow(filter, allowed[i], NULL, 0);
    }
    error = error != 0 ? error : allow_by_argument(filter);
    error = error != 0 ? error : seccomp_load(filter);
    seccomp_release(filter);
    if (error != 0) {
        problem_set(ret_problem, "the keeper's system calls cannot be filtered: %s",
                    strerror(-error));
    }
    return error == 0;
}

/* Keeps the socket as descriptor 0 and the lock as descriptor 1, and no other. */
static bool keep_files(int socket, int lock)
{
    return dup2(socket, 0) == 0 && (lock < 0 || dup2(lock, 1) == 1) &&
           syscall(SYS_close_range, lock < 0 ? 1U : 2U, ~0U, 0U) == 0 && chdir("/") == 0;
}

/* Root stays the real and the saved user. So the agent's user can neither kill nor trace this
 * process, and the process may become root again. */
static bool act_as(uid_t owner, gid_t group, struct problem *ret_problem)
{
    capability_bound(0);
    if (setgroups(0, NULL) != 0 || setresgid(group, group, group) != 0 ||
        setresuid(0, owner, 0) != 0) {
        problem_set(ret_problem, "the keeper cannot act as user %u: %s", (unsigned)owner,
                    strerror(errno));
        return false;
    }
    if (!capability_renounce(CAPABILITY_OVERRIDE_FILES, ret_problem)) {
        return false;
    }
    if (!capability_rest()) {
        problem_set(ret_problem, "the keeper's capability cannot be laid down: %s",
                    strerror(errno));
        return false;
    }
    return true;
}

static bool settle(const struct keeper_work *work, int socket, struct problem *ret_problem)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)setsid(); /* the terminal's signals are the agent's */
    (void)prctl(PR_SET_NAME, "bourse-cgroups", 0, 0, 0);
    if (!keep_files(socket, work->lock)) {
        problem_set(ret_problem, "the keeper's files cannot be closed: %s", strerror(errno));
        return false;
    }
    return act_as(work->owner, work->group, ret_problem) && filter_calls(ret_problem);
}

_Noreturn static void keeper_main(const struct keeper_work *work, int socket)
{
    struct problem problem = {""};
    bool settled = settle(work, socket, &problem);
    /* The text goes to the agent. An empty text says that the keeper waits. */
    size_t length = strlen(problem.text) + 1;
    if (write(settled ? 0 : socket, problem.text, length) != (ssize_t)length || !settled) {
        _exit(1);
    }
    char byte;
    ssize_t got;
    do {
        got = read(0, &byte, 1);
    } while (got > 0 || (got < 0 && errno == EINTR));
    work->empty(work->subject);
    if (setresuid((uid_t)-1, 0, (uid_t)-1) == 0) { /* the kernel wakes the capability */
        work->remove(work->subject);
    }
    _exit(0);
}

/* Returns true when the keeper said that it waits. */
static bool hear(int socket, struct problem *ret_problem)
{
    char text[sizeof ret_problem->text];
    ssize_t length;
    do {
        length = read(socket, text, sizeof text - 1);
    } while (length < 0 && errno == EINTR);
    text[length > 0 ? length : 0] = '\0';
    if (length == 1 && text[0] == '\0') {
        return true;
    }
    problem_set(ret_problem, "the keeper of the control groups did not start: %.300s",
                length > 1 ? text : "it ended");
    return false;
}

bool keeper_start(const struct keeper_work *work, struct keeper *ret_keeper,
                  struct problem *ret_problem)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
        problem_set(ret_problem, "no keeper of the control groups: %s", strerror(errno));
        return false;
    }
    struct keeper keeper = {.pid = fork(), .socket = sockets[0]};
    if (keeper.pid == 0) {
        keeper_main(work, sockets[1]);
    }
    int error = errno;
    (void)close(sockets[1]);
    if (keeper.pid < 0) {
        problem_set(ret_problem, "no keeper of the control groups: %s", strerror(error));
        (void)close(sockets[0]);
        return false;
    }
    if (!hear(sockets[0], ret_problem)) {
        keeper_finish(&keeper);
        return false;
    }
    *ret_keeper = keeper;
    return true;
}

void keeper_finish(struct keeper *keeper)
{
    (void)close(keeper->socket);
    keeper->socket = -1;
    while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR) {
    }
}
