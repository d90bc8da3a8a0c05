/* broker/core/logclock.h - log time: the only time the exchange knows (docs/decisions.md D4).
 *
 * It continues from the last log time in the journal, runs at the rate of CLOCK_MONOTONIC, and
 * leans towards the wall clock by at most 1 %: a wall clock that jumps expires nothing. Clocks are
 * arguments. */
#ifndef BOURSE_BROKER_CORE_LOGCLOCK_H
#define BOURSE_BROKER_CORE_LOGCLOCK_H

#include <stdint.h>

enum { LOGCLOCK_SLEW_DIVISOR = 100 }; /* 1 % */

struct logclock {
    int64_t log_ns;       /* log time ... */
    int64_t monotonic_ns; /* ... at this moment */
    int64_t unslewed_ns;  /* time that passed and has not yet earned a nanosecond of slew */
};

struct logclock logclock_from(int64_t last_log_ns, int64_t monotonic_ns);
/* Log time now; never goes back. */
int64_t logclock_now(struct logclock *clock, int64_t monotonic_ns, int64_t wall_ns);
/* The same for a command: later than every stamp before. */
int64_t logclock_stamp(struct logclock *clock, int64_t monotonic_ns, int64_t wall_ns);

#endif
