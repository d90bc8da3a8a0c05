/* The waiting reads are requests whose senders must earn more steps first, oldest first.
 *
 * Only the thread that answers reads uses the list. broker/gateway/budget.h bounds
 * its length. */
#ifndef BOURSE_BROKER_GATEWAY_WAITING_READS_H
#define BOURSE_BROKER_GATEWAY_WAITING_READS_H

#include "broker/core/outgoing.h"
#include "broker/core/refusals.h"
#include "broker/core/request.h"
#include "broker/gateway/budget.h"

#include <stdbool.h>
#include <stdint.h>

struct waiting_reads {
    struct queue_link *first, **last;
    int64_t due_ns; /* monotonic: the next look; no meaning while none waits */
};

void waiting_reads_init(struct waiting_reads *waiting);
/* Returns true when the read may be answered now. Otherwise the request is taken over: it waits, or
 * it is refused, and *ret_refusal is what its sender is told (else NULL). `refusals` counts the
 * refusals that nobody is told of; both may be NULL. Ends the process when memory is short. */
bool waiting_reads_admit(struct waiting_reads *waiting, struct budget *budget,
                         struct refusals *refusals, struct request *request,
                         struct outgoing **ret_refusal);

/* Answers a read, and takes the request over. */
typedef void waiting_reads_answer(void *context, struct request *request);
/* Has the reads answered whose senders have earned the steps of one. */
void waiting_reads_look(struct waiting_reads *waiting, struct budget *budget,
                        waiting_reads_answer *answer, void *context);
/* Drops the waiting reads of an ended session, or with `all` every one. */
void waiting_reads_forget(struct waiting_reads *waiting, struct budget *budget, uint64_t session,
                          bool all);

#endif
