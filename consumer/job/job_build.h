/* consumer/job/job_build.h makes a manifest, a list of blobs and the numbers of SubmitJob from a job
 * file and the files that it names. Nothing is sent. Not installed. */
#ifndef BOURSE_CONSUMER_JOB_JOB_BUILD_H
#define BOURSE_CONSUMER_JOB_JOB_BUILD_H

#include "consumer/job/bourse_job.h"

/* Takes `file` over, also when it fails. Names are relative to `folder`. `file_name` is the job
 * file's, for messages; NULL when there is none. */
bool job_build(struct job_file *file, const char *folder, const char *file_name,
               struct bourse_job **ret_job, struct bourse_error *error);

/* The one part of a job without tasks, from its file; how many subtasks it has is left open. */
bool job_build_part(struct bourse_job *job, struct bourse_error *error);

#endif
