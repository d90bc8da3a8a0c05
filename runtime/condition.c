#include "runtime/condition.h"

#include "base/checked.h"

void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct timespec condition_deadline(int64_t timeout_ns)
{
    struct timespec deadline;
    (void)clock_gettime(CLOCK_MONOTONIC, &deadline); /* cannot fail for this clock */
    deadline.tv_sec += timeout_ns / NS_PER_S;
    deadline.tv_nsec += timeout_ns % NS_PER_S;
    if (deadline.tv_nsec >= NS_PER_S) {
        deadline.tv_sec++;
        deadline.tv_nsec -= NS_PER_S;
    }
    return deadline;
}

void condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t timeout_ns)
{
    const struct timespec deadline = condition_deadline(timeout_ns);
    (void)pthread_cond_timedwait(condition, mutex, &deadline); /* the caller looks again */
}
