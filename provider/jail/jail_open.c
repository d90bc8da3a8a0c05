/* provider/jail/jail_open.c starts and ends a jail; jail.c does the work between start and end. */
#include "base/cursor.h"
#include "base/text.h"
#include "provider/jail/jail.h"
#include "provider/jail/jail_internal.h"
#include "provider/worker/packet.h"
#include "provider/worker/wire.h"
#include "runtime/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MEMORY_DEFAULT_BYTES (UINT64_C(1) << 30)
#define DISK_DEFAULT_BYTES (UINT64_C(1) << 30)
#define PROCESSES_DEFAULT 256

enum {
    OPEN_WAIT_MS = 20000,
    LEAVE_WAIT_MS = 1000,
    END_WAIT_MS = 5000,
    START_PROCESSES = 3, /* bwrap's two and the worker, while it starts */
    OWN_PROCESSES = 2,   /* bwrap and the worker, afterwards */
};

static bool copy_program(int source, int target)
{
    for (;;) {
        ssize_t moved = sendfile(target, source, NULL, 1 << 20);
        if (moved < 0 && errno == EINTR) {
            continue;
        }
        if (moved <= 0) {
            return moved == 0;
        }
    }
}

bool jail_install_worker(const char *source, const char *target, uid_t owner,
                         struct problem *ret_problem)
{
    int from = open(source, O_RDONLY | O_CLOEXEC);
    if (from < 0) {
        problem_set(ret_problem, "%s: %s: the helper bourse-worker belongs beside the agent",
                    source, strerror(errno));
        return false;
    }
    (void)unlink(target); /* an earlier copy may be running, so it is not overwritten */
    int to = open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0500);
    bool installed = to >= 0 && copy_program(from, to) && fchmod(to, 0500) == 0 &&
                     (owner == (uid_t)-1 || fchown(to, owner, (gid_t)-1) == 0);
    if (!installed) {
        problem_set(ret_problem, "cannot install the worker as %s: %s", target, strerror(errno));
    }
    (void)close(from);
    if (to >= 0) {
        (void)close(to);
    }
    return installed;
}

