#include "broker/core/queue.h"

#include "runtime/condition.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled;  /* an element to pop */
    pthread_cond_t drained; /* room to push */
    struct queue_link *first, *last;
    size_t count, capacity;
    bool is_closed, is_woken;
    bool is_signalled; /* the eventfd's counter is not zero */
    int descriptor;
};

struct queue *queue_create(size_t capacity)
{
    assert(capacity > 0);
    struct queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL) {
        return NULL;
    }
    queue->capacity = capacity;
    queue->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (queue->descriptor < 0) {
        free(queue);
        return NULL;
    }
    condition_init(&queue->filled);
    condition_init(&queue->drained);
    pthread_mutex_init(&queue->mutex, NULL);
    return queue;
}

void queue_destroy(struct queue **self)
{
    struct queue *queue = *self;
    if (queue != NULL) {
        assert(queue->count == 0);
        pthread_cond_destroy(&queue->filled);
        pthread_cond_destroy(&queue->drained);
        pthread_mutex_destroy(&queue->mutex);
        (void)close(queue->descriptor); /* an eventfd has nothing to lose */
        free(queue);
        *self = NULL;
    }
}

/* Makes the descriptor agree with the queue's state. The caller holds the mutex. */
static void signal_descriptor(struct queue *queue)
{
    bool wanted = queue->count > 0 || queue->is_woken || queue->is_closed;
    uint64_t value = 1;
    if (wanted && !queue->is_signalled) {
        ssize_t written = write(queue->descriptor, &value, sizeof value);
        assert(written == (ssize_t)sizeof value); /* the counter was zero */
    } else if (!wanted && queue->is_signalled) {
        ssize_t taken = read(queue->descriptor, &value, sizeof value);
        assert(taken == (ssize_t)sizeof value);
    }
    queue->is_signalled = wanted;
}

static bool append(struct queue *queue, struct queue_link *link, bool wait)
{
    pthread_mutex_lock(&queue->mutex);
    while (wait && !queue->is_closed && queue->count >= queue->capacity) {
        pthread_cond_wait(&queue->drained, &queue->mutex);
    }
    bool fits = !queue->is_closed && queue->count < queue->capacity;
    if (fits) {
        link->next = NULL;
        if (queue->last != NULL) {
            queue->last->next = link;
        } else {
            queue->first = link;
        }
        queue->last = link;
        queue->count++;
        signal_descriptor(queue);
        pthread_cond_signal(&queue->filled);
    }
    pthread_mutex_unlock(&queue->mutex);
    return fits;
}

bool queue_try_push(struct queue *queue, struct queue_link *link)
{
    return append(queue, link, false);
}

bool queue_push(struct queue *queue, struct queue_link *link)
{
    return append(queue, link, true);
}

struct queue_link *queue_pop(struct queue *queue, int64_t timeout_ns)
{
    struct timespec deadline = {0};
    if (timeout_ns > 0) {
        deadline = condition_deadline(timeout_ns);
    }
    pthread_mutex_lock(&queue->mutex);
    int waited = timeout_ns == 0 ? ETIMEDOUT : 0;
    while (queue->count == 0 && !queue->is_closed && !queue->is_woken && waited != ETIMEDOUT) {
        waited = timeout_ns == QUEUE_FOREVER
                     ? pthread_cond_wait(&queue->filled, &queue->mutex)
                     : pthread_cond_timedwait(&queue->filled, &queue->mutex, &deadline);
    }
    struct queue_link *link = queue->first;
    if (link != NULL) {
        queue->first = link->next;
        link->after = link->next == NULL ? NULL : link->next->next;
        link->third = link->after == NULL ? NULL : link->after->next;
        if (queue->first == NULL) {
            queue->last = NULL;
        }
        queue->count--;
        pthread_cond_signal(&queue->drained);
    } else {
        queue->is_woken = false;
    }
    signal_descriptor(queue);
    pthread_mutex_unlock(&queue->mutex);
    return link;
}

void queue_wake(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->is_woken = true;
    signal_descriptor(queue);
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
}

void queue_close(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->is_closed = true;
    signal_descriptor(queue);
    pthread_cond_broadcast(&queue->filled);
    pthread_cond_broadcast(&queue->drained);
    pthread_mutex_unlock(&queue->mutex);
}

bool queue_finished(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    bool finished = queue->is_closed && queue->count == 0;
    pthread_mutex_unlock(&queue->mutex);
    return finished;
}

size_t queue_count(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    size_t count = queue->count;
    pthread_mutex_unlock(&queue->mutex);
    return count;
}

int queue_descriptor(const struct queue *queue)
{
    return queue->descriptor;
}
