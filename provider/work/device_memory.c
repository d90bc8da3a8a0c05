#include "provider/work/device_memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct device_memory {
    pthread_mutex_t mutex;
    pthread_cond_t given; /* some device was given back */
    size_t devices;
    struct held_figures *sums;
    bool *taken;
};

struct device_memory *device_memory_create(size_t devices)
{
    assert(devices > 0);
    struct device_memory *memory = calloc(1, sizeof *memory);
    struct held_figures *sums = calloc(devices, sizeof *sums);
    bool *taken = calloc(devices, sizeof *taken);
    if (memory == NULL || sums == NULL || taken == NULL) {
        free(memory);
        free(sums);
        free(taken);
        return NULL;
    }
    pthread_mutex_init(&memory->mutex, NULL);
    pthread_cond_init(&memory->given, NULL);
    memory->devices = devices;
    memory->sums = sums;
    memory->taken = taken;
    return memory;
}

void device_memory_destroy(struct device_memory **self)
{
    struct device_memory *memory = *self;
    if (memory != NULL) {
        pthread_cond_destroy(&memory->given);
        pthread_mutex_destroy(&memory->mutex);
        free(memory->sums);
        free(memory->taken);
        free(memory);
        *self = NULL;
    }
}

/* A sum that is no int64_t stays at its most. */
static void add(uint64_t *sum, uint64_t more)
{
    *sum = more > INT64_MAX - *sum ? INT64_MAX : *sum + more;
}

void device_memory_note(struct device_memory *memory, size_t device,
                        const struct held_figures *figures, uint64_t *held_bytes)
{
    assert(device < memory->devices);
    pthread_mutex_lock(&memory->mutex);
    struct held_figures *sum = &memory->sums[device];
    add(&sum->hits, figures->hits);
    add(&sum->saved_bytes, figures->saved_bytes);
    add(&sum->copies, figures->copies);
    add(&sum->copied_bytes, figures->copied_bytes);
    add(&sum->aheads, figures->aheads);
    add(&sum->ahead_bytes, figures->ahead_bytes);
    assert(sum->held_bytes >= *held_bytes);
    sum->held_bytes -= *held_bytes;
    *held_bytes = figures->held_bytes < INT64_MAX - sum->held_bytes ? figures->held_bytes : 0;
    sum->held_bytes += *held_bytes;
    pthread_mutex_unlock(&memory->mutex);
}

void device_memory_forget(struct device_memory *memory, size_t device, uint64_t *held_bytes)
{
    static const struct held_figures nothing;
    device_memory_note(memory, device, &nothing, held_bytes);
}

void device_memory_take(struct device_memory *memory, size_t device)
{
    assert(device < memory->devices);
    pthread_mutex_lock(&memory->mutex);
    while (memory->taken[device]) {
        pthread_cond_wait(&memory->given, &memory->mutex);
    }
    memory->taken[device] = true;
    pthread_mutex_unlock(&memory->mutex);
}

void device_memory_give(struct device_memory *memory, size_t device)
{
    assert(device < memory->devices);
    pthread_mutex_lock(&memory->mutex);
    assert(memory->taken[device]);
    memory->taken[device] = false;
    pthread_cond_broadcast(&memory->given);
    pthread_mutex_unlock(&memory->mutex);
}

struct held_figures device_memory_read(struct device_memory *memory, size_t device)
{
    assert(device < memory->devices);
    pthread_mutex_lock(&memory->mutex);
    const struct held_figures figures = memory->sums[device];
    pthread_mutex_unlock(&memory->mutex);
    return figures;
}
