/* broker/answer/quotes.h answers what work would cost now, and what waits for what. */
#ifndef BOURSE_BROKER_ANSWER_QUOTES_H
#define BOURSE_BROKER_ANSWER_QUOTES_H

#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "exchange/exchange.h"

/* Returns the QuoteReply to a QuoteRequest, or a refusal; NULL: memory is short. */
struct outgoing *quotes_reply(const struct exchange *exchange, const struct request *request);

#endif
