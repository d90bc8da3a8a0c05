/* provider/executors/retrial.h runs the trial of a device again, on a thread of its own. The device
 * passed the same trial when the agent started. A device for kernels is measured, a plug-in says
 * what its device is, and cores run a program in a jail. One device is tried at a time. */
#ifndef BOURSE_PROVIDER_EXECUTORS_RETRIAL_H
#define BOURSE_PROVIDER_EXECUTORS_RETRIAL_H

#include "base/problem.h"
#include "provider/config.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/launcher.h"
#include "provider/policy.h"

#include <stdbool.h>
#include <stddef.h>

struct retrial;

/* All pointers are borrowed for as long as the struct retrial lives. */
struct retrial_config {
    struct launcher *launcher;
    struct cgroups *cgroups; /* NULL: none */
    const char *worker_path;
    const char *kernel_path; /* the installed bourse-kernel; NULL: there is none */
    const char *plugin_path; /* the installed bourse-plugin; NULL: there is none */
    const struct config *config;
    void (*done)(void *context); /* from the other thread: retrial_take has an answer */
    void *context;
};

/* Returns NULL when memory is short. */
struct retrial *retrial_create(const struct retrial_config *config);
/* Ends the trial that runs, and waits for its end. */
void retrial_destroy(struct retrial **self);

/* Begins the trial of the offer's device; `number` is the offer's, for retrial_take. Returns false
 * when another trial runs or there is no thread. */
bool retrial_begin(struct retrial *retrial, size_t number, const struct offer *offer);
/* Returns true with the trial that ended. *ret_problem is "" for a trial that passed. */
bool retrial_take(struct retrial *retrial, size_t *ret_number, struct problem *ret_problem);

#endif
