/* provider/jail/image.h - root images: a tar blob becomes a folder that jails use as their
 * read-only root.
 *
 * The archive is a stranger's: it is unpacked by the host's tar inside a jail of its own, never
 * by the agent. Plain (uncompressed) tar only, and the agent looks at its headers before
 * (formats/tar.h), so that what comes out is bounded in files and in bytes. Devices below /dev are
 * left out. */
#ifndef BOURSE_PROVIDER_JAIL_IMAGE_H
#define BOURSE_PROVIDER_JAIL_IMAGE_H

#include "base/problem.h"
#include "formats/tar.h"
#include "provider/jail/jail.h"

#include <stdbool.h>
#include <stdint.h>

enum image_status {
    IMAGE_OK,
    IMAGE_UNFIT,     /* whoever made it is at fault: it is no archive, or none for a root */
    IMAGE_TOO_LARGE, /* likewise: it has more files or bytes than `limits` */
    IMAGE_NO_ROOM,   /* this machine's disk is full */
    IMAGE_FAILED,    /* this machine is at fault in another way */
};

/* Unpacks the `size` bytes of `tar_fd` (read from offset 0) into the new folder `path`
 * (absolute; its parent is ours and private). Whole or not at all: on failure nothing is left.
 * The problem says what is wrong, and with whom. */
enum image_status image_unpack(struct launcher *launcher, const char *worker_path,
                               struct cgroups *cgroups, int tar_fd, uint64_t size,
                               const struct tar_limits *limits, const char *path,
                               struct problem *ret_problem);
/* Removes such a folder, whatever is in it, from inside a jail. */
bool image_remove(struct launcher *launcher, const char *worker_path, struct cgroups *cgroups,
                  const char *path, struct problem *ret_problem);

#endif
