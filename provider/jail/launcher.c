/* The LAUNCH message has this format:
 *
 *     u16 count and texts (u16 length, bytes with NUL) of argv, the same of groups,
 *     u8 has error file, u8 has CPU set and its bytes
 *     descriptors: the control socket, the error file if any, the files
 *
 * The launcher answers on the control socket. The answer is u8 1 and u32 wait status at the end, or
 * u8 0 and a text when the start failed. Any message from the agent, or end of file, kills the
 * program. */
#include "provider/jail/launcher.h"

#include "base/cursor.h"
#include "provider/worker/packet.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROGRAMS = 512, FIRST_FILE = 3 };

struct launcher {
    int socket;
    pid_t pid;
};

/* ------------------------------------------------------------- the launcher's side */

/* After bwrap is killed, process 1 of its jail outlives it for a moment and becomes our child. The
 * program is over only when that process has been reaped too. */
struct program {
    pid_t pid;
    int control; /* -1: the agent let go, and the program was killed */
    bool ended;  /* bwrap has been reaped with `status` */
    int status;
    pid_t orphan; /* 0: none left behind */
};

/* A decoded order points into the message. */
struct order {
    char *argv[LAUNCHER_ARGUMENTS + 1];
    char *groups[LAUNCHER_GROUPS + 1];
    bool has_error_file, has_cpus;
    cpu_set_t cpus;
};

struct table {
    int socket, children;
    struct program programs[PROGRAMS];
    size_t count;
};

static bool read_list(struct reader *in, char **ret_texts, size_t most)
{
    uint16_t count = reader_u16(in);
    if (count > most) {
        return false;
    }
    for (uint16_t i = 0; i < count; i++) {
        uint16_t length = reader_u16(in);
        const uint8_t *text = reader_view(in, length);
        if (text == NULL || length == 0 || text[length - 1] != '\0') {
            return false;
        }
        ret_texts[i] = (char *)(uintptr_t)text;
    }
    ret_texts[count] = NULL;
    return true;
}

static bool read_order(const uint8_t *bytes, size_t length, struct order *ret_order)
{
    struct reader in = reader_over(bytes, length);
    if (!read_list(&in, ret_order->argv, LAUNCHER_ARGUMENTS) ||
        !read_list(&in, ret_order->groups, LAUNCHER_GROUPS)) {
        return false;
    }
    ret_order->has_error_file = reader_u8(&in) != 0;
    ret_order->has_cpus = reader_u8(&in) != 0;
    if (ret_order->has_cpus) {
        reader_bytes(&in, &ret_order->cpus, sizeof ret_order->cpus);
    }
    return reader_finished(&in) && ret_order->argv[0] != NULL;
}

static bool write_file(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0) {
        (void)close(file);
    }
    return written;
}

/* Descriptors are moved up first, out of the way of their final numbers. */
static bool place_files(const int *files, size_t count, int error_file)
{
    enum { HIGH = 64 };
    static_assert(FIRST_FILE + LAUNCHER_FILES < HIGH, "high numbers must not be places");
    int high[LAUNCHER_FILES];
    for (size_t i = 0; i < count; i++) {
        high[i] = fcntl(files[i], F_DUPFD_CLOEXEC, HIGH);
        if (high[i] < 0) {
            return false;
        }
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
        dup2(error_file >= 0 ? error_file : null, 2) < 0) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (dup2(high[i], FIRST_FILE + (int)i) < 0) {
            return false;
        }
    }
    return syscall(SYS_close_range, (unsigned)(FIRST_FILE + (int)count), ~0U, 0U) == 0;
}

/* The limit is one byte. This is too short for any file, and it is the one value at which no dump
 * handler is called. */
static void limit_cores(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max = limit.rlim_max < 1 ? limit.rlim_max : 1;
        (void)setrlimit(RLIMIT_CORE, &limit); /* lowering always succeeds */
    }
}

/* Descriptors in flight are counted per user against the sender's own limit. The jobs' limit is
 * lower, so that they cannot use ours up. */
