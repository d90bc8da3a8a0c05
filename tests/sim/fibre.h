/* tests/sim/fibre.h - the broker's threads as fibres of one thread, so that the broker's own loops
 * run unchanged under the virtual clock: a fibre runs until it waits, and the dice decide who goes
 * on when. */
#ifndef BOURSE_TESTS_SIM_FIBRE_H
#define BOURSE_TESTS_SIM_FIBRE_H

#include "tests/sim/world.h"

struct fibre;

/* A new fibre of the present process; it begins soon. */
struct fibre *fibre_create(void *(*run)(void *), void *argument);
/* A name that no other fibre has or will have. */
uint64_t fibre_name(const struct fibre *fibre);
/* Returns true until the fibre of that name has returned, or its process has ended. */
bool fibre_runs(uint64_t name);
/* The one that runs; NULL outside of any. */
struct fibre *fibre_current(void);
/* Waits until fibre_wake, or for `timeout_ns` (INT64_MAX: for ever). */
void fibre_wait(int64_t timeout_ns);
void fibre_wake(struct fibre *fibre); /* may be NULL; of one that does not wait: nothing */
/* The process of this fibre ends here and now: never returns. */
_Noreturn void fibre_abandon(void);
/* Gives back the fibres of a process that has ended. */
void fibres_end(const struct process *process);

#endif