static bool make_capture(struct jail *jail)
{
    for (size_t i = 0; i < 2; i++) {
        jail->capture[i] = memfd_create("capture", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (jail->capture[i] < 0 || ftruncate(jail->capture[i], WIRE_CAPTURE_FILE_BYTES) != 0 ||
            fcntl(jail->capture[i], F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
            return false;
        }
    }
    return true;
}

static void take_limits(struct jail *jail, const struct jail_limits *limits)
{
    jail->limits = *limits;
    jail->limits.memory_bytes =
        limits->memory_bytes != 0 ? limits->memory_bytes : MEMORY_DEFAULT_BYTES;
    jail->limits.disk_bytes = limits->disk_bytes != 0 ? limits->disk_bytes : DISK_DEFAULT_BYTES;
    jail->limits.processes = limits->processes != 0 ? limits->processes : PROCESSES_DEFAULT;
}

static bool make_group(struct jail *jail, const struct jail_spec *spec, struct problem *ret_problem)
{
    if (spec->cgroups == NULL) {
        return true;
    }
    /* Files live in memory, and a group cannot bound memory and files separately. The worker
     * watches that memory alone stays within its limit. The kernel enforces this sum meanwhile. */
    struct cgroup_limits limits = {.memory_bytes =
                                       jail->limits.memory_bytes + jail->limits.disk_bytes,
                                   .processes = jail->limits.processes + START_PROCESSES,
                                   .cpu_milli = jail->limits.cpu_milli};
    return cgroup_create(spec->cgroups, spec->name, &limits, &jail->group, ret_problem);
}

/* Starts bwrap; `error_file` is its stderr. */
static bool start(struct launcher *launcher, struct jail *jail, const struct jail_spec *spec,
                  int error_file, struct problem *ret_problem)
{
    struct jail_spec full = *spec;
    full.limits = jail->limits;
    int sockets[2];
    if (!packet_pair(sockets)) {
        problem_set(ret_problem, "no socket for the jail: %s", strerror(errno));
        return false;
    }
    jail->socket = sockets[0];
    struct jail_command command = {.files = {sockets[1], -1, -1, -1, -1, -1}};
    bool started = jail_command_build(&full, &command, ret_problem);
    if (started) {
        const char *groups[CGROUP_HIERARCHIES];
        struct launch launch = {
            .argv = command.argv,
            .files = command.files,
            .file_count = command.files[COMMAND_OWNER] >= 0    ? COMMAND_OWNER + 1
                          : command.files[COMMAND_HELPER] >= 0 ? COMMAND_HELPER + 1
                                                               : COMMAND_HELPER,
            .error_file = error_file,
            .groups = groups,
            .group_count = jail->group != NULL ? cgroup_procs(jail->group, groups) : 0,
            .cpus = spec->cpus};
        started = launcher_launch(launcher, &launch, &jail->control, ret_problem);
        jail_command_close(&command);
    }
    (void)close(sockets[1]);
    return started;
}

static void tell_why(int error_file, const char *fallback, struct problem *ret_problem)
{
    char raw[256];
    char text[256];
    ssize_t length = pread(error_file, raw, sizeof raw, 0);
    if (length <= 0) {
        problem_set(ret_problem, "the jail does not start: %s", fallback);
        return;
    }
    length -= raw[length - 1] == '\n';
    text_printable(raw, (size_t)length, text, sizeof text);
    problem_set(ret_problem, "the jail does not start: %s", text);
}

static bool own_namespaces(const struct wire_hello *hello, const char **ret_shared)
{
    for (size_t i = 0; i < WIRE_NAMESPACES; i++) {
        char path[64];
        struct stat status;
        (void)snprintf(path, sizeof path, "/proc/self/ns/%s", wire_namespace_names[i]);
        if (hello->namespaces[i] == 0 || stat(path, &status) != 0 ||
            (uint64_t)status.st_ino == hello->namespaces[i]) {
            *ret_shared = wire_namespace_names[i];
            return false;
        }
    }
    return true;
}

static bool confined(const struct wire_hello *hello, struct problem *ret_problem)
{
    const char *shared = NULL;
    if (hello->version != WIRE_VERSION) {
        problem_set(ret_problem, "the worker is of another build: install both together");
        return false;
    }
    if ((hello->facts & WIRE_FACTS) != WIRE_FACTS) {
        problem_set(ret_problem,
                    "the jail lacks a layer (has %#x of %#x): no-new-privs, seccomp, "
                    "capabilities or user are not as they must be",
                    hello->facts, (unsigned)WIRE_FACTS);
        return false;
    }
    if (!own_namespaces(hello, &shared)) {
        problem_set(ret_problem, "the jail has no %s namespace of its own", shared);
        return false;
    }
    return true;
}

/* Waits for the worker's first message, or for bwrap's failure. */
static bool await_hello(struct jail *jail, int error_file, struct problem *ret_problem)
{
    struct pollfd polled = {.fd = jail->socket, .events = POLLIN};
    if (poll(&polled, 1, OPEN_WAIT_MS) <= 0) {
        tell_why(error_file, "no sign of life", ret_problem);
        return false;
    }
    uint8_t bytes[256];
    int files[1];
    size_t file_count;
    ssize_t length = packet_receive(jail->socket, bytes, sizeof bytes, files, 1, &file_count);
    packet_close_files(files, file_count);
    struct wire_hello hello;
    if (length <= 0 || !jail_wire_read_hello(bytes, (size_t)length, &hello)) {
        int status;
        (void)launcher_wait(jail->control, END_WAIT_MS, &status); /* completes its stderr */
        tell_why(error_file, "bwrap ended without a word", ret_problem);
        return false;
    }
    jail->landlock_abi = hello.landlock_abi;
    return confined(&hello, ret_problem);
}

static bool send_setup(struct jail *jail, const struct jail_spec *spec)
{
    uint8_t bytes[16];
    struct writer out = writer_over(bytes, sizeof bytes);
    bool counts_processes = spec->cgroups != NULL && cgroups_processes(spec->cgroups);
    int memory_file = jail->group != NULL ? cgroup_memory_file(jail->group) : -1;
    const int files[3] = {jail->capture[0], jail->capture[1], memory_file};
    writer_u8(&out, WIRE_SETUP);
    writer_u32(&out, 0);
    writer_u8(&out, memory_file < 0);
    writer_u8(&out, !counts_processes);
    if (counts_processes &&
        !cgroup_set_processes(jail->group, jail->limits.processes + OWN_PROCESSES)) {
        return false;
    }
    return packet_send(jail->socket, bytes, out.position, files, memory_file < 0 ? 2 : 3);
}

bool jail_open(struct launcher *launcher, const struct jail_spec *spec, struct jail **ret_jail,
               struct problem *ret_problem)
{
    if (geteuid() == 0 || getuid() == 0) {
        problem_set(ret_problem, "jails never run as root: drop to a service user first");
        return false;
    }
    struct jail *jail = calloc(1, sizeof *jail);
    int error_file = memfd_create("stderr", MFD_CLOEXEC);
    if (jail == NULL || error_file < 0) {
        problem_set(ret_problem, "no memory for a jail: %s", strerror(errno));
        free(jail);
        if (error_file >= 0) {
            (void)close(error_file);
        }
        return false;
    }
    jail->socket = jail->control = jail->capture[0] = jail->capture[1] = -1;
    jail->keep = spec->bind_path != NULL;
    (void)pthread_mutex_init(&jail->lock, NULL); /* cannot fail with default attributes */
    take_limits(jail, &spec->limits);
    bool opened = make_group(jail, spec, ret_problem) &&
                  start(launcher, jail, spec, error_file, ret_problem) &&
                  await_hello(jail, error_file, ret_problem);
    if (opened && !(make_capture(jail) && send_setup(jail, spec))) {
        problem_set(ret_problem, "cannot set up the jail: %s", strerror(errno));
        opened = false;
    }
    (void)close(error_file);
    if (!opened) {
        jail_close(&jail);
        return false;
    }
    *ret_jail = jail;
    return true;
}

/* The worker's end closes when process 1 ends. After that nothing of the jail computes any more. */
static void await_end(struct jail *jail)
{
    int64_t end_ns = clock_monotonic_ns() + (int64_t)END_WAIT_MS * 1000000;
    for (;;) {
        int64_t left_ms = (end_ns - clock_monotonic_ns()) / 1000000;
        struct pollfd polled = {.fd = jail->socket, .events = POLLIN};
        if (left_ms <= 0 || poll(&polled, 1, (int)left_ms) <= 0) {
            return;
        }
        uint8_t bytes[64];
        int files[PACKET_FILES];
        size_t count;
        ssize_t length =
            packet_receive(jail->socket, bytes, sizeof bytes, files, PACKET_FILES, &count);
        packet_close_files(files, count);
        if (length == 0 || (length < 0 && errno != EMSGSIZE)) {
            return;
        }
    }
}

void jail_close(struct jail **self)
{
    struct jail *jail = *self;
    if (jail == NULL) {
        return;
    }
    if (jail->control >= 0) {
        int status;
        /* The shutdown comes first, so that bwrap can still wait for the worker. A bwrap that does
         * not react is killed. */
        (void)shutdown(jail->socket, SHUT_WR);
        if (!launcher_wait(jail->control, LEAVE_WAIT_MS, &status)) {
            launcher_kill(jail->control);
            (void)launcher_wait(jail->control, END_WAIT_MS, &status);
        }
        await_end(jail);
        (void)close(jail->control);
    }
    const int files[] = {jail->socket, jail->capture[0], jail->capture[1]};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i] >= 0) {
            (void)close(files[i]);
        }
    }
    cgroup_destroy(&jail->group);
    (void)pthread_mutex_destroy(&jail->lock);
    free(jail);
    *self = NULL;
}

enum {
    /* Landlock controls truncating from this ABI on; it always controlled opening. */
    LANDLOCK_TRUNCATES = 3,
    /* A user who mounts a FUSE file system chooses the owners of its files. */
    FUSE_MAGIC = 0x65735546,
};

bool jail_may_map(const struct jail *jail, int fd)
{
    struct stat status;
    struct statfs system;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY || fstat(fd, &status) != 0 ||
        !S_ISREG(status.st_mode) || (status.st_mode & 0022) != 0 || fstatfs(fd, &system) != 0 ||
        system.f_type == FUSE_MAGIC) {
        return false;
    }
    /* The jail's user is our user, and could open our own file for writing if only the mode forbids
     * it. */
    return status.st_uid == 0 ||
           (status.st_uid == geteuid() && jail->landlock_abi >= LANDLOCK_TRUNCATES);
}

int jail_landlock_abi(const struct jail *jail)
{
    return (int)jail->landlock_abi;
}
