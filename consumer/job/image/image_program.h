/* consumer/job/image/image_program.h checks before a job is bought that its programs can start in a
 * container image. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_IMAGE_IMAGE_PROGRAM_H
#define BOURSE_CONSUMER_JOB_IMAGE_IMAGE_PROGRAM_H

#include "base/problem.h"
#include "consumer/job/bourse_job.h"

#include <stdbool.h>

/* Checks that the program of every command is in the image. `root_fd` is the archive of the image's
 * root. The check looks up a program as the jail does: by its path, or along PATH. The image's
 * configuration is part of the job already. Returns false with the problem when a program can start
 * on no device. A program in a folder that the jail provides itself, or with a placeholder in its
 * name, passes. */
bool image_program_check(const struct bourse_job *job, int root_fd, struct problem *ret_problem);

#endif
