/* broker/core/queue.h - a bounded queue between two threads of the broker, the only thing they
 * share.
 *
 * Elements carry their own link; whoever pops one owns it. A full queue is an answer (try_push) or
 * a wait (push), chosen by the producer: the gateway never waits, so the waits of the others cannot
 * form a circle. After queue_close nothing more goes in, and what is inside still comes out. */
#ifndef BOURSE_BROKER_CORE_QUEUE_H
#define BOURSE_BROKER_CORE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue_link {
    struct queue_link *next;
    struct queue_link *after, *third; /* of one that came out: who stays behind the next */
};

/* The element that contains `link` as its member `member`. */
#define QUEUE_ELEMENT(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

struct queue;

/* Room for `capacity` (> 0) elements. NULL when memory or descriptors are short. */
struct queue *queue_create(size_t capacity);
/* The queue is empty, and no thread uses it any more. */
void queue_destroy(struct queue **self);

/* False, and the element stays the caller's, when the queue is full or closed. */
bool queue_try_push(struct queue *queue, struct queue_link *link);
/* Waits for room; false, and the element stays the caller's, only when the queue is closed. */
bool queue_push(struct queue *queue, struct queue_link *link);

enum { QUEUE_FOREVER = -1 };
/* The oldest element; its link says which are the next three, which stay in the queue (NULL: there
 * was none yet). Waits up to timeout_ns (0: does not, QUEUE_FOREVER: as long as it takes). NULL on
 * timeout, after queue_wake, or when the queue is closed and empty. */
struct queue_link *queue_pop(struct queue *queue, int64_t timeout_ns);

/* Ends one wait of the consumer, now or the next, with NULL. */
void queue_wake(struct queue *queue);
void queue_close(struct queue *queue);
/* Closed and empty: the consumer may end. */
bool queue_finished(struct queue *queue);
size_t queue_count(struct queue *queue);

/* Readable while the queue holds something, was woken, or is closed: for zmq_poll beside sockets.
 * The consumer then pops without waiting until it gets NULL. */
int queue_descriptor(const struct queue *queue);

#endif
