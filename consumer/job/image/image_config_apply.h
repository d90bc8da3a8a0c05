/* consumer/job/image/image_config_apply.h makes the configuration of a container image part of a
 * job, as Docker does where a job can. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_IMAGE_IMAGE_CONFIG_APPLY_H
#define BOURSE_CONSUMER_JOB_IMAGE_IMAGE_CONFIG_APPLY_H

#include "base/problem.h"
#include "consumer/job/bourse_job.h"
#include "formats/image/image_documents.h"

/* Puts the entrypoint before each command, the image's command where the job has none, and the
 * image's variables below the job's. Sets job->start. `root_fd` is the archive of the root, in
 * which the names of users are looked up. */
bool image_config_apply(struct bourse_job *job, const struct image_config *config, int root_fd,
                        struct problem *ret_problem);

#endif
