/* This static program tries one way out of the jail for each mode.
 *
 *     probe MODE [ARGUMENTS]
 *
 * A mode that looks for a gap prints every gap it finds and exits 1, or 0 when there is none. A
 * mode that exhausts something does not end by itself. Built static, without sanitizers. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define HIGH_RUBBISH UINT64_C(0x100000000) /* in bits that the kernel ignores */

static int gaps;

static void gap(const char *what, const char *detail)
{
    (void)printf("GAP %s %s\n", what, detail);
    gaps++;
}

/* The call must fail, and with `error` unless that is 0. */
static void must_fail(const char *what, long result, int error)
{
    if (result >= 0 || (error != 0 && errno != error)) {
        gap(what, result >= 0 ? "succeeded" : strerror(errno));
    }
}

static void files(char **paths)
{
    static const char *const hidden[] = {"/etc/shadow", "/root",         "/home",    "/var",
                                         "/boot",       "/srv",          "/mnt",     "/media",
                                         "/opt",        "/sys",          "/run",     "/oldroot",
                                         "/newroot",    "/etc/hostname", "/etc/ssh", "/etc/hosts"};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        must_fail(hidden[i], open(hidden[i], O_RDONLY), 0);
    }
    for (; *paths != NULL; paths++) {
        must_fail(*paths, open(*paths, O_RDONLY), 0);
        char around[1024];
        (void)snprintf(around, sizeof around, "/proc/1/root%s", *paths);
        must_fail(around, open(around, O_RDONLY), 0);
        (void)snprintf(around, sizeof around, "/work/../../../..%s", *paths);
        must_fail(around, open(around, O_RDONLY), 0);
    }
    static const char *const fixed[] = {"/usr/made", "/etc/made", "/made", "/dev/made",
                                        "/proc/made"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        must_fail(fixed[i], open(fixed[i], O_WRONLY | O_CREAT, 0600), 0);
    }
    static const char *const kept[] = {"/etc/passwd",         "/.bourse-worker",
                                       "/usr/bin/env",        "/proc/sys/kernel/core_pattern",
                                       "/proc/sysrq-trigger", "/proc/1/oom_score_adj",
                                       "/proc/kcore",         "/proc/kmsg"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        must_fail(kept[i], open(kept[i], O_WRONLY), 0);
    }
    FILE *mounts = fopen("/proc/self/mountinfo", "r");
    char line[4096];
    while (mounts != NULL && fgets(line, sizeof line, mounts) != NULL) {
        /* The folder of the test stands for an owner's; that of an image is seen, being the
         * root. */
        if (strstr(line, "bourse-jail") != NULL && strstr(line, "/image / ") == NULL) {
            gap("mountinfo", line);
        }
    }
    must_fail("mknod", mknod("/work/disk", S_IFBLK | 0600, 0x800), 0);
    must_fail("chmod worker", chmod("/.bourse-worker", 0777), 0);
}

static void must_be_hidden(const char *path)
{
    must_fail(path, open(path, O_RDONLY | O_NONBLOCK), 0);
}

/* The system around a job, and what it may tell of the machine and its owner. A program needs
 * programs, libraries, and the figures by which it sizes itself. */
