/* provider/executors/noop.h - subtasks that do nothing: the measure of the market itself.
 *
 * A no-op is a subtask like any other (dispatched, run by the worker of the job's own jail, signed,
 * metered, settled, provable) whose program is the worker's answer. Nothing is executed, no file is
 * staged, nothing is left to clean, so several travel to the worker in one packet. */
#ifndef BOURSE_PROVIDER_EXECUTORS_NOOP_H
#define BOURSE_PROVIDER_EXECUTORS_NOOP_H

#include "base/problem.h"
#include "protocol/codec.h"
#include "provider/jail/jail.h"
#include "provider/work/outcome.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether the manifest is one of no-ops. */
bool noop_names(const Bourse__V1__Manifest *manifest);
/* Checks such a manifest once. False: it is refused, with the reason. */
bool noop_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem);

/* Runs `count` (1 to JAIL_NOOPS_MAX) of them and fills their outcomes; the time that passed is
 * shared among them evenly. `ret_jail_ended`: close the jail. */
void noop_run(struct jail *jail, struct outcome *const *outcomes, size_t count,
              bool *ret_jail_ended);

#endif
