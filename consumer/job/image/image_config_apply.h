/* consumer/job/image/image_config_apply.h makes the configuration of a container image part of a
 * job, as Docker does where a job can. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_IMAGE_IMAGE_CONFIG_APPLY_H
#define BOURSE_CONSUMER_JOB_IMAGE_IMAGE_CONFIG_APPLY_H

#include "base/problem.h"
#include "consumer/job/bourse_job.h"
#include "formats/image/image_documents.h"

/* Puts the image's entrypoint before each command of the job. The image's command stands in where
 * the job has none, and the image's variables where the job does not set them. Sets job->start. The
 * names of users are looked up in the archive `root_fd`. */
bool image_config_apply(struct bourse_job *job, const struct image_config *config, int root_fd,
                        struct problem *ret_problem);

#endif
