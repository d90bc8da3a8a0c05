#include "broker/core/watermark.h"

void watermark_init(struct watermark *watermark, uint64_t value)
{
    watermark->value = value;
    pthread_mutex_init(&watermark->mutex, NULL);
    pthread_cond_init(&watermark->raised, NULL);
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
