#include "runtime/hasher.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

struct hasher {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct sha256 *sum; /* NULL: nothing to hash */
    const uint8_t *bytes;
    size_t length;
    bool is_ending;
};

static void *hash_pieces(void *argument)
{
    struct hasher *hasher = argument;
    pthread_mutex_lock(&hasher->mutex);
    while (!hasher->is_ending) {
        if (hasher->sum == NULL) {
            pthread_cond_wait(&hasher->changed, &hasher->mutex);
            continue;
        }
        pthread_mutex_unlock(&hasher->mutex);
        /* The owner does not change them meanwhile. */
        sha256_add(hasher->sum, hasher->bytes, hasher->length);
        pthread_mutex_lock(&hasher->mutex);
        hasher->sum = NULL;
        pthread_cond_signal(&hasher->changed);
    }
    pthread_mutex_unlock(&hasher->mutex);
    return NULL;
}

struct hasher *hasher_create(void)
{
    struct hasher *hasher = calloc(1, sizeof *hasher);
    sigset_t all;
    sigset_t before;
    if (hasher == NULL) {
        return NULL;
    }
    pthread_mutex_init(&hasher->mutex, NULL);
    pthread_cond_init(&hasher->changed, NULL);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread inherits the mask */
    int failed = pthread_create(&hasher->thread, NULL, hash_pieces, hasher);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        pthread_cond_destroy(&hasher->changed);
        pthread_mutex_destroy(&hasher->mutex);
        free(hasher);
        return NULL;
    }
    return hasher;
}

void hasher_destroy(struct hasher **self)
{
    struct hasher *hasher = *self;
    if (hasher != NULL) {
        hasher_finish(hasher);
        pthread_mutex_lock(&hasher->mutex);
        hasher->is_ending = true;
        pthread_cond_signal(&hasher->changed);
        pthread_mutex_unlock(&hasher->mutex);
        pthread_join(hasher->thread, NULL);
        pthread_cond_destroy(&hasher->changed);
        pthread_mutex_destroy(&hasher->mutex);
        free(hasher);
        *self = NULL;
    }
}

void hasher_begin(struct hasher *hasher, struct sha256 *sum, const uint8_t *bytes, size_t length)
{
    if (hasher == NULL || length < HASHER_LEAST_BYTES) {
        sha256_add(sum, bytes, length);
        return;
    }
    pthread_mutex_lock(&hasher->mutex);
    assert(hasher->sum == NULL); /* one at a time */
    hasher->sum = sum;
    hasher->bytes = bytes;
    hasher->length = length;
    pthread_cond_signal(&hasher->changed);
    pthread_mutex_unlock(&hasher->mutex);
}

void hasher_finish(struct hasher *hasher)
{
    if (hasher == NULL) {
        return;
    }
    pthread_mutex_lock(&hasher->mutex);
    while (hasher->sum != NULL) {
        pthread_cond_wait(&hasher->changed, &hasher->mutex);
    }
    pthread_mutex_unlock(&hasher->mutex);
}
