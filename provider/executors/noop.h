/* provider/executors/noop.h runs subtasks that do nothing, which measure the market itself.
 *
 * A no-op is a subtask like any other: dispatched, run in the job's own jail, signed, metered,
 * settled, provable. Its program is the worker's answer. Nothing is executed, no file is staged,
 * nothing needs cleaning, so one packet carries several no-ops to the worker. */
#ifndef BOURSE_PROVIDER_EXECUTORS_NOOP_H
#define BOURSE_PROVIDER_EXECUTORS_NOOP_H

#include "base/problem.h"
#include "protocol/codec.h"
#include "provider/jail/jail.h"
#include "provider/work/outcome.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns true when the manifest's subtasks are no-ops. */
bool noop_names(const Bourse__V1__Manifest *manifest);
/* Checks a manifest of no-ops once. Returns false with the reason when the manifest is refused. */
bool noop_check(const Bourse__V1__Manifest *manifest, struct problem *ret_problem);

/* Runs `count` no-ops (1 to JAIL_NOOPS_MAX) and fills their outcomes. The no-ops share the elapsed
 * time evenly. If *ret_jail_ended is set, the caller must close the jail. */
void noop_run(struct jail *jail, struct outcome *const *outcomes, size_t count,
              bool *ret_jail_ended);

#endif
