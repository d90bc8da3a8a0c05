/* runtime/condition.h makes conditions of threads whose timed waits use CLOCK_MONOTONIC. */
#ifndef BOURSE_RUNTIME_CONDITION_H
#define BOURSE_RUNTIME_CONDITION_H

#include <pthread.h>

/* Initializes a condition. A wall clock that is set back does not lengthen its timed waits. */
void condition_init(pthread_cond_t *condition);

#endif
