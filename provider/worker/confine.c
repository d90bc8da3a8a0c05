/* provider/worker/confine.c is the second stage, in which a subtask's process confines itself
 * between vfork and exec.
 *
 * Landlock's numbers are our own, because distributions ship headers older than their kernels. The
 * rights are masked by the ABI that the kernel reports. Below ABI 2 Landlock is left out, because
 * renaming between folders could not be allowed. The mount namespace hides the tree anyway. */
#include "provider/worker/wire.h"
#include "provider/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CALL_CREATE_RULESET = 444,
    CALL_ADD_RULE = 445,
    CALL_RESTRICT_SELF = 446,
    ABI_VERSION_FLAG = 1,
    RULE_PATH_BENEATH = 1,
};

/* These are numbers of the kernel's interface. */
enum landlock_right {
    RIGHT_EXECUTE = 1 << 0,
    RIGHT_WRITE_FILE = 1 << 1,
    RIGHT_READ_FILE = 1 << 2,
    RIGHT_READ_DIR = 1 << 3,
    RIGHT_MAKE_CHAR = 1 << 6,
    RIGHT_MAKE_BLOCK = 1 << 11,
    RIGHTS_FIRST = (1 << 13) - 1, /* all of ABI 1 */
    RIGHT_REFER = 1 << 13,        /* from ABI 2 on */
    RIGHT_TRUNCATE = 1 << 14,     /* from ABI 3 on */
    RIGHT_IOCTL_DEV = 1 << 15,    /* from ABI 5 on */
};
/* The TCP rights (bind, connect) exist from ABI 4 on, the scopes (abstract sockets, signals) from
 * ABI 6 on. */
enum { RIGHTS_TCP = 3, SCOPES = 3 };

struct ruleset_attribute {
    uint64_t files, network, scopes;
};
struct __attribute__((packed)) path_rule {
    uint64_t allowed;
    int32_t parent;
};

int confine_abi(void)
{
    long abi = syscall(CALL_CREATE_RULESET, NULL, 0, ABI_VERSION_FLAG);
    return abi < 0 ? 0 : (int)abi;
}

static uint64_t rights_of(int abi)
{
    uint64_t rights = RIGHTS_FIRST;
    rights |= abi >= 2 ? RIGHT_REFER : 0;
    rights |= abi >= 3 ? RIGHT_TRUNCATE : 0;
    rights |= abi >= 5 ? RIGHT_IOCTL_DEV : 0;
    return rights;
}

static bool allow(int ruleset, const char *path, uint64_t rights)
{
    int folder = open(path, O_PATH | O_CLOEXEC);
    if (folder < 0) {
        return false;
    }
    struct path_rule rule = {.allowed = rights, .parent = folder};
    long added = syscall(CALL_ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0);
    (void)close(folder);
    return added == 0;
}

int confine_ruleset(void)
{
    int abi = confine_abi();
    if (abi < 2) {
        return -1;
    }
    uint64_t all = rights_of(abi);
    struct ruleset_attribute attribute = {
        .files = all, .network = abi >= 4 ? RIGHTS_TCP : 0, .scopes = abi >= 6 ? SCOPES : 0};
    size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    long made = syscall(CALL_CREATE_RULESET, &attribute, size, 0);
    if (made < 0) {
        return -1;
    }
    int ruleset = (int)made;
    uint64_t read = RIGHT_EXECUTE | RIGHT_READ_FILE | RIGHT_READ_DIR;
    uint64_t full = all & ~(uint64_t)(RIGHT_MAKE_CHAR | RIGHT_MAKE_BLOCK);
    uint64_t device =
        (RIGHT_READ_FILE | RIGHT_READ_DIR | RIGHT_WRITE_FILE | RIGHT_TRUNCATE | RIGHT_IOCTL_DEV) &
        all;
    if (!allow(ruleset, "/", read) || !allow(ruleset, "/dev", device) ||
        !allow(ruleset, "/work", full) || !allow(ruleset, "/tmp", full) ||
        !allow(ruleset, "/dev/shm", full)) {
        (void)close(ruleset);
        return -1;
    }
    return ruleset;
}

