/* Replies turn rows and effects of the exchange into messages of the wire; they change nothing.
 *
 * Another member's job and a job that does not exist get the same answer, byte for byte. */
#ifndef BOURSE_BROKER_ANSWER_REPLIES_H
#define BOURSE_BROKER_ANSWER_REPLIES_H

#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "exchange/exchange.h"
#include "protocol/message.h"

#include <stdbool.h>

/* Returns the answer to a read that the exchange can give, or NULL when memory is short. `now_ns`
 * is log time. */
struct outgoing *replies_to_read(const struct exchange *exchange, const struct request *request,
                                 int64_t now_ns);

/* The reader answers reads of committed data (statement, outcomes, receipt, checkpoint). The core
 * only checks that the asker may: replies_refuse_read returns NULL then, else the refusal. */
bool replies_are_the_readers(enum message_type type);
struct outgoing *replies_refuse_read(const struct exchange *exchange,
                                     const struct request *request);

/* Returns the row of a job for its watchers, without leases, or NULL when the job is gone or memory
 * is short. */
struct outgoing *replies_job_event(const struct exchange *exchange, const struct id128 *job,
                                   int64_t now_ns);

#endif
