/* provider/setup.h turns a command line into a process that is safe to run jobs. The order of the
 * start is:
 *
 *     as root:  folders for the service user, a cgroup subtree, the worker's program, then the drop
 *     then:     the folder's lock, the launcher (before any thread), signals, trial jail, devices
 *
 * A look (`probe`) takes the same steps beside a running agent, with a lock, a worker and a control
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
#include <stdio.h>

struct energy_meter;
struct setup_options {
    const char *config_file; /* NULL: provider.yaml in the folder */
    const char *market;      /* NULL; else the folder of a market on this machine */
    /* NULL: the default, or beside the config, or MARKET/provider. */
    const char *folder;
    /* A look offers nothing, needs no key and no market, and disturbs no agent of this folder. */
    bool is_look;
};

struct setup {
    struct config config;
    struct market market;      /* unset for a look */
    struct identity *identity; /* NULL when there is no key yet and none is needed */
    struct machine machine;
    struct isolation isolation;
    struct profile profile;
    struct cgroups *cgroups;    /* NULL: none */
    struct energy_meter *meter; /* NULL: this user may not read what the processors use */
    struct launcher *launcher;
    char worker_path[CONFIG_PATH_SIZE + 16];
    /* An empty path means that no matrices are computed here; no_tensor has the reason. */
    char tensor_path[CONFIG_PATH_SIZE + 16];
    char no_tensor[512];
    /* An empty path means that no kernels are run here; no_kernel has the reason. */
    char kernel_path[CONFIG_PATH_SIZE + 16];
    char no_kernel[512];
    /* An empty path means that no plug-in is used here; no_plugin has the reason. */
    char plugin_path[CONFIG_PATH_SIZE + 16];
    char no_plugin[512];
    /* An empty path means that no WASM modules are run here; no_wasm has the reason. */
    char wasm_path[CONFIG_PATH_SIZE + 16];
    char no_wasm[512];
    /* The same for modules that wasmtime's library runs. */
    char wasm_runner_path[CONFIG_PATH_SIZE + 16];
    char no_wasm_runner[512];
    /* The same for ONNX models. */
    char onnx_path[CONFIG_PATH_SIZE + 16];
    char no_onnx[512];
    char no_cgroups[512]; /* reason why there are no cgroups */
    bool is_look;
    int lock; /* -1: not held */
    int signals;
};

/* Returns the agent's folder, as the options and the environment say. */
bool setup_folder(const struct setup_options *options, char *ret_path, size_t capacity,
                  struct problem *ret_problem);
/* Reads only the config: no root, no jail. */
bool setup_config(const struct setup_options *options, struct config *ret_config,
                  struct problem *ret_problem);
/* Reads the config and checks it against this host. Reasons to fail are a user that the host lacks,
 * and more cores or memory than there are. */
bool setup_fits(const struct setup_options *options, struct problem *ret_problem);
/* Checks all that a start would refuse: setup_fits, and whether a market elsewhere is there. The
 * agent's own market may come later than the config: without it the check succeeds, and the problem
 * says what is missing. Otherwise the problem of a success is empty. A key without effect is no
 * failure: `out` gets a line about the key. */
bool setup_check(const struct setup_options *options, FILE *out, struct problem *ret_problem);
/* Lets every plug-in of the config, and an engine for WASM that the config names, say in a trial
 * jail what they are, and prints that, one line each. The agent's folder stays as it is. Returns
 * false with the first reason when one cannot be used; else the problem stays as it was. */
bool setup_check_trials(const struct setup_options *options, FILE *out,
                        struct problem *ret_problem);
/* Carries out the whole start. On failure nothing is left but folders; setup_end is harmless
 * then. */
bool setup_begin(const struct setup_options *options, struct setup *ret_setup,
                 struct problem *ret_problem);
void setup_end(struct setup *setup);

/* Returns the default folder of an agent. This is /var/lib/bourse-provider for root and services,
 * else $XDG_DATA_HOME/bourse-provider. */
bool setup_default_folder(char *ret_path, size_t capacity);

#endif
