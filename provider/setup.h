/* provider/setup.h - from a command line to a process that is safe to run jobs: the order of start.
 *
 *     as root:  folders given to the service user, a cgroup subtree, the worker's program, then the drop
 *     then:     the folder's lock, the launcher (before any thread), signals, the trial jail, the devices
 *
 * A look (`probe`) goes the same way beside a running agent: it has a lock, a worker and a control
 * group of its own. Nothing here connects anywhere. */
#ifndef BOURSE_PROVIDER_SETUP_H
#define BOURSE_PROVIDER_SETUP_H

#include "protocol/identity.h"
#include "provider/config.h"
#include "provider/device/discover.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/isolation.h"
#include "provider/jail/launcher.h"
#include "provider/policy.h"
#include "runtime/market.h"

#include <stdbool.h>

struct setup_options {
    const char *config_file; /* NULL: provider.yaml in the folder */
    const char *market;      /* NULL; else the folder of a market on this machine */
    const char *folder;      /* NULL: the default, or beside the config, or MARKET/provider */
    bool is_look; /* offers nothing, needs no key and no market, and disturbs no agent of this
                     folder */
};

struct setup {
    struct config config;
    struct market market;      /* unless it is a look */
    struct identity *identity; /* NULL when there is no key yet and none is needed */
    struct machine machine;
    struct isolation isolation;
    struct profile profile;
    struct cgroups *cgroups; /* NULL: none */
    struct launcher *launcher;
    char worker_path[CONFIG_PATH_SIZE + 16];
    char tensor_path[CONFIG_PATH_SIZE +
                     16]; /* "": no matrices are computed here, for this reason: */
    char no_tensor[512];
    char no_cgroups[512]; /* why there are none */
    bool is_look;
    int lock; /* -1: not held */
    int signals;
};

/* The agent's folder, as the options and the environment say. */
bool setup_folder(const struct setup_options *options, char *ret_path, size_t capacity,
                  struct problem *ret_problem);
/* Reads the config only: no root, no jail. */
bool setup_config(const struct setup_options *options, struct config *ret_config,
                  struct problem *ret_problem);
/* The same, and what this host cannot do of it: become a user that it does not have, offer more
 * cores or memory than there are. */
bool setup_fits(const struct setup_options *options, struct problem *ret_problem);
/* The same, and whether a market elsewhere is there: all that a start would refuse. */
bool setup_check(const struct setup_options *options, struct problem *ret_problem);
/* Everything above. On failure nothing is left but folders; setup_end is harmless then. */
bool setup_begin(const struct setup_options *options, struct setup *ret_setup,
                 struct problem *ret_problem);
void setup_end(struct setup *setup);

/* Where an agent lives unless told otherwise: /var/lib/bourse-provider for root and services, else
 * $XDG_DATA_HOME/bourse-provider. */
bool setup_default_folder(char *ret_path, size_t capacity);

#endif
