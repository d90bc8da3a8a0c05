/* tests/support/disputes_model.h has a slow answer to what is disputed in a job. The model looks at
 * every held result with every provider. */
#ifndef BOURSE_TESTS_DISPUTES_MODEL_H
#define BOURSE_TESTS_DISPUTES_MODEL_H

#include "exchange/exchange.h"

/* Fails the test when exchange_disputes or exchange_dispute_counts says anything else of the job.
 * Returns the number of its disputes. */
uint32_t disputes_model_check(const struct exchange *exchange, const struct id128 *job);

#endif