static void raise_open_files(void)
{
    enum { OPEN_FILES_MOST = 65536 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < OPEN_FILES_MOST) {
        limit.rlim_cur = limit.rlim_max < OPEN_FILES_MOST ? limit.rlim_max : OPEN_FILES_MOST;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* anyone may raise it up to the hard limit */
    }
}

static _Noreturn void become(const struct order *order, const int *files, size_t count,
                             int error_file)
{
    enum { FAILED = 125 };
    char *const empty[] = {NULL};
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number <= SIGRTMAX; number++) {
        (void)signal(number, SIG_DFL); /* an ignored signal would stay ignored in the jail */
    }
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* bwrap later asks for the same itself */
    for (size_t i = 0; order->groups[i] != NULL; i++) {
        if (!write_file(order->groups[i], "0")) {
            (void)dprintf(error_file, "cannot join the control group %s: %s", order->groups[i],
                          strerror(errno));
            _exit(FAILED);
        }
    }
    if (order->has_cpus) {
        /* A failure is harmless: the CPU set only helps other programs. */
        (void)sched_setaffinity(0, sizeof order->cpus, &order->cpus);
    }
    /* The kernel kills a job before the owner's own programs when memory is short. */
    (void)write_file("/proc/self/oom_score_adj", "500");
    limit_cores();
    if (place_files(files, count, error_file)) {
        (void)execve(order->argv[0], order->argv, empty);
    }
    (void)dprintf(2, "cannot execute %s: %s", order->argv[0], strerror(errno));
    _exit(FAILED);
}

static void report_failure(int control, const char *text)
{
    uint8_t bytes[256];
    struct writer out = writer_over(bytes, sizeof bytes);
    size_t length = strnlen(text, sizeof bytes - 1);
    writer_u8(&out, 0);
    writer_bytes(&out, text, length);
    /* The report is lost if nobody listens, and then nobody needs it. */
    (void)packet_send(control, bytes, out.position, NULL, 0);
    (void)close(control);
}

static void start_program(struct table *table, const struct order *order, int *files, size_t count)
{
    int control = files[0];
    size_t skip = order->has_error_file ? 2 : 1;
    if (count < skip || count - skip > LAUNCHER_FILES) {
        report_failure(control, "descriptors do not match the request");
        return;
    }
    if (table->count == PROGRAMS) {
        report_failure(control, "too many jails");
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        become(order, files + skip, count - skip, order->has_error_file ? files[1] : -1);
    }
    if (pid < 0) {
        report_failure(control, strerror(errno));
        return;
    }
    table->programs[table->count++] = (struct program){.pid = pid, .control = control};
}

/* Takes one order. Returns false when the agent is gone. */
static bool take_order(struct table *table)
{
    static uint8_t bytes[LAUNCHER_MESSAGE_BYTES];
    int files[2 + LAUNCHER_FILES];
    size_t count;
    ssize_t length = packet_receive(table->socket, bytes, sizeof bytes, files,
                                    sizeof files / sizeof *files, &count);
    if (length == 0 || (length < 0 && errno != EMSGSIZE)) {
        return false;
    }
    struct order order;
    if (length > 0 && count > 0) {
        if (read_order(bytes, (size_t)length, &order)) {
            start_program(table, &order, files, count);
        } else {
            report_failure(files[0], "the request does not decode");
        }
        packet_close_files(files + 1, count - 1);
    }
    return true;
}

static bool known(const struct table *table, pid_t pid)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct program *program = &table->programs[i];
        if ((!program->ended && program->pid == pid) || program->orphan == pid) {
            return true;
        }
    }
    return false;
}

/* Returns a child that we did not start; 0 when there is none, or the kernel does not list
 * children. */
static pid_t find_orphan(const struct table *table)
{
    FILE *children = fopen("/proc/thread-self/children", "re");
    pid_t orphan = 0;
    int pid;
    while (children != NULL && orphan == 0 && fscanf(children, "%d", &pid) == 1) {
        orphan = known(table, pid) ? 0 : pid;
    }
    if (children != NULL) {
        (void)fclose(children);
    }
    return orphan;
}

