/* provider/agent.h - the running agent: connects, offers, and carries out what its session decides.
 *
 * One loop on the caller's thread owns the session and the connection; lanes and transfers report
 * to it through a queue and an eventfd. */
#ifndef BOURSE_PROVIDER_AGENT_H
#define BOURSE_PROVIDER_AGENT_H

#include "provider/config.h"
#include "provider/device/discover.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/isolation.h"
#include "provider/jail/launcher.h"
#include "provider/policy.h"
#include "runtime/market.h"

#include <stdbool.h>

struct agent_setup { /* all borrowed */
    const struct config *config;
    const struct market *market;
    const struct identity *identity;
    const struct machine *machine;
    const struct isolation *isolation;
    const struct offers *offers;
    struct launcher *launcher;
    struct cgroups *cgroups; /* NULL: none */
    const char *worker_path;
    const char *tensor_path; /* NULL: no matrices are computed here */
    int signals;             /* of process_signals */
};

/* Runs until SIGINT or SIGTERM: then asks are cancelled, work may end for a few seconds, what is
 * left is cancelled, results are delivered, and every jail is gone. False with the problem when it
 * could not start or had to stop; *ret_refused when that is because the broker knows the key as no
 * provider. */
bool agent_run(const struct agent_setup *setup, bool *ret_refused, struct problem *ret_problem);

#endif
