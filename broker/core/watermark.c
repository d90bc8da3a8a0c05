#include "broker/core/watermark.h"

#include "runtime/condition.h"

#include <errno.h>

void watermark_init(struct watermark *watermark, uint64_t value)
{
    watermark->value = value;
    pthread_mutex_init(&watermark->mutex, NULL);
    condition_init(&watermark->raised);
}

void watermark_fini(struct watermark *watermark)
{
    pthread_cond_destroy(&watermark->raised);
    pthread_mutex_destroy(&watermark->mutex);
}

void watermark_raise(struct watermark *watermark, uint64_t value)
{
    pthread_mutex_lock(&watermark->mutex);
    if (value > watermark->value) {
        watermark->value = value;
        pthread_cond_broadcast(&watermark->raised);
    }
    pthread_mutex_unlock(&watermark->mutex);
}

uint64_t watermark_value(struct watermark *watermark)
{
    pthread_mutex_lock(&watermark->mutex);
    const uint64_t value = watermark->value;
    pthread_mutex_unlock(&watermark->mutex);
    return value;
}

void watermark_wait(struct watermark *watermark, uint64_t value)
{
    pthread_mutex_lock(&watermark->mutex);
    while (watermark->value < value) {
        pthread_cond_wait(&watermark->raised, &watermark->mutex);
    }
    pthread_mutex_unlock(&watermark->mutex);
}

bool watermark_wait_for(struct watermark *watermark, uint64_t value, int64_t timeout_ns)
{
    const struct timespec deadline = condition_deadline(timeout_ns);
    int waited = 0;
    pthread_mutex_lock(&watermark->mutex);
    while (watermark->value < value && waited != ETIMEDOUT) {
        waited = pthread_cond_timedwait(&watermark->raised, &watermark->mutex, &deadline);
    }
    const bool is_there = watermark->value >= value;
    pthread_mutex_unlock(&watermark->mutex);
    return is_there;
}
