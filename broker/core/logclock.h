/* Log time is the only time that the exchange knows (docs/decisions.md D4).
 *
 * Log time continues from the last log time in the journal and runs at the rate of CLOCK_MONOTONIC.
 * It leans towards the wall clock by at most 1 %, so a wall clock that jumps expires nothing.
 * Clocks are arguments. */
#ifndef BOURSE_BROKER_CORE_LOGCLOCK_H
#define BOURSE_BROKER_CORE_LOGCLOCK_H

#include <stdint.h>

enum { LOGCLOCK_SLEW_DIVISOR = 100 }; /* 1 % */

struct logclock {
    int64_t log_ns;       /* log time at `monotonic_ns` */
    int64_t monotonic_ns; /* CLOCK_MONOTONIC at the last reading */
    /* Time that has passed but does not yet give a whole nanosecond of slew. */
    int64_t unslewed_ns;
};

struct logclock logclock_from(int64_t last_log_ns, int64_t monotonic_ns);
/* Returns log time now; it never goes back. */
int64_t logclock_now(struct logclock *clock, int64_t monotonic_ns, int64_t wall_ns);
/* Returns a log time for a command, later than every stamp before. */
int64_t logclock_stamp(struct logclock *clock, int64_t monotonic_ns, int64_t wall_ns);

#endif
