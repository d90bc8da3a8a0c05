/* runtime/condition.h makes conditions of threads whose timed waits use CLOCK_MONOTONIC. */
#ifndef BOURSE_RUNTIME_CONDITION_H
#define BOURSE_RUNTIME_CONDITION_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Initializes a condition. A wall clock that is set back does not lengthen its timed waits. */
void condition_init(pthread_cond_t *condition);
/* Returns the time `timeout_ns` (0 or more) from now, for pthread_cond_timedwait on such a
 * condition. */
struct timespec condition_deadline(int64_t timeout_ns);
/* Waits for at most `timeout_ns` nanoseconds. The caller holds the mutex, and looks by itself at
 * what has changed: the wait may end early. */
void condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t timeout_ns);

#endif
