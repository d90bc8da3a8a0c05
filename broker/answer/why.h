/* broker/answer/why.h answers a provider's question why one of its devices gets no work.
 *
 * The answer reads the exchange and changes nothing. */
#ifndef BOURSE_BROKER_ANSWER_WHY_H
#define BOURSE_BROKER_ANSWER_WHY_H

#include "broker/challenge/challenge_facts.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "exchange/exchange.h"

/* Returns the answer, or NULL when memory is short. */
struct outgoing *why_reply(const struct exchange *exchange, const struct challenge_facts *facts,
                           const struct request *request, int64_t log_ns);

#endif
