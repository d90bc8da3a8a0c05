/* consumer/job/input/job_inputs.h finds the files that a job file names, and hashes them.
 *
 * The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_INPUT_JOB_INPUTS_H
#define BOURSE_CONSUMER_JOB_INPUT_JOB_INPUTS_H

#include "consumer/job/bourse_job.h"

#include <stdbool.h>

/* Returns true for a job of programs, whose work folders keep folders, links and times. Executors
 * that compute with files alone have no use for these. */
bool job_inputs_have_trees(const struct job_file *file);
/* Finds the files that the job names, and looks whether each can be opened. Relative names are
 * below `folder`. Returns false with the error. */
bool job_inputs_find(struct bourse_job *job, const char *folder, const char *file_name,
                     struct bourse_error *error);
/* Adds the listings of folders, packs many files into archives, and hashes every input. Returns
 * false with the error. */
bool job_inputs_hash(struct bourse_job *job, const char *file_name, struct bourse_error *error);
void job_inputs_fini(struct bourse_job *job);
/* Returns false with an error that names the place of a wrong input: "job.yaml:4: files: ...".
 * `bourse run` has no file. */
bool job_inputs_failed(const char *file_name, unsigned line, const char *key,
                       const struct problem *problem, struct bourse_error *error);

#endif
