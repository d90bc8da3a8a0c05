/* provider/agent.h runs the agent. The agent connects, offers, and carries out the decisions of its
 * session.
 *
 * One loop on the caller's thread owns the session and the connection. Lanes and transfers report
 * to the loop through a queue and an eventfd. */
#ifndef BOURSE_PROVIDER_AGENT_H
#define BOURSE_PROVIDER_AGENT_H

#include "provider/config.h"
#include "provider/device/discover.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/isolation.h"
#include "provider/jail/launcher.h"
#include "provider/policy.h"
#include "provider/setup.h"
#include "runtime/market.h"

#include <stdbool.h>

/* All pointers are borrowed. */
struct agent_setup {
    struct config *config; /* a reload changes `idle`, `gpu` and `network`, and nothing else */
    const struct market *market;
    const struct identity *identity;
    const struct machine *machine;
    const struct isolation *isolation;
    const struct profile *profile;
    const struct offers *offers;
    const struct setup_options *options; /* by which the config is read again */
    struct launcher *launcher;
    struct cgroups *cgroups;    /* NULL: none */
    struct energy_meter *meter; /* NULL: what the processors use cannot be read */
    const char *worker_path;
    const char *tensor_path; /* NULL: no matrices are computed here */
    const char *kernel_path; /* NULL: no kernels are run here */
    const char *plugin_path; /* NULL: no plug-in is used here */
    int signals;             /* descriptor of process_signals */
};

/* Runs the agent until SIGINT or SIGTERM. Then the agent cancels its asks and gives running work a
 * few seconds to end. After that it cancels the remaining work, delivers results and ends every
 * jail. Returns false with the problem when the agent could not start or had to stop. Sets
 * *ret_refused when the reason is that the broker knows the key as no provider. */
bool agent_run(const struct agent_setup *setup, bool *ret_refused, struct problem *ret_problem);

#endif
