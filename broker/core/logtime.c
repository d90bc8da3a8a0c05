#include "broker/core/logtime.h"

#include "broker/core/logclock.h"
#include "runtime/clock.h"

#include <pthread.h>
#include <stdlib.h>

struct logtime {
    pthread_mutex_t mutex;
    struct logclock clock;
};

struct logtime *logtime_create(int64_t last_log_ns)
{
    struct logtime *logtime = malloc(sizeof *logtime);
    if (logtime != NULL) {
        (void)pthread_mutex_init(&logtime->mutex, NULL); /* cannot fail with these attributes */
        logtime->clock = logclock_from(last_log_ns, clock_monotonic_ns());
    }
    return logtime;
}

void logtime_destroy(struct logtime **self)
{
    if (*self != NULL) {
        (void)pthread_mutex_destroy(&(*self)->mutex); /* nobody holds it any more */
        free(*self);
        *self = NULL;
    }
}

int64_t logtime_now(struct logtime *logtime)
{
    (void)pthread_mutex_lock(&logtime->mutex); /* cannot fail: private, not recursive */
    int64_t now = logclock_now(&logtime->clock, clock_monotonic_ns(), clock_wall_ns());
    (void)pthread_mutex_unlock(&logtime->mutex);
    return now;
}

int64_t logtime_stamp(struct logtime *logtime)
{
    (void)pthread_mutex_lock(&logtime->mutex);
    int64_t stamp = logclock_stamp(&logtime->clock, clock_monotonic_ns(), clock_wall_ns());
    (void)pthread_mutex_unlock(&logtime->mutex);
    return stamp;
}