static void system_tree(char **extra)
{
    static const char *const hidden[] = {
        /* how the machine was started, built and named, and what runs on it besides */
        "/proc/cmdline", "/proc/config.gz", "/proc/keys", "/proc/key-users", "/proc/interrupts",
        "/proc/kallsyms", "/proc/kcore", "/proc/kmsg", "/proc/latency_stats", "/proc/modules",
        "/proc/partitions", "/proc/sched_debug", "/proc/slabinfo", "/proc/timer_list",
        "/proc/timer_stats", "/proc/vmallocinfo", "/proc/bootconfig", "/sys/firmware", "/sys/class",
        "/sys/devices/virtual/powercap",
        /* what no program runs by */
        "/usr/src", "/usr/games", "/usr/local", "/usr/sbin/useradd", "/usr/share/doc",
        "/usr/share/man", "/usr/share/info", "/usr/share/bug", "/usr/share/lintian",
        "/usr/share/keyrings", "/usr/share/initramfs-tools", "/usr/share/dpkg"};
    static const char *const folders[] = {"/proc/acpi", "/proc/asound", "/proc/scsi"};
    static const char *const needed[] = {"/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
                                         "/proc/uptime", "/proc/self/status"};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        must_be_hidden(hidden[i]);
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        DIR *folder = opendir(folders[i]);
        for (struct dirent *entry = NULL; folder != NULL && (entry = readdir(folder)) != NULL;) {
            if (entry->d_name[0] != '.') {
                gap(folders[i], entry->d_name);
            }
        }
    }
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (open(needed[i], O_RDONLY) < 0) {
            gap(needed[i], "is not there, though programs need it");
        }
    }
    for (; *extra != NULL; extra++) {
        if (open(*extra, O_RDONLY) < 0) {
            gap(*extra, "is not there, though the owner shows it");
        }
    }
}

static void network(char **names)
{
    static const int families[] = {AF_INET,      AF_INET6, AF_NETLINK, AF_PACKET,
                                   AF_BLUETOOTH, AF_VSOCK, AF_ALG,     AF_KEY,
                                   AF_TIPC,      40,       44};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "family %d", families[i]);
        must_fail(name, socket(families[i], SOCK_STREAM, 0), EAFNOSUPPORT);
        must_fail(name, socket(families[i], SOCK_DGRAM, 0), EAFNOSUPPORT);
        must_fail(name, socket(families[i], SOCK_RAW, 0), EAFNOSUPPORT);
        must_fail(name, syscall(SYS_socket, HIGH_RUBBISH | (uint64_t)families[i], SOCK_STREAM, 0),
                  0);
        must_fail(name, syscall(SYS_socket, HIGH_RUBBISH | AF_UNIX, SOCK_RAW, 0), 0);
    }
    for (; *names != NULL; names++) { /* abstract sockets that the host listens on */
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        size_t length = strlen(*names);
        memcpy(address.sun_path + 1, *names, length);
        int one = socket(AF_UNIX, SOCK_STREAM, 0);
        if (one < 0) {
            gap("AF_UNIX", "is refused, though pipes of the job may use it");
        }
        must_fail("abstract socket",
                  connect(one, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)),
                  0);
    }
    FILE *devices = fopen("/proc/net/dev", "r");
    char line[512];
    while (devices != NULL && fgets(line, sizeof line, devices) != NULL) {
        char *colon = strchr(line, ':');
        if (colon != NULL && strstr(line, "lo:") == NULL) {
            gap("network device", line);
        }
    }
}

static void processes(char **pids)
{
    DIR *proc = opendir("/proc");
    if (proc == NULL) {
        gap("/proc", "is not there");
        return;
    }
    for (struct dirent *entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid > 1 && pid != getpid()) {
            gap("process seen", entry->d_name);
        }
    }
    static const char *const inside[] = {"/proc/1/mem",    "/proc/1/environ", "/proc/1/maps",
                                         "/proc/1/fd",     "/proc/1/fd/3",    "/proc/1/cwd/.",
                                         "/proc/1/ns/net", "/proc/1/root/."};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        must_fail(inside[i], open(inside[i], O_RDONLY), 0);
    }
    char byte;
    struct iovec here = {&byte, 1};
    struct iovec there = {(void *)(uintptr_t)0x400000, 1};
    struct rlimit limit = {0, 0};
    must_fail("ptrace 1", ptrace(PTRACE_ATTACH, 1, NULL, NULL), EPERM);
    must_fail("ptrace me", ptrace(PTRACE_TRACEME, 0, NULL, NULL), EPERM);
    must_fail("process_vm_readv", process_vm_readv(1, &here, 1, &there, 1, 0), EPERM);
    must_fail("process_vm_writev", process_vm_writev(1, &here, 1, &there, 1, 0), EPERM);
    must_fail("prlimit 1", prlimit(1, RLIMIT_NOFILE, &limit, NULL), EPERM);
    must_fail("pidfd_getfd", syscall(438, syscall(434, 1, 0), 3, 0), EPERM);
    (void)kill(1, SIGKILL); /* process 1 must survive both: the next run asks it */
    (void)kill(1, SIGSTOP);
    for (; *pids != NULL; pids++) {
        must_fail("host process", kill((pid_t)strtol(*pids, NULL, 10), 0), ESRCH);
    }
}

