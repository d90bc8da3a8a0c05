/* The world behind the broker's threads: clocks, entropy, log lines, the end of a process, threads,
 * and the queues between them. Each function here stands in the place of runtime/clock.c,
 * runtime/log.c, runtime/files.c, broker/fatal.c, broker/core/queue.c, or a call of the system. */
#include "broker/core/queue.h"
#include "broker/fatal.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/files.h"
#include "runtime/log.h"
#include "runtime/process.h"
#include "tests/sim/fibre.h"
#include "tests/sim/process.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_join(pthread_t thread, void **ret_value);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *ret_left);
int __wrap_zmq_poll(zmq_pollitem_t *items, int count, long timeout_ms);

/* ---------------------------------------------------------------- clocks and entropy */

int64_t clock_monotonic_ns(void)
{
    return world.now_ns + (world.current == NULL ? 0 : world.current->monotonic_offset_ns);
}

int64_t clock_wall_ns(void)
{
    const int64_t epoch_ns = INT64_C(1700000000) * SIM_S;
    return epoch_ns + world.now_ns + (world.current == NULL ? 0 : world.current->wall_offset_ns);
}

uint64_t entropy_u64(void)
{
    return random_u64(&world.dice[DICE_ENTROPY]);
}

void entropy_bytes(void *ret_bytes, size_t length)
{
    uint8_t *bytes = ret_bytes;
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (uint8_t)entropy_u64();
    }
}

struct id128 entropy_id(void)
{
    struct id128 id;
    entropy_bytes(id.bytes, sizeof id.bytes);
    return id;
}

/* ---------------------------------------------------------------- words, and the end */

void log_line(enum log_level level, const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    (void)level;
    trace("says: %s", line);
}

void fatal(const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    trace("stops: %s", line);
    process_stops(line, false);
}

void fatal_deposed(const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    trace("is deposed: %s", line);
    process_stops(line, true);
}

/* ---------------------------------------------------------------- files: there are none */

bool file_read(const char *path, size_t cap, uint8_t **ret_bytes, size_t *ret_length,
               struct problem *ret_problem)
{
    (void)path;
    (void)cap;
    (void)ret_bytes;
    (void)ret_length;
    (void)ret_problem;
    sim_fail("a broker of this world has no file of challenges");
}

bool file_write(const char *path, const void *bytes, size_t length, unsigned mode,
                struct problem *ret_problem)
{
    (void)path;
    (void)bytes;
    (void)length;
    (void)mode;
    (void)ret_problem;
    sim_fail("a broker of this world has no file of challenges");
}

/* ---------------------------------------------------------------- threads are fibres */

void process_name_thread(const char *name)
{
    (void)name;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    (void)attributes;
    *thread = (pthread_t)fibre_name(fibre_create(run, argument));
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret_value)
{
    (void)ret_value;
    while (fibre_runs((uint64_t)thread)) {
        fibre_wait(SIM_MS);
    }
    return 0;
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *ret_left)
{
    (void)ret_left;
    fibre_wait((int64_t)wanted->tv_sec * SIM_S + wanted->tv_nsec);
    return 0;
}

/* ---------------------------------------------------------------- queues */

enum { PRODUCERS_MAX = 8 };

struct queue {
    struct queue_link *first, *last;
    size_t count, capacity;
    bool is_closed, is_woken;
    int descriptor;
    struct fibre *consumer;
    struct fibre *producers[PRODUCERS_MAX];
    size_t producer_count;
};

/* Descriptors are places in this table; fibre waits of one process only ever ask for its own
 * queues. */
enum { DESCRIPTORS_MAX = 256 };
static struct queue *by_descriptor[DESCRIPTORS_MAX];

struct queue *queue_create(size_t capacity)
{
    static int next;
    struct queue *queue = calloc(1, sizeof *queue);
    if (queue != NULL) {
        queue->capacity = capacity;
        queue->descriptor = next;
        next = (next + 1) % DESCRIPTORS_MAX;
        by_descriptor[queue->descriptor] = queue;
    }
    return queue;
}

void queue_destroy(struct queue **self)
{
    free(*self);
    *self = NULL;
}

bool queue_try_push(struct queue *queue, struct queue_link *link)
{
    if (queue->is_closed || queue->count >= queue->capacity) {
        return false;
    }
    link->next = NULL;
    if (queue->last != NULL) {
        queue->last->next = link;
    } else {
        queue->first = link;
    }
    queue->last = link;
    queue->count++;
    fibre_wake(queue->consumer);
    return true;
}

bool queue_push(struct queue *queue, struct queue_link *link)
{
    while (!queue->is_closed && queue->count >= queue->capacity) {
        assert(queue->producer_count < PRODUCERS_MAX);
        queue->producers[queue->producer_count++] = fibre_current();
        fibre_wait(INT64_MAX);
    }
    return queue_try_push(queue, link);
}

static struct queue_link *take(struct queue *queue)
{
    struct queue_link *link = queue->first;
    if (link == NULL) {
        queue->is_woken = false;
        return NULL;
    }
    queue->first = link->next;
    if (queue->first == NULL) {
        queue->last = NULL;
    }
    queue->count--;
    for (size_t i = 0; i < queue->producer_count; i++) {
        fibre_wake(queue->producers[i]);
    }
    queue->producer_count = 0;
    return link;
}

struct queue_link *queue_pop(struct queue *queue, int64_t timeout_ns)
{
    int64_t until_ns = timeout_ns == QUEUE_FOREVER ? INT64_MAX : world.now_ns + timeout_ns;
    while (queue->count == 0 && !queue->is_closed && !queue->is_woken && world.now_ns < until_ns) {
        queue->consumer = fibre_current();
        fibre_wait(until_ns == INT64_MAX ? INT64_MAX : until_ns - world.now_ns);
    }
    return take(queue);
}

void queue_wake(struct queue *queue)
{
    queue->is_woken = true;
    fibre_wake(queue->consumer);
}

void queue_close(struct queue *queue)
{
    queue->is_closed = true;
    fibre_wake(queue->consumer);
}

bool queue_finished(struct queue *queue)
{
    return queue->is_closed && queue->count == 0;
}

size_t queue_count(struct queue *queue)
{
    return queue->count;
}

int queue_descriptor(const struct queue *queue)
{
    return queue->descriptor;
}

/* --------------------------------------------------------------- waiting for a port and a queue */

static bool is_readable(struct queue *queue)
{
    return queue->count > 0 || queue->is_woken || queue->is_closed;
}

int __wrap_zmq_poll(zmq_pollitem_t *items, int count, long timeout_ms)
{
    assert(count == 2 && items[0].socket != NULL);
    struct queue *queue = by_descriptor[items[1].fd];
    int64_t until_ns = world.now_ns + timeout_ms * SIM_MS;
    queue->consumer = fibre_current();
    while (!is_readable(queue) && !port_is_readable(items[0].socket) && world.now_ns < until_ns) {
        port_waits(items[0].socket, fibre_current());
        fibre_wait(until_ns - world.now_ns);
    }
    items[0].revents = port_is_readable(items[0].socket) ? ZMQ_POLLIN : 0;
    items[1].revents = is_readable(queue) ? ZMQ_POLLIN : 0;
    return (items[0].revents != 0) + (items[1].revents != 0);
}
