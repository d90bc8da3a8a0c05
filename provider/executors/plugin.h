/* provider/executors/plugin.h runs subtasks that are operations of an owner's plug-in
 * (docs/plugins.md).
 *
 * The functions of executors/program.h run these subtasks, too, and their files go in and out as
 * for a program. The program bourse-plugin speaks with the plug-in, inside the jail of the lane. */
#ifndef BOURSE_PROVIDER_EXECUTORS_PLUGIN_H
#define BOURSE_PROVIDER_EXECUTORS_PLUGIN_H

#include "base/problem.h"
#include "protocol/codec.h"
#include "provider/device/plugin_device.h"
#include "provider/executors/trial.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/jail.h"
#include "provider/jail/launcher.h"

#include <stdbool.h>

/* Returns true when the manifest's subtasks are operations of a plug-in. */
bool plugin_names(const Bourse__V1__Manifest *manifest);
/* Checks the parts of such a manifest that a manifest of programs does not have. Returns false with
 * the reason when the manifest is refused. */
bool plugin_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem);

/* The jail's parts for a plug-in, with the list that they point to. */
struct plugin_parts {
    struct jail_plugin jail;
    const char *nodes[PLUGIN_NODES_MAX + 1];
};
/* Fills the parts, which point into themselves and into the program's struct. */
void plugin_fill(const char *helper_path, const struct plugin_program *program,
                 struct plugin_parts *ret_parts);

/* A trial jail is made of these. */
struct plugin_trial {
    struct launcher *launcher;
    struct cgroups *cgroups; /* NULL: none */
    const char *worker_path;
    const char *helper_path;    /* the installed bourse-plugin */
    const char *const *visible; /* as in struct jail_spec */
    struct trial_stop *stop;    /* NULL: nobody ends the trial early */
};

/* Lets the plug-in say in a trial jail what its device is and does, and notes the answers, or why
 * the device is unusable. The name and the program are set. */
void plugin_look(const struct plugin_trial *trial, struct plugin_device *device);

#endif