static int nothing(void *unused)
{
    (void)unused;
    return 0;
}

static void namespaces(void)
{
    static char stack[65536];
    static const struct {
        const char *name;
        uint64_t flag;
    } flags[] = {{"user", 0x10000000},  {"mount", 0x20000}, {"pid", 0x20000000},
                 {"net", 0x40000000},   {"ipc", 0x8000000}, {"uts", 0x4000000},
                 {"cgroup", 0x2000000}, {"time", 0x80}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        must_fail(flags[i].name, unshare((int)flags[i].flag), EPERM);
    }
    must_fail("clone", clone(nothing, stack + sizeof stack, CLONE_NEWUSER | SIGCHLD, NULL), EPERM);
    must_fail("clone high", syscall(SYS_clone, HIGH_RUBBISH | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0),
              EPERM);
    uint64_t arguments[11] = {CLONE_NEWUSER};
    must_fail("clone3", syscall(435, arguments, sizeof arguments), ENOSYS);
    must_fail("setns", setns(open("/proc/self/ns/user", O_RDONLY), 0), EPERM);
    must_fail("mount", mount("none", "/work", "tmpfs", 0, NULL), EPERM);
    must_fail("remount", mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL), EPERM);
    must_fail("umount", umount2("/work", MNT_DETACH), EPERM);
    must_fail("chroot", chroot("/work"), EPERM);
    must_fail("pivot_root", syscall(SYS_pivot_root, "/work", "/work"), EPERM);
    must_fail("open_tree", syscall(428, -100, "/", 1), EPERM);
    must_fail("fsopen", syscall(430, "tmpfs", 0), EPERM);
    must_fail("mount_setattr", syscall(442, -100, "/", 0, NULL, 0), EPERM);
    must_fail("setuid", setuid(0), 0);
    must_fail("sethostname", sethostname("x", 1), EPERM);
}

static void surface(void)
{
    static const struct {
        const char *name;
        long call;
        int error;
    } denied[] = {{"io_uring_setup", 425, ENOSYS},
                  {"io_uring_enter", 426, ENOSYS},
                  {"io_uring_register", 427, ENOSYS},
                  {"bpf", SYS_bpf, EPERM},
                  {"keyctl", SYS_keyctl, EPERM},
                  {"add_key", SYS_add_key, EPERM},
                  {"request_key", SYS_request_key, EPERM},
                  {"userfaultfd", SYS_userfaultfd, EPERM},
                  {"perf_event_open", SYS_perf_event_open, EPERM},
                  {"fanotify_init", SYS_fanotify_init, EPERM},
                  {"open_by_handle_at", SYS_open_by_handle_at, EPERM},
                  {"name_to_handle_at", SYS_name_to_handle_at, EPERM},
                  {"kexec_load", SYS_kexec_load, EPERM},
                  {"init_module", SYS_init_module, EPERM},
                  {"finit_module", SYS_finit_module, EPERM},
                  {"delete_module", SYS_delete_module, EPERM},
                  {"acct", SYS_acct, EPERM},
                  {"swapon", SYS_swapon, EPERM},
                  {"reboot", SYS_reboot, EPERM},
                  {"quotactl", SYS_quotactl, EPERM},
                  {"syslog", SYS_syslog, EPERM},
                  {"settimeofday", SYS_settimeofday, EPERM},
                  {"shmget", SYS_shmget, ENOSYS},
                  {"msgget", SYS_msgget, ENOSYS},
                  {"semget", SYS_semget, ENOSYS},
                  {"mq_open", SYS_mq_open, ENOSYS},
                  {"sched_setaffinity", SYS_sched_setaffinity, EPERM},
                  {"memfd_secret", 447, ENOSYS},
                  {"mseal", 462, ENOSYS},
                  {"setxattrat", 463, ENOSYS},
                  {"open_tree_attr", 467, ENOSYS},
                  {"a call of the future", 600, ENOSYS}};
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) {
        must_fail(denied[i].name, syscall(denied[i].call, 0, 0, 0, 0, 0, 0), denied[i].error);
    }
