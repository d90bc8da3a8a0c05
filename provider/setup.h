/* provider/setup.h - from a command line to a process that is safe to run jobs: the order of start.
 *
 *     as root:  folders given to the service user, a cgroup subtree, the worker's program, then the drop
 *     then:     the folder's lock, the launcher (before any thread), signals, the trial jail, the devices
 *
 * Nothing here connects anywhere. */
#ifndef BOURSE_PROVIDER_SETUP_H
#define BOURSE_PROVIDER_SETUP_H

#include "protocol/identity.h"
#include "provider/cgroup.h"
#include "provider/config.h"
#include "provider/discover.h"
#include "provider/isolation.h"
#include "provider/launcher.h"
#include "provider/policy.h"
#include "runtime/market.h"

#include <stdbool.h>

struct setup_options {
    const char *config_file; /* NULL: provider.yaml in the folder */
    const char *market;      /* NULL; else the folder of a market on this machine */
    const char *folder;      /* NULL: the default, or beside the config, or MARKET/provider */
    bool needs_market;       /* key and market.yaml must be there */
};

struct setup {
    struct config config;
    struct market market;      /* when needs_market */
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
    int lock;
    int signals;
};

/* The agent's folder, as the options and the environment say. */
bool setup_folder(const struct setup_options *options, char *ret_path, size_t capacity,
                  struct problem *ret_problem);
/* Reads the config only: no root, no jail. */
bool setup_config(const struct setup_options *options, struct config *ret_config,
                  struct problem *ret_problem);
/* The same, and what a start would refuse of it: a user that this host does not have, a market elsewhere that is not there. */
bool setup_check(const struct setup_options *options, struct problem *ret_problem);
/* Everything above. On failure nothing is left but folders; setup_end is harmless then. */
bool setup_begin(const struct setup_options *options, struct setup *ret_setup,
                 struct problem *ret_problem);
void setup_end(struct setup *setup);

/* Where an agent lives unless told otherwise: /var/lib/bourse-provider for root and services, else
 * $XDG_DATA_HOME/bourse-provider. */
bool setup_default_folder(char *ret_path, size_t capacity);

#endif
