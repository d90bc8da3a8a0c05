/* consumer/job/named.h - whether the files that a job's commands name are there for them. Not
 * installed. Only reads.
 *
 * A subtask sees the files of its job and nothing else of this machine. What is sure to fail there
 * is found before anything is sent: a factor that is none of the job's files, is no float32 matrix,
 * or does not fit the other; a script that is not sent; a file of the job's folder that a command
 * names and that is not sent. */
#ifndef BOURSE_CONSUMER_JOB_NAMED_H
#define BOURSE_CONSUMER_JOB_NAMED_H

#include "base/problem.h"
#include "consumer/job/bourse_job.h"

/* Of a job whose files are found. False with the problem, and the line of the job file that it is
 * about (0: none). */
bool named_check(const struct bourse_job *job, const char *folder, unsigned *ret_line,
                 struct problem *ret_problem);

#endif
