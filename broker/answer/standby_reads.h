/* The standby reads are the thread that answers reads on a broker that follows another one.
 *
 * Its answers are made from the exchange that follows the journal, and each says of which state it
 * is. Reads of committed data go to the reader. What only the leader can tell is answered with its
 * address. The thread changes nothing. */
#ifndef BOURSE_BROKER_ANSWER_STANDBY_READS_H
#define BOURSE_BROKER_ANSWER_STANDBY_READS_H

#include "broker/core/queue.h"
#include "broker/core/refusals.h"
#include "broker/gateway/budget.h"
#include "broker/gateway/following.h"
#include "exchange/exchange.h"

#include <pthread.h>

struct standby_reads;

struct standby_reads_config {
    const struct exchange *exchange; /* with a feed */
    pthread_mutex_t *state;          /* held by whoever changes the exchange */
    struct queue *inbound;           /* requests; woken when the exchange has changed */
    struct queue *reader;            /* requests for the reader */
    struct queue *releases;          /* answers */
    struct budget *budget;           /* shared with the gateway and the reader; NULL: none */
    struct refusals *refusals;       /* counts refusals of members; NULL: nobody counts */
    struct following_note *following;
};

/* Starts the thread. The process ends when memory or threads are short. */
struct standby_reads *standby_reads_start(const struct standby_reads_config *config);
/* Closes `inbound`, and ends the thread. Requests that wait get no answer: their senders ask the
 * next broker. */
void standby_reads_stop(struct standby_reads **self);

#endif
