/* consumer/job/manifest.h - the manifest of a job that is prepared: what its agents read. Not
 * installed. */
#ifndef BOURSE_CONSUMER_JOB_MANIFEST_H
#define BOURSE_CONSUMER_JOB_MANIFEST_H

#include "consumer/job/bourse_job.h"
#include "protocol/codec.h"

/* Makes it from the job's file, inputs and parts; says how many subtasks there are, and of a job
 * without tasks so does its part. `folder`: that of the job file. */
bool manifest_make(struct bourse_job *job, const char *folder, struct bourse_error *error);

/* Encodes a manifest that is complete but for the job's terms and the checks of its results, looks
 * at it as the agents will, and keeps it in the job. The manifest is of no use afterwards. */
bool manifest_finish(struct bourse_job *job, Bourse__V1__Manifest *manifest,
                     struct bourse_error *error);

/* Writes into the manifest what each part and task is expected to take by now, what the quote says
 * of all, and on which slots. Once: a job that may have been submitted keeps its manifest. */
struct offered;
bool manifest_expect(struct bourse_job *job, const struct bourse_quote *quote,
                     const struct offered *offered, struct bourse_error *error);

/* What each device fetches once for all subtasks: an image and shared files. INT64_MAX at most. */
int64_t manifest_shared_bytes(const Bourse__V1__Manifest *manifest);
/* What a subtask brings along of its own, without what others hand to it; that, too, is 0 of one
 * that is not listed. */
int64_t manifest_own_bytes(const Bourse__V1__Manifest *manifest, uint32_t index);
/* Whether a subtask takes files that others leave. */
bool manifest_takes_files(const Bourse__V1__Manifest *manifest, uint32_t index);

#endif
