#include "consumer/command/local/child.h"

#include "runtime/capability.h"
#include "runtime/files.h"
#include "runtime/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIST_BYTES_MAX = 4096, PATH_SIZE = PATH_MAX };

/* Returns field 22 of /proc/PID/stat, or 0 without such a process. The name before it may hold
 * anything, but ends at the last ')'. */
static uint64_t start_time(pid_t pid)
{
    char path[64];
    char text[1024];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t length = read(fd, text, sizeof text - 1);
    (void)close(fd); /* read only */
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    const char *field = strrchr(text, ')');
    for (int number = 2; field != NULL && number < 22; number++) {
        field = strchr(field + 1, ' ');
    }
    return field != NULL ? strtoull(field + 1, NULL, 10) : 0;
}

static int open_pid(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* ---------------------------------------------------------------- starting */

static bool find_program(const char *program, char ret_path[PATH_SIZE], struct problem *ret_problem)
{
    char folder[PATH_SIZE - 64];
    if (process_folder(folder, sizeof folder)) {
        (void)snprintf(ret_path, PATH_SIZE, "%s/%s", folder, program);
        if (access(ret_path, X_OK) == 0) {
            return true;
        }
    }
    problem_set(ret_problem, "%s is not beside bourse; is the installation whole?", program);
    return false;
}

static _Noreturn void exec_child(const char *path, char *const *arguments, int log, bool tied,
                                 pid_t parent)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (tied) {
        (void)setpgid(0, 0); /* this process passes Ctrl-C on */
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) {
            _exit(127);
        }
    } else {
        (void)setsid();
    }
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(log, STDOUT_FILENO) >= 0 &&
        dup2(log, STDERR_FILENO) >= 0) {
        (void)execv(path, arguments);
    }
    _exit(127);
}

bool child_start(const char *name, const char *program, char *const *arguments, const char *log,
                 bool tied, struct child *ret_child, struct problem *ret_problem)
{
    char path[PATH_SIZE];
    *ret_child = (struct child){.fd = -1};
    if (!find_program(program, path, ret_problem)) {
        return false;
    }
    int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (log_fd < 0) {
        problem_set(ret_problem, "%s: %s", log, strerror(errno));
        return false;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        exec_child(path, arguments, log_fd, tied, parent);
    }
    (void)close(log_fd); /* the child has its own */
    if (pid < 0) {
        problem_set(ret_problem, "%s cannot be started: %s", program, strerror(errno));
        return false;
    }
    (void)snprintf(ret_child->name, sizeof ret_child->name, "%s", name);
    ret_child->pid = pid;
    ret_child->started = start_time(pid);
    /* The process is a child, so its number cannot be reused before this process waits for it. */
    ret_child->fd = open_pid(pid);
    return true;
}

struct child child_self(void)
{
    return (struct child){.name = "up", .pid = getpid(), .started = start_time(getpid()), .fd = -1};
}

/* ---------------------------------------------------------------- watching, stopping */

static bool is_running(const struct child *child)
{
    struct pollfd wait = {.fd = child->fd, .events = POLLIN};
    return child->fd >= 0 && poll(&wait, 1, 0) == 0;
}

/* Opens a running process with that number and start time. Returns false when the process is
 * gone. */
static bool open_child(const char *name, pid_t pid, uint64_t started, struct child *ret_child)
{
    *ret_child = (struct child){.pid = pid, .started = started, .fd = -1};
    (void)snprintf(ret_child->name, sizeof ret_child->name, "%s", name);
    ret_child->fd = pid > 1 ? open_pid(pid) : -1;
    /* The descriptor is opened before the time is read: if both fit, it is the right process. */
    if (ret_child->fd < 0 || start_time(pid) != started || !is_running(ret_child)) {
        child_close(ret_child);
        return false;
    }
    return true;
}

static bool wait_gone(const struct child *child, int timeout_ms)
{
    struct pollfd wait = {.fd = child->fd, .events = POLLIN};
    int got;
    while ((got = poll(&wait, 1, timeout_ms)) < 0 && errno == EINTR) {
    }
    return got > 0;
}