#ifdef __x86_64__
    must_fail("x32", syscall(0x40000000 | SYS_getpid), ENOSYS);
#endif
    must_fail("personality", syscall(SYS_personality, 0x0040000), EPERM);
    char byte = 'x';
    must_fail("TIOCSTI", ioctl(0, TIOCSTI, &byte), EPERM);
    must_fail("TIOCSTI high", syscall(SYS_ioctl, 0, HIGH_RUBBISH | TIOCSTI, &byte), EPERM);
    must_fail("TIOCLINUX", ioctl(0, 0x541c, &byte), EPERM);
    if (syscall(444, NULL, 0, 1) < 0 && errno != ENOSYS && errno != EOPNOTSUPP) {
        gap("landlock", "is denied, though it only confines further");
    }
}

static void self(void)
{
    for (int file = 3; file < 4096; file++) {
        if (fcntl(file, F_GETFD) >= 0) {
            gap("inherited descriptor", "");
        }
    }
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0 || (data[0].effective | data[1].effective) != 0 ||
        (data[0].permitted | data[1].permitted) != 0) {
        gap("capabilities", "");
    }
    char name[64] = "";
    (void)gethostname(name, sizeof name);
    if (strcmp(name, "jail") != 0) {
        gap("host name", name);
    }
    if (getuid() != 1000 || geteuid() != 1000 || getgid() != 1000) {
        gap("user", "");
    }
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2) {
        gap("no-new-privs or seccomp", "");
    }
    if (getsid(0) != getpid() || getpgrp() != getpid()) {
        gap("session", "is shared");
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_max > 1) {
        gap("core files", "");
    }
    if (getenv("BOURSE_SECRET") != NULL) {
        gap("environment", "of the agent");
    }
    struct rlimit none = {0, 0};
    must_fail("core limit", setrlimit(RLIMIT_CORE, &none), EPERM);
    must_fail("core limit high", syscall(SYS_prlimit64, 0, HIGH_RUBBISH | RLIMIT_CORE, &none, NULL),
              EPERM);
    must_fail("controlling terminal", open("/dev/tty", O_RDWR), 0);
}

/* Removes what a former run left: in folders, in their attributes. */
static void clean(char **own)
{
    static const char *const folders[] = {"/work", "/tmp", "/dev/shm"};
    for (size_t i = 0; i < 3; i++) {
        DIR *folder = opendir(folders[i]);
        for (struct dirent *entry = NULL; folder != NULL && (entry = readdir(folder)) != NULL;) {
            if (entry->d_name[0] != '.' && strcmp(entry->d_name, own[0]) != 0) {
                gap(folders[i], entry->d_name);
            } else if (entry->d_name[0] == '.' && strlen(entry->d_name) > 2) {
                gap(folders[i], entry->d_name);
            }
        }
        struct stat status;
        char names[256];
        if (folder == NULL || stat(folders[i], &status) != 0 || (status.st_mode & 07777) != 0755) {
            gap(folders[i], "mode");
        }
        if (listxattr(folders[i], names, sizeof names) > 0) {
            gap(folders[i], "attributes");
        }
    }
}

static void touch(const char *path)
{
    (void)close(open(path, O_WRONLY | O_CREAT, 0));
}

