/* broker/gateway/held.h - commands that wait at the gateway until their account has earned their
 * steps: in order, a bounded number.
 *
 * One queue for each account, so that no command overtakes another of its account. The gateway's
 * own; no clock. */
#ifndef BOURSE_BROKER_GATEWAY_HELD_H
#define BOURSE_BROKER_GATEWAY_HELD_H

#include "broker/core/messages.h"

enum {
    HELD_ACCOUNTS = 256,        /* whose commands wait */
    HELD_EACH = 2048,           /* commands of one account */
    HELD_EACH_BYTES = 16 << 20, /* and their bytes, if there are several */
};

struct held_queue {
    uint32_t account;
    uint32_t count;
    size_t bytes;
    struct queue_link *first, *last;
};

struct held { /* all zeros: nobody waits */
    struct held_queue queues[HELD_ACCOUNTS];
    size_t count;
};

/* Ends what is held. */
void held_fini(struct held *held);
/* Takes the request, behind those of its account. False: too many or too large ones wait, and it
 * stays the caller's. */
bool held_put(struct held *held, struct request *request);
/* The oldest of queue `at`, below held->count; it stays. */
struct request *held_first(const struct held *held, size_t at);
/* The oldest of that account; NULL: none waits. It stays. */
struct request *held_of(const struct held *held, uint32_t account);
/* Gives out the oldest of that account, who has one. After the last of a queue, another queue is in
 * its place. */
void held_take(struct held *held, uint32_t account);
/* What was just taken is the oldest again. */
void held_put_back(struct held *held, struct request *request);

#endif
