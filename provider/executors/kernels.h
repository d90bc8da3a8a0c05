/* provider/executors/kernels.h asks the machine, at a start, which devices for kernels it has, and
 * tries those that the config offers. An agent goes on without a device that cannot be used. */
#ifndef BOURSE_PROVIDER_EXECUTORS_KERNELS_H
#define BOURSE_PROVIDER_EXECUTORS_KERNELS_H

#include "provider/config.h"
#include "provider/device/discover.h"
#include "provider/executors/kernel.h"

#include <stdbool.h>

/* Fills machine->kernel_devices for each interface of which the config offers a device, and for all
 * when `is_look` says to list them.
 * `why_not` is the reason why no kernels can be run here; "" when they can. Returns false only when
 * the config names a device that is none of those there are; the problem lists them. */
bool kernels_learn(const struct config *config, const struct kernel_trial *trial,
                   const char *why_not, bool is_look, struct machine *machine,
                   struct problem *ret_problem);

/* Logs one line for each device for kernels of the config that is not offered or computes no
 * matrices, and what computes the matrices of CUDA devices. */
void kernels_warn(const struct config *config, const struct machine *machine);

#endif
