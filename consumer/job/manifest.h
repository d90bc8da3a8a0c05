/* consumer/job/manifest.h makes the manifest of a prepared job, which the agents read. The header
 * is not installed. */
#ifndef BOURSE_CONSUMER_JOB_MANIFEST_H
#define BOURSE_CONSUMER_JOB_MANIFEST_H

#include "consumer/job/bourse_job.h"
#include "protocol/codec.h"

/* Makes the manifest from the job's file, inputs and parts. The call sets the number of subtasks of
 * the job, and of its part in a job without tasks. `folder` is the job file's folder. */
bool manifest_make(struct bourse_job *job, const char *folder, struct bourse_error *error);

/* Makes the manifest of a job with these subtasks, which stay the caller's. */
bool manifest_make_of(struct bourse_job *job, Bourse__V1__ManifestSubtask **subtasks, size_t count,
                      struct bourse_error *error);

/* Encodes the manifest and keeps the bytes and their hash in the job, whose old bytes stay the
 * caller's. */
bool manifest_encode(struct bourse_job *job, const Bourse__V1__Manifest *manifest,
                     struct bourse_error *error);

/* Completes a manifest with the job's terms and checks, encodes it, validates it as the agents do,
 * and keeps it in the job. The caller must not use the manifest afterwards. */
bool manifest_finish(struct bourse_job *job, Bourse__V1__Manifest *manifest,
                     struct bourse_error *error);

/* Writes the expected time of each part and task, the quote's figures, and the offered slots into
 * the manifest. A job that may have been submitted keeps its manifest, so the first call counts. */
struct supply;
bool manifest_expect(struct bourse_job *job, const struct bourse_quote *quote,
                     const struct supply *supply, struct bourse_error *error);

/* Returns the bytes that each device fetches once for all subtasks: the image and the shared files.
 * The result is INT64_MAX at most. */
int64_t manifest_shared_bytes(const Bourse__V1__Manifest *manifest);
/* Returns the bytes of a subtask's own inputs, without outputs of other subtasks; 0 for an unlisted
 * subtask. */
int64_t manifest_own_bytes(const Bourse__V1__Manifest *manifest, uint32_t index);
/* Returns true when a subtask takes output files of other subtasks. */
bool manifest_takes_files(const Bourse__V1__Manifest *manifest, uint32_t index);

#endif
