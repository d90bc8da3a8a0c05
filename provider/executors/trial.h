/* provider/executors/trial.h lets a helper program answer one question of the agent in a jail. The
 * jail is made and ended for that. */
#ifndef BOURSE_PROVIDER_EXECUTORS_TRIAL_H
#define BOURSE_PROVIDER_EXECUTORS_TRIAL_H

#include "base/problem.h"
#include "provider/jail/jail.h"
#include "provider/jail/launcher.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TRIAL_SAID_BYTES = 256 << 10 };
#define TRIAL_MEMORY_BYTES (UINT64_C(1) << 30)

/* Ends a trial from another thread. */
struct trial_stop {
    pthread_mutex_t mutex;
    bool is_stopped;   /* no trial begins any more */
    struct jail *jail; /* of the trial that runs; NULL: none does */
};
void trial_stop_init(struct trial_stop *stop);
void trial_stop_fini(struct trial_stop *stop);
/* Ends the trial that runs with this `stop`, and each later one as it begins. */
void trial_stop_all(struct trial_stop *stop);

/* Runs the words, which end with NULL, for `wall_ns` at most. The spec says what the jail has; its
 * limits are the trial's own. Returns the length of what was printed, or -1 with the problem. The
 * problem is the jail's, with the last line of standard error, or that the `helper` printed
 * nothing. A jail without a resident runs the words as a program. `stop` may end the trial; NULL:
 * nobody does. */
ssize_t trial_ask(struct launcher *launcher, const struct jail_spec *spec, const char *helper,
                  const char *const *words, uint64_t wall_ns, char ret_said[TRIAL_SAID_BYTES],
                  struct trial_stop *stop, struct problem *ret_problem);

/* Writes the last line of the run's standard error that says more than the reply's detail, without
 * what could upset a terminal. Writes "" when there is none. */
void trial_last_line(const struct jail_reply *reply, char *ret_text, size_t capacity);

#endif
