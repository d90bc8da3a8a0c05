/* consumer/job/alone.h - whether one device alone would be done with a job sooner than the slots
 * that the market gives it, which goes by price and sequence, and what the job is to need to get
 * that one. Not installed. */
#ifndef BOURSE_CONSUMER_JOB_ALONE_H
#define BOURSE_CONSUMER_JOB_ALONE_H

#include "consumer/job/offered.h"

/* `planned_ns`: what it takes as the market would have it run on these places, of which the one at
 * `single` would be done with it first alone, in single_ns. Writes ret_alone where that is sooner
 * by a twentieth at least, within the job's cap and budget, and where a label tells that device
 * from all others that fit. False: the broker does not answer, or there is no memory. */
bool alone_find(struct bourse *bourse, const struct bourse_job *job, const struct offered *offered,
                int64_t planned_ns, size_t single, int64_t single_ns,
                struct bourse_alone *ret_alone, struct bourse_error *error);

#endif
