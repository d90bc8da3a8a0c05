/* consumer/job/input_check.h checks that the files named in a job's commands will be there for
 * them. The code only reads, and the header is not installed.
 *
 * A subtask sees the files of its job and nothing else of this machine. The check finds sure
 * failures before anything is sent. One kind is a factor that is not among the job's files, is no
 * float32 matrix, or does not fit the other factor. Another kind is a command that names a script
 * or a file of the job's folder which is not sent. */
#ifndef BOURSE_CONSUMER_JOB_INPUT_CHECK_H
#define BOURSE_CONSUMER_JOB_INPUT_CHECK_H

#include "base/problem.h"
#include "consumer/job/bourse_job.h"

/* Checks a job whose files are found. Returns false and the problem, with the line of the job file,
 * or 0. */
bool input_check_job(const struct bourse_job *job, const char *folder, unsigned *ret_line,
                     struct problem *ret_problem);

#endif
