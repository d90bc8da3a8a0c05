/* consumer/submit.h - quote and submission of a job part by part: each at a price of its own. Not installed. */
#ifndef BOURSE_CONSUMER_SUBMIT_H
#define BOURSE_CONSUMER_SUBMIT_H

#include "consumer/prepare.h"

/* As bourse_quote; ret_limits[i] is what limit_micro is for the part alone. */
bool submit_quote(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *ret_quote,
                  int64_t ret_limits[ORDER_PARTS_MAX], struct bourse_error *error);
/* As bourse_submit, with these limits. */
bool submit_job(struct bourse *bourse, struct bourse_job *job, int64_t budget_micro,
                const int64_t limits[ORDER_PARTS_MAX], bourse_progress *progress, void *context,
                char ret_id[BOURSE_ID_SIZE], struct bourse_error *error);

#endif