uint32_t confine_facts(void)
{
    uint32_t facts = 0;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    bool read = syscall(SYS_capget, &header, data) == 0;
    uint32_t any = 0;
    for (int i = 0; i < 2; i++) {
        any |= data[i].effective | data[i].permitted | data[i].inheritable;
    }
    facts |= read && any == 0 ? WIRE_FACT_NO_CAPABILITIES : 0U;
    facts |= getpid() == 1 ? WIRE_FACT_FIRST : 0U;
    facts |= prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? WIRE_FACT_NO_NEW_PRIVS : 0U;
    facts |= prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2 ? WIRE_FACT_SECCOMP : 0U;
    facts |= getuid() != 0 && geteuid() == getuid() && getegid() == getgid() ? WIRE_FACT_USER : 0U;
    return facts;
}

/* Sets both limits, never above the current ones, because raising needs a capability. */
static void limit(int resource, uint64_t value)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)resource, &now) != 0) {
        return;
    }
    rlim_t wanted = value < now.rlim_max ? (rlim_t)value : now.rlim_max;
    struct rlimit next = {.rlim_cur = wanted, .rlim_max = wanted};
    (void)setrlimit((__rlimit_resource_t)resource, &next); /* lowering always succeeds */
}

static uint64_t open_files_of_worker(void)
{
    struct rlimit now;
    return getrlimit(RLIMIT_NOFILE, &now) == 0 ? (uint64_t)now.rlim_cur : 0;
}

static void limit_all(const struct child *child)
{
    enum { OPEN_FILES = 1024 };
    /* Descriptors in flight are counted per user of the host against the sender's own limit. The
     * job's limit must be the lower one. Otherwise the job could keep us and other jails from
     * sending any. */
    limit(RLIMIT_NOFILE,
          open_files_of_worker() / 2 < OPEN_FILES ? open_files_of_worker() / 2 : OPEN_FILES);
    limit(RLIMIT_MSGQUEUE, 0);
    if (child->file_bytes != 0) {
        limit(RLIMIT_FSIZE, child->file_bytes);
    }
    if (child->address_bytes != 0) {
        limit(RLIMIT_AS, child->address_bytes);
    }
    if (child->cpu_seconds != 0) {
        limit(RLIMIT_CPU, child->cpu_seconds);
    }
    if (child->processes != 0) {
        limit(RLIMIT_NPROC, child->processes);
    }
}

/* Executes along a list of folders, for a name without a slash. */
static int execute(const struct child *child)
{
    const char *name = child->argv[0];
    if (strchr(name, '/') != NULL) {
        (void)execve(name, child->argv, child->env);
        return errno;
    }
    int worst = ENOENT;
    for (const char *folder = child->path; *folder != '\0';) {
        size_t length = strcspn(folder, ":");
        char path[LIMIT_PATH_BYTES];
        if (length > 0 && length + strlen(name) + 2 <= sizeof path) {
            memcpy(path, folder, length);
            path[length] = '/';
            memcpy(path + length + 1, name, strlen(name) + 1);
            (void)execve(path, child->argv, child->env);
            if (errno != ENOENT && errno != ENOTDIR) {
                worst = errno;
            }
        }
        folder += length + (folder[length] == ':');
    }
    return worst;
}

/* A jail at the lowest priority is one for which the owner's programs shall never wait. Its
 * programs get what time nobody else wants. The worker does not, because the worker must hear that
 * the owner is back. */
static void give_way(void)
{
    enum { NICE_MOST = 19 };
    const struct sched_param none = {.sched_priority = 0};
    if (getpriority(PRIO_PROCESS, 0) == NICE_MOST) {
        (void)sched_setscheduler(0, SCHED_IDLE, &none); /* the low priority stays when it fails */
    }
}

int confine_execute(const struct child *child)
{
    give_way();
    (void)setsid(); /* fails only for a group leader, which a new process is not */
    for (int i = 0; i < 3; i++) {
        if (dup2(child->standard[i], i) < 0) {
            return errno;
        }
    }
    if (child->has_terminal && ioctl(0, TIOCSCTTY, 0) != 0) {
        return errno;
    }
    limit_all(child);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return errno;
    }
    if (child->ruleset >= 0 && syscall(CALL_RESTRICT_SELF, child->ruleset, 0) != 0) {
        return errno;
    }
    if (syscall(SYS_close_range, 3U, ~0U, 0U) != 0) {
        return errno;
    }
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (child->directory != NULL && chdir(child->directory) != 0) {
        return errno | CHILD_DIRECTORY;
    }
    return execute(child);
}