static void litter(void)
{
    static const char *const folders[] = {"/work", "/tmp", "/dev/shm"};
    for (size_t i = 0; i < 3; i++) {
        (void)chdir(folders[i]);
        touch("file");
        touch(".hidden");
        touch(".sweep-0");
        touch(".sweep-1");
        (void)symlink("/usr", "link");
        (void)mkfifo("pipe", 0600);
        (void)mkdir("empty", 0);
        for (int depth = 0; depth < 3000; depth++) { /* deeper than any path can name */
            (void)mkdir("deep", 0700);
            touch("beside");
            if (chdir("deep") != 0) {
                break;
            }
        }
        (void)chdir(folders[i]);
        (void)setxattr(folders[i], "user.note", "x", 1, 0);
        (void)chmod("deep", 0);
        (void)chmod(folders[i], 0);
    }
    (void)shm_open("/segment", O_CREAT | O_RDWR, 0600);
}

/* A process that has left its parent, its session and its group, and ignores what it can. */
static void detach(void)
{
    if (fork() != 0) {
        return;
    }
    (void)setsid();
    if (fork() != 0) {
        _exit(0);
    }
    for (int i = 1; i < 32; i++) {
        (void)signal(i, SIG_IGN);
    }
    (void)setpgid(0, 0);
    for (;;) {
        (void)pause();
    }
}

_Noreturn static void fork_bomb(void)
{
    for (;;) {
        (void)fork();
    }
}

/* Stops when it is refused, as a well-meant program would. */
static void fork_many(void)
{
    for (int i = 0; i < 100000; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            for (;;) {
                (void)pause();
            }
        }
        if (pid < 0) {
            (void)fprintf(stderr, "fork: %s\n", strerror(errno));
            _exit(3);
        }
    }
}

static char *volatile eaten; /* so that no compiler leaves the writing out */

_Noreturn static void eat_memory(size_t step)
{
    for (;;) {
        char *more = malloc(step);
        if (more == NULL) {
            (void)fprintf(stderr, "Cannot allocate memory\n");
            _exit(4);
        }
        memset(more, 1, step);
        eaten = more;
    }
}

/* Many small ones instead of one large: no limit on a single process sees it. */
_Noreturn static void eat_memory_together(void)
{
    for (int i = 0; i < 12; i++) {
        if (fork() == 0) {
            eaten = malloc(24 << 20);
            memset(eaten, 1, 24 << 20);
            for (;;) {
                (void)pause();
            }
        }
    }
    for (;;) {
        (void)pause();
    }
}

/* Memory that no file of a folder is behind, and that belongs to no process alone. */
_Noreturn static void eat_shared_memory(void)
{
    size_t size = (size_t)192 << 20;
    char *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        _exit(7);
    }
    memset(shared, 1, size);
    for (;;) {
        (void)pause();
    }
}

/* Files that are much larger than the memory limit come and go. */
static void write_and_remove(void)
{
    static char block[65536];
    for (int round = 0; round < 6; round++) {
        const char *name = round % 2 == 0 ? "/work/large" : "/dev/shm/large";
        int file = open(name, O_WRONLY | O_CREAT, 0600);
        for (size_t i = 0; i < (192 << 20) / sizeof block; i++) {
            if (write(file, block, sizeof block) != (ssize_t)sizeof block) {
                gap("write", strerror(errno));
                return;
            }
        }
        (void)close(file);
        (void)unlink(name);
    }
}

static void fork_once(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    if (pid < 0) {
        (void)fprintf(stderr, "fork: %s\n", strerror(errno));
        _exit(3);
    }
    (void)waitpid(pid, NULL, 0);
}

static void fill_disk(const char *path)
{
    static char block[65536];
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    for (;;) {
        if (write(file, block, sizeof block) < 0) {
            (void)fprintf(stderr, "write: %s\n", strerror(errno));
            _exit(5);
        }
    }
}

static void fill_with_files(void)
{
    for (unsigned long i = 0;; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "/tmp/%lu", i);
        if (open(name, O_WRONLY | O_CREAT, 0600) < 0 && errno != EMFILE) {
            _exit(6);
        }
        for (int file = 3; file < 8; file++) {
            (void)close(file);
        }
    }
}

