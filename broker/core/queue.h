/* A queue is bounded and connects two threads of the broker; it is all that they share.
 *
 * Elements carry their own link, and the thread that pops an element owns it. A producer meets a
 * full queue as an answer (try_push) or as a wait (push). The gateway never waits, so the waits of
 * the others cannot form a circle. After queue_close nothing more goes in, and the rest still comes
 * out. */
#ifndef BOURSE_BROKER_CORE_QUEUE_H
#define BOURSE_BROKER_CORE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue_link {
    struct queue_link *next;
    /* An element that came out names the second and the third element still in the queue. */
    struct queue_link *after, *third;
};

/* Returns the element that contains `link` as its member `member`. */
#define QUEUE_ELEMENT(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

struct queue;

/* Creates a queue for `capacity` (> 0) elements. Returns NULL when memory or descriptors are
 * short. */
struct queue *queue_create(size_t capacity);
/* Frees the queue, which must be empty and used by no thread. */
void queue_destroy(struct queue **self);

/* Returns false when the queue is full or closed; the caller then still owns the element. */
bool queue_try_push(struct queue *queue, struct queue_link *link);
/* Waits for room. Returns false only when the queue is closed; the caller then still owns the
 * element. */
bool queue_push(struct queue *queue, struct queue_link *link);

enum { QUEUE_FOREVER = -1 };
/* Takes the oldest element. Its link names the next three, which stay in the queue (NULL: there
 * were fewer). Waits up to timeout_ns (0: no wait, QUEUE_FOREVER: no limit). Returns NULL on
 * timeout, after queue_wake, or when the queue is closed and empty. */
struct queue_link *queue_pop(struct queue *queue, int64_t timeout_ns);

/* Ends one wait of the consumer, the present or the next, with NULL. */
void queue_wake(struct queue *queue);
void queue_close(struct queue *queue);
/* Returns true when the queue is closed and empty: the consumer may end. */
bool queue_finished(struct queue *queue);
size_t queue_count(struct queue *queue);

/* Returns a descriptor for zmq_poll beside sockets. The descriptor is readable while the queue
 * holds an element, was woken, or is closed. The consumer then pops without waiting until it gets
 * NULL. */
int queue_descriptor(const struct queue *queue);

#endif
