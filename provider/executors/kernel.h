/* provider/executors/kernel.h runs subtasks that are kernels (formats/kernel/kernel_op.h).
 *
 * executors/program.h runs these subtasks, too, and their files go in and out as for a program. The
 * program bourse-kernel compiles and runs them in the jail of their lane. The agent loads no
 * library of OpenCL or CUDA, and reads no source. */
#ifndef BOURSE_PROVIDER_EXECUTORS_KERNEL_H
#define BOURSE_PROVIDER_EXECUTORS_KERNEL_H

#include "base/problem.h"
#include "protocol/codec.h"
#include "provider/device/kernel_device.h"
#include "provider/jail/cgroup.h"
#include "provider/jail/jail.h"
#include "provider/jail/launcher.h"

#include <stdbool.h>

/* Returns true when the manifest's subtasks are kernels. */
bool kernel_names(const Bourse__V1__Manifest *manifest);
/* Checks the parts of a manifest of kernels that a manifest of programs does not have. Returns
 * false with the reason when the manifest is refused. */
bool kernel_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem);

/* Returns what the jail of a kernel on this device has; NULL: what a jail for the list has. */
struct jail_kernel kernel_jail(const char *kernel_path, const struct kernel_device *device);

/* A trial jail is made of these. */
struct kernel_trial {
    struct launcher *launcher;
    struct cgroups *cgroups; /* NULL: none */
    const char *worker_path;
    const char *kernel_path;    /* the installed bourse-kernel */
    const cpu_set_t *cpus;      /* NULL: any */
    const char *const *visible; /* as in struct jail_spec */
    struct trial_stop *stop;    /* NULL: nobody ends the trial early */
};

/* Lets bourse-kernel list the devices of one interface, for ten seconds at most. A machine without
 * devices, and a library that crashes or hangs, give an empty list with the problem. */
void kernel_list(const struct kernel_trial *trial, enum kernel_api api,
                 struct kernel_device_list *ret_list);
/* Lets bourse-kernel measure one device in a jail like those of jobs, and notes the figures. Notes
 * why the device cannot be used when it does not run there. */
void kernel_measure(const struct kernel_trial *trial, struct kernel_device *device);

#endif
