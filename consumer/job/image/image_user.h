/* consumer/job/image/image_user.h finds the numbers of the user that a container image names. The
 * header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_IMAGE_IMAGE_USER_H
#define BOURSE_CONSUMER_JOB_IMAGE_IMAGE_USER_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

enum { IMAGE_USER_FILE_BYTES = 1 << 20 }; /* /etc/passwd or /etc/group */

/* Finds the numbers of USER[:GROUP], each of which is a name or a number. Names are looked up in
 * /etc/passwd and /etc/group of the archive `root_fd`; "root" is 0 where these do not say. Without
 * GROUP, the group of USER counts; it is 0 when /etc/passwd does not have USER. Returns false with
 * the problem for an unknown name. */
bool image_user_find(const char *text, int root_fd, uint32_t *ret_user, uint32_t *ret_group,
                     struct problem *ret_problem);

#endif
