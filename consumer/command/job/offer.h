/* consumer/command/job/offer.h makes and shows an offer, a job with its price, which submit and run
 * place after the user agreed. */
#ifndef BOURSE_CONSUMER_COMMAND_JOB_OFFER_H
#define BOURSE_CONSUMER_COMMAND_JOB_OFFER_H

#include "consumer/command/job/jobs.h"
#include "consumer/job/order.h"

/* An offer is a job with its price. All fields but the job begin as zero. */
struct offer {
    struct bourse_job *job;
    struct bourse_job_summary summary;
    struct bourse_quote quote;
    int64_t limits[ORDER_PARTS_MAX]; /* highest price per slot-hour, by part */
    int64_t budget_micro;
    /* Quotes of the parts, SUBMIT_QUOTES of them; NULL: no caller needs them. */
    struct bourse_quote *parts;
};
/* Each of these functions returns false and the exit status after a message. */
bool offer_make(struct invocation *invocation, struct offer *offer, int *ret_status);
void offer_show(FILE *to, const struct offer *offer);
/* Shows a small job, or its quote alone, in at most five lines. Returns false, and shows nothing,
 * when the job is not small. */
bool offer_show_short(FILE *to, const struct offer *offer, bool with_job);
void offer_show_job(FILE *to, const struct offer *offer);   /* the job alone */
void offer_show_quote(FILE *to, const struct offer *offer); /* the quote alone */
json_t *offer_json(const struct offer *offer);
/* Returns BOURSE_OK, or NO_MATCH when the job would not start. */
int offer_status(const struct offer *offer);
/* Returns true when devices fit, every ask is above the limit, and no lease can be taken. */
bool offer_is_too_dear(const struct bourse_quote *quote);
/* Returns true when some offered slots are donated and the job needs no credits. */
bool offer_is_given_away(const struct bourse_quote *quote);
/* Names one of several parts, counted from 1: "task a and 2 more". The text is "" for a single
 * part. */
enum { PART_TEXT_SIZE = 128 };
void offer_name_part(const struct bourse_job *job, uint32_t part, char ret_text[PART_TEXT_SIZE]);
/* Returns true when the plan misses the job's deadline, and not only by a guess. */
bool offer_misses_deadline(const struct bourse_quote *quote);
/* Says in one statement whether the plan keeps the job's deadline, whether the planned time is a
 * guess, and what would help. The text is "" without a deadline, or when nothing is on offer. */
enum { OFFER_DEADLINE_SIZE = 768 };
void offer_deadline_text(const struct bourse_quote *quote, char ret_text[OFFER_DEADLINE_SIZE]);
/* Prints the most that the job pays for a slot-hour, and why. */
void offer_show_limit(FILE *to, const struct bourse_job_summary *job,
                      const struct bourse_quote *quote);
/* Prints the choice of `objective: price`, and that statement; each behind the title, and neither
 * when it is empty. */
void offer_show_terms(FILE *to, const struct bourse_quote *quote, const char *title,
                      bool with_challenges);
/* Asks the user. Returns false and the exit status when the answer is no. */
bool offer_agree(struct invocation *invocation, const struct offer *offer, int *ret_status);
bool offer_place(struct invocation *invocation, struct offer *offer, char ret_id[BOURSE_ID_SIZE],
                 int *ret_status);
/* Makes the offer of a job, asks the user, and places the job. */
bool offer_and_place(struct invocation *invocation, struct bourse_job *job,
                     char ret_id[BOURSE_ID_SIZE], int *ret_status);

#endif