static void report(struct table *table, struct program *program)
{
    if (program->control >= 0) {
        uint8_t bytes[8];
        struct writer out = writer_over(bytes, sizeof bytes);
        writer_u8(&out, 1);
        writer_u32(&out, (uint32_t)program->status);
        (void)packet_send(program->control, bytes, out.position, NULL, 0);
        (void)close(program->control);
    }
    *program = table->programs[--table->count];
}

static void ended(struct table *table, pid_t pid, int status)
{
    for (size_t i = 0; i < table->count; i++) {
        struct program *program = &table->programs[i];
        if (!program->ended && program->pid == pid) {
            program->ended = true;
            program->status = status;
        } else if (program->orphan != pid) {
            continue;
        }
        program->orphan = find_orphan(table);
        if (program->orphan != 0) {
            (void)kill(program->orphan, SIGKILL);
        } else {
            report(table, program);
        }
        return;
    }
}

static void reap(struct table *table)
{
    struct signalfd_siginfo information[8];
    if (read(table->children, information, sizeof information) < 0) {
        return; /* woken for nothing */
    }
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0) {
            return;
        }
        ended(table, pid, status);
    }
}

/* Anything on a control socket means kill. The process is not reaped yet, so the pid is still its
 * own. */
static void kill_program(struct program *program)
{
    (void)kill(program->ended ? program->orphan : program->pid, SIGKILL);
    uint8_t byte[8];
    int files[1];
    size_t count;
    ssize_t length = packet_receive(program->control, byte, sizeof byte, files, 1, &count);
    packet_close_files(files, count);
    if (length <= 0) {
        (void)close(program->control);
        program->control = -1;
    }
}

static _Noreturn void serve(struct table *table)
{
    static struct pollfd polls[2 + PROGRAMS];
    for (;;) {
        polls[0] = (struct pollfd){.fd = table->socket, .events = POLLIN};
        polls[1] = (struct pollfd){.fd = table->children, .events = POLLIN};
        for (size_t i = 0; i < table->count; i++) {
            polls[2 + i] = (struct pollfd){.fd = table->programs[i].control, .events = POLLIN};
        }
        size_t count = table->count;
        if (poll(polls, (nfds_t)(2 + count), -1) < 0) {
            continue; /* EINTR */
        }
        for (size_t i = 0; i < count; i++) { /* before the table moves */
            if (polls[2 + i].revents != 0) {
                kill_program(&table->programs[i]);
            }
        }
        if (polls[1].revents != 0) {
            reap(table);
        }
        if (polls[0].revents != 0 && !take_order(table)) {
            _exit(0); /* every program has us as its parent and dies with us */
        }
    }
}

static _Noreturn void launcher_main(int socket, pid_t agent)
{
    static struct table table;
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL); /* the agent handles Ctrl-C */
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_NAME, "bourse-launcher", 0, 0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (getppid() != agent) {
        _exit(0);
    }
    int kept = fcntl(socket, F_DUPFD_CLOEXEC, 3);
    int low = dup2(kept, 3);
    if (low != 3 || syscall(SYS_close_range, 4U, ~0U, 0U) != 0 ||
        fcntl(3, F_SETFD, FD_CLOEXEC) != 0) {
        _exit(1);
    }
    sigset_t children;
    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    table.socket = 3;
    table.children = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (table.children < 0) {
        _exit(1);
    }
    serve(&table);
}

/* --------------------------------------------------------------------- the agent's side */

bool launcher_start(struct launcher **ret_launcher, struct problem *ret_problem)
{
    struct launcher *launcher = calloc(1, sizeof *launcher);
    int sockets[2];
    if (launcher == NULL || !packet_pair(sockets)) {
        problem_set(ret_problem, "cannot start the launcher: %s", strerror(errno));
        free(launcher);
        return false;
    }
    raise_open_files();
    pid_t agent = getpid();
    launcher->pid = fork();
    if (launcher->pid == 0) {
        launcher_main(sockets[1], agent);
    }
    int error = errno;
    (void)close(sockets[1]);
    if (launcher->pid < 0) {
        problem_set(ret_problem, "cannot start the launcher: %s", strerror(error));
        (void)close(sockets[0]);
        free(launcher);
        return false;
    }
    launcher->socket = sockets[0];
    *ret_launcher = launcher;
    return true;
}

