#include "provider/jail/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOW_HALF UINT64_C(0xffffffff)

enum { CALL_LAST_KNOWN = 450 }; /* set_mempolicy_home_node, Linux 5.17; same everywhere */

struct denial {
    const char *call; /* a name that this architecture lacks is skipped */
    int error;
};

static const struct denial denials[] = {
    /* These calls change namespaces, mounts or roots. */
    {"unshare", EPERM},
    {"setns", EPERM},
    {"mount", EPERM},
    {"umount", EPERM},
    {"umount2", EPERM},
    {"pivot_root", EPERM},
    {"chroot", EPERM},
    {"open_tree", EPERM},
    {"move_mount", EPERM},
    {"fsopen", EPERM},
    {"fsconfig", EPERM},
    {"fsmount", EPERM},
    {"fspick", EPERM},
    {"mount_setattr", EPERM},
    /* The flags of clone3 are in memory, where a filter cannot see them; libc uses clone then. */
    {"clone3", ENOSYS},
    /* These calls reach into other processes. */
    {"ptrace", EPERM},
    {"process_vm_readv", EPERM},
    {"process_vm_writev", EPERM},
    {"process_madvise", EPERM},
    {"pidfd_getfd", EPERM},
    {"kcmp", EPERM},
    {"move_pages", EPERM},
    {"migrate_pages", EPERM},
    {"sched_setaffinity", EPERM}, /* the job may not widen the jail's CPU set */
    /* These calls are wide kernel surface that no job needs. */
    {"io_uring_setup", ENOSYS},
    {"io_uring_enter", ENOSYS},
    {"io_uring_register", ENOSYS},
    {"bpf", EPERM},
    {"perf_event_open", EPERM},
    {"userfaultfd", EPERM},
    {"fanotify_init", EPERM},
    {"fanotify_mark", EPERM},
    {"name_to_handle_at", EPERM},
    {"open_by_handle_at", EPERM},
    {"lookup_dcookie", EPERM},
    {"memfd_secret", ENOSYS},
    {"vmsplice", EPERM},
    {"remap_file_pages", EPERM},
    {"modify_ldt", EPERM},
    {"uselib", EPERM},
    {"nfsservctl", ENOSYS},
    {"_sysctl", ENOSYS},
    {"sysfs", ENOSYS},
    {"ustat", ENOSYS},
    /* Keys are not in a namespace. */
    {"add_key", EPERM},
    {"request_key", EPERM},
    {"keyctl", EPERM},
    /* These calls make memory and messages that would outlive a subtask. */
    {"shmget", ENOSYS},
    {"shmat", ENOSYS},
    {"shmctl", ENOSYS},
    {"shmdt", ENOSYS},
    {"msgget", ENOSYS},
    {"msgsnd", ENOSYS},
    {"msgrcv", ENOSYS},
    {"msgctl", ENOSYS},
    {"semget", ENOSYS},
    {"semop", ENOSYS},
    {"semtimedop", ENOSYS},
    {"semctl", ENOSYS},
    {"mq_open", ENOSYS},
    {"mq_unlink", ENOSYS},
    /* These calls administer the machine. */
    {"acct", EPERM},
    {"swapon", EPERM},
    {"swapoff", EPERM},
    {"reboot", EPERM},
    {"kexec_load", EPERM},
    {"kexec_file_load", EPERM},
    {"init_module", EPERM},
    {"finit_module", EPERM},
    {"delete_module", EPERM},
    {"create_module", EPERM},
    {"query_module", EPERM},
    {"get_kernel_syms", EPERM},
    {"quotactl", EPERM},
    {"quotactl_fd", EPERM},
    {"syslog", EPERM},
    {"vhangup", EPERM},
    {"vm86", EPERM},
    {"vm86old", EPERM},
    {"iopl", EPERM},
    {"ioperm", EPERM},
    {"settimeofday", EPERM},
    {"clock_settime", EPERM},
    {"clock_adjtime", EPERM},
    {"adjtimex", EPERM},
    {"stime", EPERM},
    {"sethostname", EPERM},
    {"setdomainname", EPERM},
};

