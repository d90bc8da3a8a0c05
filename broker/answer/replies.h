/* Replies turn rows and effects of the exchange into messages of the wire; they change nothing.
 *
 * Another member's job and a job that does not exist get the same answer, byte for byte. */
#ifndef BOURSE_BROKER_ANSWER_REPLIES_H
#define BOURSE_BROKER_ANSWER_REPLIES_H

#include "broker/answer/departures.h"
#include "broker/challenge/challenge_facts.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "exchange/exchange.h"
#include "protocol/message.h"

#include <stdbool.h>

/* The struct holds what answers take besides the exchange. */
struct replies_sources {
    const struct challenge_facts *facts; /* what challenges found */
    const struct departures *departures; /* who left lately; NULL: nobody is known */
    int64_t log_ns;                      /* log time */
};

/* Returns the answer to a read that the exchange can give, or NULL when memory is short. */
struct outgoing *replies_to_read(const struct exchange *exchange,
                                 const struct replies_sources *sources,
                                 const struct request *request);

/* Returns true for a read of committed data (a statement, a receipt and others), which the reader
 * answers. The core only checks such a read: replies_refuse_read returns the refusal, or NULL when
 * the asker may read. */
bool replies_are_the_readers(enum message_type type);
/* Returns true for requests that the keeper of blobs answers. */
bool replies_are_the_keepers(enum message_type type);
/* Returns true for requests that only the broker that leads answers: those that change something,
 * and live streams of what agents say. */
bool replies_are_the_leaders(enum message_type type);
struct outgoing *replies_refuse_read(const struct exchange *exchange,
                                     const struct request *request);

/* Returns the row of a job for its watchers, without leases, or NULL when the job is gone or memory
 * is short. */
struct outgoing *replies_job_event(const struct exchange *exchange, const struct id128 *job,
                                   int64_t now_ns);

#endif
