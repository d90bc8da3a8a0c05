/* provider/image.h - root images: a tar blob becomes a folder that jails use as their read-only
 * root.
 *
 * The archive is a stranger's: it is unpacked by the host's tar inside a jail of its own, never
 * by the agent. Plain (uncompressed) tar only, so that the blob's size bounds what comes out.
 * Device nodes are left out. */
#ifndef BOURSE_PROVIDER_IMAGE_H
#define BOURSE_PROVIDER_IMAGE_H

#include "base/problem.h"
#include "provider/jail.h"

#include <stdbool.h>
#include <stdint.h>

/* Unpacks the `size` bytes of `tar_fd` (read from offset 0) into the new folder `path`
 * (absolute; its parent is ours and private). Whole or not at all: on failure nothing is left.
 * The problem says what is wrong with the archive. */
bool image_unpack(struct launcher *launcher, const char *worker_path, struct cgroups *cgroups,
                  int tar_fd, uint64_t size, const char *path, struct problem *ret_problem);
/* Removes such a folder, whatever is in it, from inside a jail. */
bool image_remove(struct launcher *launcher, const char *worker_path, struct cgroups *cgroups,
                  const char *path, struct problem *ret_problem);

#endif
