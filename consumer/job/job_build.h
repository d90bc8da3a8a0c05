/* consumer/job/job_build.h makes a manifest, a list of blobs and the numbers of SubmitJob from a
 * job file and its files. The code sends nothing, and the header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_JOB_BUILD_H
#define BOURSE_CONSUMER_JOB_JOB_BUILD_H

#include "consumer/job/bourse_job.h"

/* Builds a job and takes `file` over, on failure too. Names are relative to `folder`. `file_name`
 * is the name of the job file for messages, or NULL. */
bool job_build(struct job_file *file, const char *folder, const char *file_name,
               struct bourse_job **ret_job, struct bourse_error *error);

/* The steps of every job, whatever its subtasks are made of. */

/* Begins a job with an id of its own and room for its parts. Takes `file` over, on failure too; it
 * may be NULL. Returns NULL when memory is short. */
struct bourse_job *job_build_begin(struct job_file *file);
/* Makes the one part of a job without tasks from its file. The number of subtasks stays open. */
bool job_build_part(struct bourse_job *job, struct bourse_error *error);

#endif
