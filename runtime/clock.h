/* runtime/clock.h reads the clocks and the random numbers of the outside world. Pure rooms take
 * them as arguments. */
#ifndef BOURSE_RUNTIME_CLOCK_H
#define BOURSE_RUNTIME_CLOCK_H

#include "base/id.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

int64_t clock_monotonic_ns(void); /* CLOCK_MONOTONIC */
int64_t clock_wall_ns(void);      /* CLOCK_REALTIME; beyond 1677 and 2262 the end of the range */

/* Initializes a condition whose timed waits use CLOCK_MONOTONIC, so that a wall clock that is set
 * back does not lengthen them. */
void condition_init(pthread_cond_t *condition);

/* Returns bytes of libsodium's generator; process_start has been called before. */
void entropy_bytes(void *ret_bytes, size_t length);
struct id128 entropy_id(void); /* random, never zero */
uint64_t entropy_u64(void);

#endif
