/* consumer/client/rows.h - replies of the broker as the plain structs of bourse.h. Not installed.
 * Pure. */
#ifndef BOURSE_CONSUMER_CLIENT_ROWS_H
#define BOURSE_CONSUMER_CLIENT_ROWS_H

#include "base/id.h"
#include "consumer/client/bourse.h"
#include "protocol/codec.h"

void rows_explanation(const Bourse__V1__Explanation *wire,
                      struct bourse_explanation *ret_explanation);
void rows_quote(const Bourse__V1__QuoteReply *wire, struct bourse_quote *ret_quote);
/* Without its leases. */
void rows_job(const Bourse__V1__JobRow *wire, struct bourse_job_row *ret_row);
void rows_lease(const Bourse__V1__LeaseRow *wire, struct bourse_lease *ret_lease);
/* False when the result inside does not decode, or is of another job or subtask than the row says.
 */
bool rows_outcome(const Bourse__V1__OutcomeRow *wire, const struct id128 *job,
                  struct bourse_outcome *ret_outcome);
/* NULL: the account is known for nothing. */
void rows_standing(const Bourse__V1__Standing *wire, struct bourse_standing *ret_standing);
void rows_outcome_free(struct bourse_outcome **self);

#endif
