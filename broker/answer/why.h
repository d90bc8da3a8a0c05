/* broker/answer/why.h - the answer to a provider's question why no work comes to one of its
 * devices. Reads the exchange, changes nothing. */
#ifndef BOURSE_BROKER_ANSWER_WHY_H
#define BOURSE_BROKER_ANSWER_WHY_H

#include "broker/core/messages.h"
#include "exchange/exchange.h"

/* NULL when out of memory. */
struct outgoing *why_reply(const struct exchange *exchange, const struct request *request);

#endif
