#include "broker/rights.h"

#include "runtime/capability.h"
#include "runtime/log.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns the first port that needs no capability: 1024, unless the machine is set up otherwise. */
static long first_free_port(void)
{
    char line[32] = "";
    long port = 1024;
    FILE *file = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");
    if (file != NULL) {
        if (fgets(line, sizeof line, file) != NULL) {
            port = strtol(line, NULL, 10);
        }
        (void)fclose(file); /* read only */
    }
    return port;
}

/* A port that the system chooses, `*`, is a high one. */
static bool is_low(const char *endpoint)
{
    const char *colon = strrchr(endpoint, ':');
    const long port = colon != NULL ? strtol(colon + 1, NULL, 10) : 0;
    return port > 0 && port < first_free_port();
}

bool rights_reduce(const struct broker_config *config, gid_t group, struct problem *ret_problem)
{
    const bool binds_low = is_low(config->listen) || is_low(config->blob_listen);
    char standing[160];
    /* An owner may give its files to its own groups without any capability. */
    if (geteuid() == 0 && setgroups(1, &group) != 0 && errno != EPERM) {
        problem_set(ret_problem, "the groups of root cannot be given up: %s", strerror(errno));
        return false;
    }
    if (!capability_renounce(binds_low ? CAPABILITY_BIND_PORTS : 0, ret_problem)) {
        return false;
    }
    if (capability_standing(getpid(), standing, sizeof standing)) {
        log_info("running as %s", standing);
    }
    return true;
}
