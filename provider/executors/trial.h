/* provider/executors/trial.h lets a helper program answer one question of the agent in a jail. The
 * jail is made and ended for that. */
#ifndef BOURSE_PROVIDER_EXECUTORS_TRIAL_H
#define BOURSE_PROVIDER_EXECUTORS_TRIAL_H

#include "base/problem.h"
#include "provider/jail/jail.h"
#include "provider/jail/launcher.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TRIAL_SAID_BYTES = 256 << 10 };

/* Runs the words, which end with NULL, for `wall_ns` at most. The spec says what the jail has; its
 * limits are the trial's own. Returns the length of what was printed, or -1 with the problem: that
 * of the jail, or that the `helper` says nothing. */
ssize_t trial_ask(struct launcher *launcher, const struct jail_spec *spec, const char *helper,
                  const char *const *words, uint64_t wall_ns, char ret_said[TRIAL_SAID_BYTES],
                  struct problem *ret_problem);

#endif
