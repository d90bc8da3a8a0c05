/* consumer/job/quote/quote_checks.h quotes the checks of a job, and finds out who may check and who
 * may compute. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_QUOTE_QUOTE_CHECKS_H
#define BOURSE_CONSUMER_JOB_QUOTE_QUOTE_CHECKS_H

#include "consumer/job/bourse_job.h"

/* Quotes the job's last part if it is checks. The quote's checks_problem says when nobody may
 * check. Sets job->spares_referee. `made` is scratch for one quote. Returns false and fills the
 * error when the broker does not answer or memory is short. */
bool quote_checks(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *made,
                  struct bourse_quote *ret_checks, struct bourse_error *error);

#endif
