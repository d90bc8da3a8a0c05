/* consumer/job/image/image_use.h makes a container image the root file system of a job. The header
 * is not installed.
 *
 * `image:` names an OCI image layout (a folder, or a tar of it), a tar of `docker save`, or an
 * image that skopeo knows. The layers become one archive. The image's configuration becomes part of
 * the job: entrypoint, command, variables, folder, user, and the architecture that a device must
 * have. A plain tar of a root file system stays as it is. */
#ifndef BOURSE_CONSUMER_JOB_IMAGE_IMAGE_USE_H
#define BOURSE_CONSUMER_JOB_IMAGE_IMAGE_USE_H

#include "base/problem.h"
#include "consumer/job/bourse_job.h"

/* Looks at the image of job->file, if it has one, before the job's parts are made. A container
 * image fills job->image and job->start, and changes `run` and `env` of the file. Names are
 * relative to `folder`. A failed call leaves a problem, and the job is of no use. */
bool image_use(struct bourse_job *job, const char *folder, struct problem *ret_problem);

/* Appends the archive that the image becomes to a list, to send it again. A plain tar is appended
 * itself. Of an image of several platforms, the one that the needs ask for is taken. */
bool image_use_archive(const char *folder, const char *name, const struct requirement *needs,
                       struct input_list *list, struct problem *ret_problem);

#endif
