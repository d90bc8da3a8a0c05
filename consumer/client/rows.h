/* consumer/client/rows.h turns replies of the broker into the plain structs of bourse.h. The header
 * is not installed, and the code is pure. */
#ifndef BOURSE_CONSUMER_CLIENT_ROWS_H
#define BOURSE_CONSUMER_CLIENT_ROWS_H

#include "base/id.h"
#include "consumer/client/bourse.h"
#include "protocol/codec.h"

void rows_explanation(const Bourse__V1__Explanation *wire,
                      struct bourse_explanation *ret_explanation);
void rows_quote(const Bourse__V1__QuoteReply *wire, struct bourse_quote *ret_quote);
/* Fills the row without its leases. */
void rows_job(const Bourse__V1__JobRow *wire, struct bourse_job_row *ret_row);
void rows_lease(const Bourse__V1__LeaseRow *wire, struct bourse_lease *ret_lease);
/* Returns false when the result inside does not decode, or names another job or subtask than the
 * row. */
bool rows_outcome(const Bourse__V1__OutcomeRow *wire, const struct id128 *job,
                  struct bourse_outcome *ret_outcome);
/* Returns the level of the jail that the result says, 0 to 3, or -1. */
int rows_isolation(const Bourse__V1__Result *result);
/* Fills the standing of an account; NULL gives the standing of an account without a record. */
void rows_standing(const Bourse__V1__Standing *wire, struct bourse_standing *ret_standing);
/* Fills what the last challenge of a device found; NULL gives that of a device without one. */
void rows_challenge(const Bourse__V1__ChallengeFact *wire, struct bourse_challenge *ret_challenge);
void rows_outcome_free(struct bourse_outcome **self);

#endif
