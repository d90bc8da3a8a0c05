/* consumer/job/submit.h - quote (quote.c) and submission of a job part by part: each at a price of
 * its own. Not installed. */
#ifndef BOURSE_CONSUMER_JOB_SUBMIT_H
#define BOURSE_CONSUMER_JOB_SUBMIT_H

#include "consumer/job/bourse_job.h"
#include "protocol/codec.h"

/* As bourse_quote; ret_limits[i] is what limit_micro is for the part alone. */
bool submit_quote(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *ret_quote,
                  int64_t ret_limits[ORDER_PARTS_MAX], struct bourse_error *error);
/* The same with the quote of each part by itself, for which there is room for SUBMIT_QUOTES. */
enum { SUBMIT_QUOTES = ORDER_PARTS_MAX + 1 };
bool submit_quote_parts(struct bourse *bourse, struct bourse_job *job,
                        struct bourse_quote *ret_parts, struct bourse_quote *ret_quote,
                        int64_t ret_limits[ORDER_PARTS_MAX], struct bourse_error *error);
/* What the devices of a part have to have; for codec_requirement_free. NULL with the error. */
Bourse__V1__Requirement *submit_needs(const struct bourse_job *job, size_t part,
                                      struct bourse_error *error);
/* The job's limit by value, in `ret_wire`; NULL: it has none. */
Bourse__V1__Value *submit_value(const struct job_file *file, Bourse__V1__Value *ret_wire);
/* Whether some of what a quote lists is given away. */
bool submit_has_gift(const struct bourse_quote *quote);
/* As bourse_submit, with these limits. */
bool submit_job(struct bourse *bourse, struct bourse_job *job, int64_t budget_micro,
                const int64_t limits[ORDER_PARTS_MAX], bourse_progress *progress, void *context,
                char ret_id[BOURSE_ID_SIZE], struct bourse_error *error);
/* The files of this job, which was submitted, are still here: while `bourse` waits for any job it
 * asks what the broker has lost of them, and sends that again. NULL: of none. */
void submit_keep(struct bourse *bourse, const struct bourse_job *job);
/* One such look. True: something was sent. */
bool submit_send_lost(struct bourse *bourse, const struct bourse_job *job,
                      struct bourse_error *error);

#endif
