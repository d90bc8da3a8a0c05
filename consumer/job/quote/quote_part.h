/* consumer/job/quote/quote_part.h asks the market what one part of a job costs on the present
 * offers. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_QUOTE_QUOTE_PART_H
#define BOURSE_CONSUMER_JOB_QUOTE_QUOTE_PART_H

#include "consumer/job/bourse_job.h"

/* Quotes a part at a cap and a budget, each of which may be LIMIT_NONE. The cheapest account may
 * not make the checks. Like the other function, it returns false and fills the error when the
 * broker does not answer or memory is short. */
bool quote_part_at(struct bourse *bourse, const struct bourse_job *job, size_t index,
                   int64_t cap_micro, int64_t budget_micro, struct bourse_quote *ret_quote,
                   struct bourse_error *error);
/* Quotes a part as it would be submitted, with the limit and the budget that the quote suggests. */
bool quote_part(struct bourse *bourse, const struct bourse_job *job, size_t index,
                struct bourse_quote *ret_quote, struct bourse_error *error);

#endif