int launcher_end(const struct launcher *launcher)
{
    return launcher->socket; /* the launcher never sends anything on it */
}

void launcher_stop(struct launcher **self)
{
    struct launcher *launcher = *self;
    if (launcher != NULL) {
        (void)close(launcher->socket);
        while (waitpid(launcher->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        free(launcher);
        *self = NULL;
    }
}

bool launcher_give_way(const struct launcher *launcher)
{
    enum { NICE_MOST = 19, IO_PROCESS = 1, IO_IDLE = 3 << 13 };
    /* The launcher's children inherit both. */
    const bool is_nice = setpriority(PRIO_PROCESS, (id_t)launcher->pid, NICE_MOST) == 0;
    return syscall(SYS_ioprio_set, IO_PROCESS, launcher->pid, IO_IDLE) == 0 && is_nice;
}

static void write_list(struct writer *out, const char *const *texts, size_t count)
{
    writer_u16(out, (uint16_t)count);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(texts[i]) + 1;
        writer_u16(out, (uint16_t)length);
        writer_bytes(out, texts[i], length);
        out->failed = out->failed || length > UINT16_MAX;
    }
}

bool launcher_launch(struct launcher *launcher, const struct launch *launch, int *ret_control,
                     struct problem *ret_problem)
{
    assert(launch->file_count <= LAUNCHER_FILES);
    assert(launch->group_count <= LAUNCHER_GROUPS);

    uint8_t bytes[LAUNCHER_MESSAGE_BYTES];
    struct writer out = writer_over(bytes, sizeof bytes);
    size_t argument_count = 0;
    while (launch->argv[argument_count] != NULL) {
        argument_count++;
    }
    assert(argument_count <= LAUNCHER_ARGUMENTS);
    write_list(&out, launch->argv, argument_count);
    write_list(&out, launch->groups, launch->group_count);
    writer_u8(&out, launch->error_file >= 0);
    writer_u8(&out, launch->cpus != NULL);
    if (launch->cpus != NULL) {
        writer_bytes(&out, launch->cpus, sizeof *launch->cpus);
    }
    int control[2];
    if (out.failed || !packet_pair(control)) {
        problem_set(ret_problem, "cannot ask the launcher: %s",
                    out.failed ? "the request is too long" : strerror(errno));
        return false;
    }
    int files[2 + LAUNCHER_FILES];
    size_t count = 0;
    files[count++] = control[1];
    if (launch->error_file >= 0) {
        files[count++] = launch->error_file;
    }
    for (size_t i = 0; i < launch->file_count; i++) {
        files[count++] = launch->files[i];
    }
    bool sent = packet_send(launcher->socket, bytes, out.position, files, count);
    int error = errno;
    (void)close(control[1]);
    if (!sent) {
        problem_set(ret_problem, "the launcher does not answer: %s", strerror(error));
        (void)close(control[0]);
        return false;
    }
    *ret_control = control[0];
    return true;
}

bool launcher_wait(int control, int timeout_ms, int *ret_status)
{
    struct pollfd polled = {.fd = control, .events = POLLIN};
    int ready = poll(&polled, 1, timeout_ms);
    if (ready <= 0) {
        return false;
    }
    uint8_t bytes[256];
    int files[1];
    size_t count;
    ssize_t length = packet_receive(control, bytes, sizeof bytes, files, 1, &count);
    packet_close_files(files, count);
    *ret_status = -1;
    if (length == 5 && bytes[0] == 1) {
        struct reader in = reader_over(bytes + 1, 4);
        *ret_status = (int)reader_u32(&in);
    }
    return true;
}

void launcher_kill(int control)
{
    const uint8_t byte = 0;
    (void)packet_send(control, &byte, 1, NULL, 0); /* an ended program needs no kill */
}
