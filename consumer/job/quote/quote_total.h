/* consumer/job/quote/quote_total.h adds the quotes of a job's parts to a quote of the whole job.
 * The header is not installed, and the code is pure. */
#ifndef BOURSE_CONSUMER_JOB_QUOTE_QUOTE_TOTAL_H
#define BOURSE_CONSUMER_JOB_QUOTE_QUOTE_TOTAL_H

#include "consumer/client/bourse.h"

/* Adds the quote of a part to that of the parts before. A job of several parts costs the sum of its
 * parts, and needs a place for each. */
void quote_total_add(struct bourse_quote *all, const struct bourse_quote *part);

#endif
