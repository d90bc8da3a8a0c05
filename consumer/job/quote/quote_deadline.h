/* consumer/job/quote/quote_deadline.h says whether the plan of a quote keeps the job's deadline,
 * and which change of the job was tried and would keep it. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_QUOTE_QUOTE_DEADLINE_H
#define BOURSE_CONSUMER_JOB_QUOTE_QUOTE_DEADLINE_H

#include "consumer/job/bourse_job.h"

/* Fills the quote's fields of the deadline from its planned time, and says whether that time is a
 * guess. The fields of a job without a deadline stay 0. A job that is late is planned again without
 * its at_most, without its cap or value, and without both. The first plan that is in time and
 * within the budget becomes `deadline_help`. The job stays as it was. Returns false and fills the
 * error when the deadline is past or more than 366 days ahead, when the broker does not answer, or
 * when memory is short. */
bool quote_deadline(struct bourse *bourse, const struct bourse_job *job, struct bourse_quote *quote,
                    struct bourse_error *error);

#endif