/* Descriptors in flight are counted for the whole user: the other jails must not notice. */
_Noreturn static void put_in_flight(void)
{
    int pairs[64][2];
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(250 * sizeof(int))];
    } control;
    char byte = 0;
    struct iovec vector = {&byte, 1};
    for (size_t i = 0; i < 64; i++) {
        (void)socketpair(AF_UNIX, SOCK_DGRAM, 0, pairs[i]);
    }
    for (size_t i = 0; i < 64 * 8; i++) {
        struct msghdr message = {.msg_iov = &vector,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof control};
        memset(&control, 0, sizeof control);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(250 * sizeof(int));
        (void)sendmsg(pairs[i % 64][0], &message, MSG_DONTWAIT); /* 250 times descriptor 0 */
    }
    (void)close(open("ready", O_WRONLY | O_CREAT, 0600));
    for (;;) {
        (void)pause();
    }
}

static void eat_descriptors(void)
{
    int count = 0;
    while (open("/dev/null", O_RDONLY) >= 0) {
        count++;
    }
    if (errno != EMFILE || count > 1024) {
        gap("descriptors", "without limit");
    }
}

_Noreturn static void spin(void)
{
    for (volatile unsigned long i = 0;; i++) {
    }
}

_Noreturn static void ignore_everything(void)
{
    for (int i = 1; i < 65; i++) {
        (void)signal(i, SIG_IGN);
    }
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    for (;;) {
        (void)pause();
    }
}

/* Outputs that are not what they seem. */
static void false_outputs(const char *secret)
{
    (void)symlink(secret, "link");
    (void)symlink("/usr", "folder-link");
    (void)mkfifo("pipe", 0600);
    (void)mkdir("folder", 0700);
    (void)symlink("/dev/zero", "device");
    touch("unreadable");
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    (void)bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address);
    (void)close(open("plain", O_WRONLY | O_CREAT, 0600));
    (void)truncate("plain", 1 << 20);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    char **rest = argv + (argc > 2 ? 2 : argc);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(mode, "files") == 0) {
        files(rest);
    } else if (strcmp(mode, "system") == 0) {
        system_tree(argv + 2);
    } else if (strcmp(mode, "network") == 0) {
        network(rest);
    } else if (strcmp(mode, "processes") == 0) {
        processes(rest);
    } else if (strcmp(mode, "namespaces") == 0) {
        namespaces();
    } else if (strcmp(mode, "surface") == 0) {
        surface();
    } else if (strcmp(mode, "self") == 0) {
        self();
    } else if (strcmp(mode, "clean") == 0) {
        clean(rest);
    } else if (strcmp(mode, "litter") == 0) {
        litter();
    } else if (strcmp(mode, "detach") == 0) {
        detach();
    } else if (strcmp(mode, "fork-bomb") == 0) {
        fork_bomb();
    } else if (strcmp(mode, "fork-many") == 0) {
        fork_many();
    } else if (strcmp(mode, "memory") == 0) {
        eat_memory(1 << 20);
    } else if (strcmp(mode, "memory-at-once") == 0) {
        eat_memory((size_t)1 << 33);
    } else if (strcmp(mode, "memory-together") == 0) {
        eat_memory_together();
    } else if (strcmp(mode, "memory-shared") == 0) {
        eat_shared_memory();
    } else if (strcmp(mode, "large-files") == 0) {
        write_and_remove();
    } else if (strcmp(mode, "fork-once") == 0) {
        fork_once();
    } else if (strcmp(mode, "disk") == 0) {
        fill_disk(rest[0]);
    } else if (strcmp(mode, "many-files") == 0) {
        fill_with_files();
    } else if (strcmp(mode, "in-flight") == 0) {
        put_in_flight();
    } else if (strcmp(mode, "descriptors") == 0) {
        eat_descriptors();
    } else if (strcmp(mode, "spin") == 0) {
        spin();
    } else if (strcmp(mode, "ignore") == 0) {
        ignore_everything();
    } else if (strcmp(mode, "outputs") == 0) {
        false_outputs(rest[0]);
    } else {
        (void)printf("unknown mode %s\n", mode);
        return 2;
    }
    return gaps == 0 ? 0 : 1;
}
