/* broker/answer/replies.h - answers: from the exchange's rows and effects to the wire's messages.
 *
 * Reads the exchange, changes nothing. Somebody else's job and a job that does not exist get the
 * same answer, byte for byte. */
#ifndef BOURSE_BROKER_ANSWER_REPLIES_H
#define BOURSE_BROKER_ANSWER_REPLIES_H

#include "broker/core/messages.h"
#include "exchange/exchange.h"
#include "protocol/message.h"

#include <stdbool.h>

/* The answer to a read that the exchange can give; NULL when out of memory. `now_ns`: log time. */
struct outgoing *replies_to_read(const struct exchange *exchange, const struct request *request,
                                 int64_t now_ns);

/* Reads of committed data (statement, outcomes, receipt, checkpoint) are the reader's; the core
 * only sees to it that the asker may: NULL when so, else the refusal. */
bool replies_are_the_readers(enum message_type type);
struct outgoing *replies_refuse_read(const struct exchange *exchange,
                                     const struct request *request);

/* The row of a job for its watchers, without leases; NULL when the job is gone or memory is
 * short. */
struct outgoing *replies_job_event(const struct exchange *exchange, const struct id128 *job,
                                   int64_t now_ns);

#endif