/* Denies `name` when all `count` comparisons hold. */
static int deny(scmp_filter_ctx filter, const char *name, int error,
                const struct scmp_arg_cmp *compare, unsigned count)
{
    int call = seccomp_syscall_resolve_name(name);
    if (call < 0) {
        return 0; /* unknown to this architecture, or above the last known */
    }
    return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((uint16_t)error), call, count, compare);
}

static int deny_by_argument(scmp_filter_ctx filter)
{
    static const unsigned long terminal[] = {TIOCSTI, 0x541c /* TIOCLINUX */};
    for (size_t i = 0; i < sizeof terminal / sizeof *terminal; i++) {
        struct scmp_arg_cmp request = SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_HALF, terminal[i]);
        int error = deny(filter, "ioctl", EPERM, &request, 1);
        if (error != 0) {
            return error;
        }
    }
    struct scmp_arg_cmp namespaces = SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER);
    struct scmp_arg_cmp not_local = SCMP_A0(SCMP_CMP_NE, AF_UNIX, 0);
    struct scmp_arg_cmp not_default = SCMP_A0(SCMP_CMP_NE, 0, 0);
    struct scmp_arg_cmp not_self = SCMP_A0(SCMP_CMP_NE, 0, 0);
    int error = deny(filter, "clone", EPERM, &namespaces, 1);
    error = error != 0 ? error : deny(filter, "socket", EAFNOSUPPORT, &not_local, 1);
    error = error != 0 ? error : deny(filter, "socketpair", EAFNOSUPPORT, &not_local, 1);
    error = error != 0 ? error : deny(filter, "personality", EPERM, &not_default, 1);
    /* prlimit checks only the user, and process 1 has the same user. */
    error = error != 0 ? error : deny(filter, "prlimit64", EPERM, &not_self, 1);
    /* The launcher set one byte. At any other value, even 0, the kernel would hand a crash to the
     * host's dump handler. */
    struct scmp_arg_cmp core[] = {SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_HALF, RLIMIT_CORE),
                                  SCMP_A2(SCMP_CMP_NE, 0, 0)};
    struct scmp_arg_cmp old_core = SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_HALF, RLIMIT_CORE);
    error = error != 0 ? error : deny(filter, "prlimit64", EPERM, core, 2);
    return error != 0 ? error : deny(filter, "setrlimit", EPERM, &old_core, 1);
}

static int add_rules(scmp_filter_ctx filter, bool memory_files)
{
    /* A program of another architecture has other call numbers, so none may run. */
    int error = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    /* A binary tree keeps the cost per call of a long list small. */
    error = error != 0 ? error : seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    for (size_t i = 0; error == 0 && i < sizeof denials / sizeof *denials; i++) {
        error = deny(filter, denials[i].call, denials[i].error, NULL, 0);
    }
    error = error != 0 ? error : deny_by_argument(filter);
    if (error == 0 && !memory_files) {
        error = deny(filter, "memfd_create", ENOSYS, NULL, 0);
    }
    return error;
}

/* Writes the rule that libseccomp cannot express: every number above the last known one gets
 * ENOSYS. The library's program follows. Its jumps are relative, so the prefix does no harm. The
 * library's program checks the architecture. */
static bool write_range(int file)
{
    const struct sock_filter range[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, CALL_LAST_KNOWN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    };
    return write(file, range, sizeof range) == (ssize_t)sizeof range;
}

int seccomp_profile(bool memory_files, struct problem *ret_problem)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int file = memfd_create("filter", MFD_CLOEXEC);
    int error = filter == NULL || file < 0 ? -ENOMEM : add_rules(filter, memory_files);
    if (error == 0 && !write_range(file)) {
        error = -errno;
    }
    error = error != 0 ? error : seccomp_export_bpf(filter, file);
    if (error == 0 && lseek(file, 0, SEEK_SET) != 0) {
        error = -errno;
    }
    seccomp_release(filter);
    if (error != 0) {
        problem_set(ret_problem, "cannot build the system-call filter: %s", strerror(-error));
        if (file >= 0) {
            (void)close(file);
        }
        return -1;
    }
    return file;
}