bool child_stop(struct child *child, int timeout_ms)
{
    if (child->fd < 0) {
        return true;
    }
    bool gone = !is_running(child);
    if (!gone) {
        (void)syscall(SYS_pidfd_send_signal, child->fd, SIGTERM, NULL, 0);
        gone = wait_gone(child, timeout_ms);
    }
    if (!gone) {
        (void)syscall(SYS_pidfd_send_signal, child->fd, SIGKILL, NULL, 0);
        gone = wait_gone(child, timeout_ms);
    }
    (void)waitpid(child->pid, NULL, WNOHANG); /* for a child of this process */
    child_close(child);
    return gone;
}

int child_result(struct child *child, int timeout_ms)
{
    int status = 0;
    bool ended = child->fd >= 0 && wait_gone(child, timeout_ms) &&
                 waitpid(child->pid, &status, WNOHANG) == child->pid;
    if (ended) {
        child_close(child);
    } else {
        (void)child_stop(child, timeout_ms);
    }
    return ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void child_close(struct child *child)
{
    if (child->fd >= 0) {
        (void)close(child->fd); /* a pidfd has nothing to lose */
    }
    *child = (struct child){.fd = -1};
}

void child_standing(const struct child *child, char *ret_text, size_t size)
{
    if (!capability_standing(child->pid, ret_text, size)) {
        (void)snprintf(ret_text, size, "unknown: the process has ended");
    }
}

void child_log_tail(const char *path, char ret_text[CHILD_LOG_TAIL])
{
    struct problem problem;
    uint8_t *text = NULL;
    size_t length = 0;
    ret_text[0] = '\0';
    if (!file_read(path, 64 << 20, &text, &length, &problem)) {
        return;
    }
    while (length > 0 && text[length - 1] == '\n') {
        length--;
    }
    size_t from = length;
    while (from > 0 && text[from - 1] != '\n' && length - from < CHILD_LOG_TAIL - 1) {
        from--;
    }
    (void)snprintf(ret_text, CHILD_LOG_TAIL, "%.*s", (int)(length - from),
                   (const char *)text + from);
    free(text);
}

/* The kernel says which process listens. The address names the folder's descriptor, because a
 * folder's name may be longer than a socket's address. */
bool child_listens(const struct child *child, const char *folder, const char *socket_name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {.pid = 0};
    socklen_t size = sizeof peer;
    const int folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%.64s", folder_fd,
                   socket_name);
    const bool is_heard = folder_fd >= 0 && fd >= 0 &&
                          connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                          getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                          peer.pid == child->pid;
    if (fd >= 0) {
        (void)close(fd); /* nothing was sent */
    }
    if (folder_fd >= 0) {
        (void)close(folder_fd); /* read only */
    }
    return is_heard;
}

/* ---------------------------------------------------------------- the list */

static bool list_path(const char *folder, char ret_path[PATH_SIZE])
{
    int length = snprintf(ret_path, PATH_SIZE, "%s/" CHILDREN_FILE, folder);
    return length > 0 && length < PATH_SIZE;
}

bool child_list_write(const char *folder, const struct child *children, size_t count,
                      struct problem *ret_problem)
{
    char path[PATH_SIZE];
    char text[LIST_BYTES_MAX];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        int length = snprintf(text + used, sizeof text - used, "%s %ld %" PRIu64 "\n",
                              children[i].name, (long)children[i].pid, children[i].started);
        used += length > 0 ? (size_t)length : 0;
    }
    return list_path(folder, path) && file_write(path, text, used, 0600, ret_problem);
}

bool child_list_read(const char *folder, struct child ret_children[CHILDREN_MAX], size_t *ret_count,
                     struct problem *ret_problem)
{
    char path[PATH_SIZE];
    uint8_t *text = NULL;
    size_t length = 0;
    *ret_count = 0;
    if (!list_path(folder, path) || access(path, F_OK) != 0) {
        return true;
    }
    if (!file_read(path, LIST_BYTES_MAX, &text, &length, ret_problem)) {
        return false;
    }
    char *rest = NULL;
    for (char *line = strtok_r((char *)text, "\n", &rest);
         line != NULL && *ret_count < CHILDREN_MAX; line = strtok_r(NULL, "\n", &rest)) {
        char name[16];
        long pid = 0;
        uint64_t started = 0;
        if (sscanf(line, "%15s %ld %" SCNu64, name, &pid, &started) == 3 &&
            open_child(name, (pid_t)pid, started, &ret_children[*ret_count])) {
            (*ret_count)++;
        }
    }
    free(text);
    return true;
}
