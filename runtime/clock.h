/* runtime/clock.h - the clocks and the dice of the outside world. Cores take them as arguments. */
#ifndef BOURSE_RUNTIME_CLOCK_H
#define BOURSE_RUNTIME_CLOCK_H

#include "base/id.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

int64_t clock_monotonic_ns(void); /* CLOCK_MONOTONIC */
int64_t clock_wall_ns(void);      /* CLOCK_REALTIME; the end of the range beyond 1677 and 2262 */

/* A condition whose timed waits are by CLOCK_MONOTONIC: a wall clock that is set back must not make
 * them longer. */
void condition_init(pthread_cond_t *condition);

/* libsodium's generator; runtime_start has been called. */
void entropy_bytes(void *ret_bytes, size_t length);
struct id128 entropy_id(void); /* random, never zero */
uint64_t entropy_u64(void);

#endif
