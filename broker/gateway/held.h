/* Held commands wait at the gateway until the rate of their account allows them. docs/operator.md
 * has the rate, `limits.steps`.
 *
 * Commands wait in order, and their number is bounded. Each account has one queue, so no command
 * overtakes another of its account. Only the gateway's thread uses the queues; there is no
 * clock. */
#ifndef BOURSE_BROKER_GATEWAY_HELD_H
#define BOURSE_BROKER_GATEWAY_HELD_H

#include "broker/core/request.h"

enum {
    HELD_ACCOUNTS = 256,        /* accounts with waiting commands */
    HELD_EACH = 2048,           /* commands of one account */
    HELD_EACH_BYTES = 16 << 20, /* bytes of one account's commands, if there are several */
};

struct held_queue {
    uint32_t account;
    uint32_t count;
    size_t bytes;
    struct queue_link *first, *last;
};

/* All zeros stand for no waiting commands. */
struct held {
    struct held_queue queues[HELD_ACCOUNTS];
    size_t count;
};

/* Frees all held requests. */
void held_fini(struct held *held);
/* Takes the request, behind the others of its account. Returns false when the waiting ones are too
 * many or too large; the caller then still owns the request. */
bool held_put(struct held *held, struct request *request);
/* Returns the oldest request of queue `at`, below held->count; the request stays. */
struct request *held_first(const struct held *held, size_t at);
/* Returns the oldest request of the account, which stays, or NULL when none waits. */
struct request *held_of(const struct held *held, uint32_t account);
/* Removes the oldest request of the account, which must have one. If its queue is empty then,
 * another queue takes its place. */
void held_take(struct held *held, uint32_t account);
/* Puts the request that was just taken back as the oldest. */
void held_put_back(struct held *held, struct request *request);

#endif
