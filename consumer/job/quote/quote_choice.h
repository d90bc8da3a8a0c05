/* consumer/job/quote/quote_choice.h takes the first of a job's needs that can be had now. */
#ifndef BOURSE_CONSUMER_JOB_QUOTE_QUOTE_CHOICE_H
#define BOURSE_CONSUMER_JOB_QUOTE_QUOTE_CHOICE_H

#include "consumer/client/bourse.h"
#include "formats/job.h"

/* Asks the market for a quote of one subtask with each of the file's choices in turn, and chooses
 * the first with which a slot is free now, within the file's cap and budget. When no choice can be
 * had, the file keeps the first one, and *ret_is_had is false. A failed call leaves the file with
 * its first choice. The file has choices. */
bool quote_choice_take(struct bourse *bourse, struct job_file *file, bool *ret_is_had,
                       struct bourse_error *error);

#endif
