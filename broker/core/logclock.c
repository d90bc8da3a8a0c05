#include "broker/core/logclock.h"

struct logclock logclock_from(int64_t last_log_ns, int64_t monotonic_ns)
{
    return (struct logclock){.log_ns = last_log_ns, .monotonic_ns = monotonic_ns};
}

int64_t logclock_now(struct logclock *clock, int64_t monotonic_ns, int64_t wall_ns)
{
    int64_t passed = monotonic_ns - clock->monotonic_ns;
    if (passed <= 0) {
        return clock->log_ns;
    }
    int64_t log = clock->log_ns + passed;
    /* The lean is 1 %, however often the clock is read. Time too short for a nanosecond of lean is
     * kept. */
    int64_t slewing = clock->unslewed_ns + passed;
    int64_t slew = slewing / LOGCLOCK_SLEW_DIVISOR;
    clock->unslewed_ns = slewing % LOGCLOCK_SLEW_DIVISOR;
    if (wall_ns > log) {
        log += wall_ns - log < slew ? wall_ns - log : slew;
    } else {
        log -= log - wall_ns < slew ? log - wall_ns : slew;
    }
    clock->log_ns = log;
    clock->monotonic_ns = monotonic_ns;
    return log;
}

int64_t logclock_stamp(struct logclock *clock, int64_t monotonic_ns, int64_t wall_ns)
{
    int64_t before = clock->log_ns;
    int64_t log = logclock_now(clock, monotonic_ns, wall_ns);
    if (log <= before) {
        clock->log_ns = log = before + 1;
    }
    return log;
}
