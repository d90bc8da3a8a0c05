#include "runtime/clock.h"

#include "base/checked.h"

#include <assert.h>
#include <time.h>

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    int status = clock_gettime(clock, &now);
    assert(status == 0);
    (void)status;
    /* Times beyond 1677 and 2262 do not fit, and become the end of the range. */
    int64_t ns = now.tv_sec < 0 ? INT64_MIN : INT64_MAX;
    if (checked_mul((int64_t)now.tv_sec, NS_PER_S, &ns)) {
        (void)checked_add(ns, now.tv_nsec, &ns);
    }
    return ns;
}

int64_t clock_monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t clock_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}
