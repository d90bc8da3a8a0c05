#include "runtime/clock.h"

#include "base/checked.h"

#include <assert.h>
#include <sodium.h>
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

void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

void entropy_bytes(void *ret_bytes, size_t length)
{
    randombytes_buf(ret_bytes, length);
}

struct id128 entropy_id(void)
{
    struct id128 id;
    do {
        randombytes_buf(id.bytes, sizeof id.bytes);
    } while (id128_is_zero(&id));
    return id;
}

uint64_t entropy_u64(void)
{
    uint64_t value;
    randombytes_buf(&value, sizeof value);
    return value;
}
