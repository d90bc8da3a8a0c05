#include "provider/jail/isolation.h"

#include "provider/jail/jail_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static __attribute__((format(printf, 2, 3))) void warn(struct isolation *isolation,
                                                       const char *format, ...)
{
    if (isolation->warning_count < ISOLATION_WARNINGS) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(isolation->warnings[isolation->warning_count++],
                        sizeof isolation->warnings[0], format, arguments);
        va_end(arguments);
    }
}

static void warn_of_gaps(struct isolation *isolation)
{
    if (!isolation->memory_enforced) {
        warn(isolation,
             "no memory control group: memory is limited per process and watched, best effort "
             "(start as root, or systemd Delegate=yes)");
    }
    if (!isolation->processes_enforced) {
        warn(isolation, "no pids control group: RLIMIT_NPROC limits processes");
    }
    if (!isolation->cpu_enforced) {
        warn(isolation, "no cpu control group: the CPU set alone limits processors");
    }
    if (isolation->landlock_abi == 0) {
        warn(isolation,
             "no Landlock (or below ABI 2): the jail's own mounts hide the host's files");
    }
}

/* Returns advice for the owner about bwrap's most usual complaints. */
static const char *advice(const char *complaint)
{
    if (strstr(complaint, "uid map") != NULL || strstr(complaint, "namespace") != NULL) {
        return " - allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 and "
               "user.max_user_namespaces above 0, or an AppArmor profile for bwrap";
    }
    if (strstr(complaint, "proc") != NULL) {
        return " - in a container, start it so that /proc is not masked";
    }
    return "";
}

void isolation_probe(struct launcher *launcher, const char *worker_path, struct cgroups *cgroups,
                     struct isolation *ret_isolation)
{
    static const char *const program[] = {"true", NULL};
    *ret_isolation = (struct isolation){0};
    struct jail_spec spec = {.worker_path = worker_path,
                             .name = "probe",
                             .limits = {.memory_bytes = UINT64_C(64) << 20,
                                        .disk_bytes = UINT64_C(16) << 20,
                                        .processes = 16,
                                        .cpu_milli = 1000},
                             .cgroups = cgroups};
    struct jail *jail = NULL;
    struct problem problem;
    if (!jail_open(launcher, &spec, &jail, &problem)) {
        (void)snprintf(ret_isolation->refusal, sizeof ret_isolation->refusal, "%.280s%s",
                       problem.text, advice(problem.text));
        return;
    }
    /* jail_open succeeds only with these layers. */
    ret_isolation->namespaces = true;
    ret_isolation->seccomp = true;
    ret_isolation->landlock_abi = jail_landlock_abi(jail);
    struct jail_request request = {
        .argv = program, .stdin_fd = -1, .wall_ns = UINT64_C(10000000000)};
    struct jail_reply reply;
    jail_run(jail, &request, &reply);
    if (reply.outcome == OUTCOME_OK) {
        ret_isolation->level = 1;
    } else {
        (void)snprintf(ret_isolation->refusal, sizeof ret_isolation->refusal,
                       "a trial program did not run in the jail: %.400s", reply.detail);
    }
    jail_reply_fini(&reply);
    jail_close(&jail);
    if (cgroups != NULL) {
        ret_isolation->cgroup_version = cgroups_version(cgroups);
        ret_isolation->memory_enforced = cgroups_memory(cgroups);
        ret_isolation->processes_enforced = cgroups_processes(cgroups);
        ret_isolation->cpu_enforced = cgroups_cpu(cgroups);
    }
    warn_of_gaps(ret_isolation);
}
