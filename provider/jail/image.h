/* provider/jail/image.h unpacks a root image, which is a tar blob, into a folder that jails use as
 * their read-only root.
 *
 * The archive comes from a stranger, so the host's tar unpacks it inside a jail of its own, never
 * the agent. Only plain (uncompressed) tar is accepted. The agent checks the headers first
 * (formats/tar.h), so the unpacked files and bytes are bounded. Devices below /dev are left out. */
#ifndef BOURSE_PROVIDER_JAIL_IMAGE_H
#define BOURSE_PROVIDER_JAIL_IMAGE_H

#include "base/problem.h"
#include "formats/tar.h"
#include "provider/jail/jail.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum image_status {
    IMAGE_OK,
    IMAGE_UNFIT,     /* the maker's fault: no archive, or no root image */
    IMAGE_TOO_LARGE, /* the maker's fault: more files or bytes than `limits` */
    IMAGE_NO_ROOM,   /* this machine's disk is full */
    IMAGE_FAILED,    /* another fault of this machine */
    IMAGE_GIVEN_UP,  /* `give_up` became true */
};

/* Unpacks the `size` bytes of `tar_fd`, read from offset 0, into the new folder `path`. The path is
 * absolute; its parent folder is private to the agent. On failure nothing is left. The problem says
 * what is wrong, and whose fault it is. The call ends soon after `give_up` (may be NULL) became
 * true. For IMAGE_OK, *ret_has (may be NULL) gets the archive's entries and bytes. */
enum image_status image_unpack(struct launcher *launcher, const char *worker_path,
                               struct cgroups *cgroups, int tar_fd, uint64_t size,
                               const struct tar_limits *limits, const char *path,
                               const atomic_bool *give_up, struct tar_limits *ret_has,
                               struct problem *ret_problem);
/* Removes a folder that image_unpack made, with everything in it, from inside a jail. */
bool image_remove(struct launcher *launcher, const char *worker_path, struct cgroups *cgroups,
                  const char *path, struct problem *ret_problem);

#endif
