/* consumer/job/submit.h quotes (quote/quote.c) and submits a job part by part, each with its own
 * price. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_SUBMIT_H
#define BOURSE_CONSUMER_JOB_SUBMIT_H

#include "consumer/job/bourse_job.h"
#include "protocol/codec.h"

/* Quotes a job like bourse_quote; ret_limits[i] is the limit_micro of part i alone. */
bool submit_quote(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *ret_quote,
                  int64_t ret_limits[ORDER_PARTS_MAX], struct bourse_error *error);
/* Quotes a job and returns the quote of each part too; `ret_parts` has room for SUBMIT_QUOTES. */
enum { SUBMIT_QUOTES = ORDER_PARTS_MAX + 1 };
bool submit_quote_parts(struct bourse *bourse, struct bourse_job *job,
                        struct bourse_quote *ret_parts, struct bourse_quote *ret_quote,
                        int64_t ret_limits[ORDER_PARTS_MAX], struct bourse_error *error);
/* Returns true when the part is the checks of the job's results. */
bool submit_is_checks(const struct bourse_job *job, size_t part);
/* Returns the requirement of a part's devices, which the caller frees with codec_requirement_free.
 * Returns NULL and fills the error on failure. */
Bourse__V1__Requirement *submit_needs(const struct bourse_job *job, size_t part,
                                      struct bourse_error *error);
/* Fills `ret_wire` with the job's limit by value and returns it; NULL: the job has none. */
Bourse__V1__Value *submit_value(const struct job_file *file, Bourse__V1__Value *ret_wire);
/* Returns true when a quote lists donated slots. */
bool submit_has_gift(const struct bourse_quote *quote);
/* Returns the moment of the job's deadline if the job is submitted now, in milliseconds of the
 * market's log time; 0: the job has none. */
int64_t submit_deadline_ms(const struct bourse *bourse, const struct bourse_job *job);
/* Submits a job like bourse_submit, with a limit for each part. */
bool submit_job(struct bourse *bourse, struct bourse_job *job, int64_t budget_micro,
                const int64_t limits[ORDER_PARTS_MAX], bourse_progress *progress, void *context,
                char ret_id[BOURSE_ID_SIZE], struct bourse_error *error);
/* Registers a submitted job whose files are still on this machine. While `bourse` waits for any
 * job, it sends the files again that the broker has lost. NULL ends this. */
void submit_keep(struct bourse *bourse, const struct bourse_job *job);
/* Looks for lost files once. Returns true when something was sent. */
bool submit_send_lost(struct bourse *bourse, const struct bourse_job *job,
                      struct bourse_error *error);

#endif
