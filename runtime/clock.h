/* runtime/clock.h reads the clocks of the outside world. Pure rooms take times as arguments. */
#ifndef BOURSE_RUNTIME_CLOCK_H
#define BOURSE_RUNTIME_CLOCK_H

#include <stdint.h>

int64_t clock_monotonic_ns(void); /* CLOCK_MONOTONIC */
int64_t clock_wall_ns(void);      /* CLOCK_REALTIME; beyond 1677 and 2262 the end of the range */

#endif
