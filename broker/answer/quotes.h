/* broker/answer/quotes.h answers what work would cost now, and what waits for what. */
#ifndef BOURSE_BROKER_ANSWER_QUOTES_H
#define BOURSE_BROKER_ANSWER_QUOTES_H

#include "broker/answer/departures.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "exchange/exchange.h"

/* Returns the QuoteReply to a QuoteRequest, or a refusal; NULL: memory is short. `departures` are
 * the providers that left lately, and may be NULL. */
struct outgoing *quotes_reply(const struct exchange *exchange, const struct departures *departures,
                              const struct request *request, int64_t log_ns);

#endif
