/* consumer/job/job_build.h makes a manifest, a list of blobs and the numbers of SubmitJob from a
 * job file and its files. The code sends nothing, and the header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_JOB_BUILD_H
#define BOURSE_CONSUMER_JOB_JOB_BUILD_H

#include "consumer/job/bourse_job.h"

/* Builds a job and takes `file` over, on failure too. Names are relative to `folder`. `file_name`
 * is the name of the job file for messages, or NULL. */
bool job_build(struct job_file *file, const char *folder, const char *file_name,
               struct bourse_job **ret_job, struct bourse_error *error);

/* Reads a job file and builds its job, as bourse_job_load does. `edit` may change what the file
 * says before the job is built. It returns false and the problem when the result is no good job. */
typedef bool job_file_edit(void *context, struct job_file *file, struct problem *ret_problem);
bool job_build_load(const char *path, job_file_edit *edit, void *context,
                    struct bourse_job **ret_job, struct bourse_error *error);

/* The name in the work folder of what is piped in; {in} stands for it. */
#define JOB_BUILD_PIPED_NAME "stdin"
/* Builds a job like job_build. Its one subtask reads the file of descriptor `piped_fd` as standard
 * input. The job owns the descriptor, on failure too; -1: none. */
bool job_build_piped(struct job_file *file, const char *folder, int piped_fd,
                     struct bourse_job **ret_job, struct bourse_error *error);

/* The steps of every job, whatever its subtasks are made of. */

/* Begins a job with an id of its own and room for its parts. Takes `file` over, on failure too; it
 * may be NULL. Returns NULL when memory is short. */
struct bourse_job *job_build_begin(struct job_file *file);
/* Makes the one part of a job without tasks from its file. The number of subtasks stays open. */
bool job_build_part(struct bourse_job *job, struct bourse_error *error);

#endif
