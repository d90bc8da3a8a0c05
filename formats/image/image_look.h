/* formats/image/image_look.h looks paths up in the root of a container image, through symbolic
 * links, as the kernel does for a program in a jail.
 *
 * The root is the archive that consumer/job/image/image_flatten.h writes: every folder has an entry
 * of its own. Nothing is unpacked. Pure. */
#ifndef BOURSE_FORMATS_IMAGE_IMAGE_LOOK_H
#define BOURSE_FORMATS_IMAGE_IMAGE_LOOK_H

#include "base/problem.h"
#include "formats/tar.h"

#include <stdint.h>

enum { IMAGE_LOOK_PATH_BYTES = 4096, IMAGE_LOOK_LINKS = 40 }; /* the kernel's own bounds */

enum image_look_status {
    IMAGE_LOOK_FOUND,
    IMAGE_LOOK_ABSENT,    /* nothing is at `place` */
    IMAGE_LOOK_NO_FOLDER, /* the path continues below `place`, and `place` is no folder */
    IMAGE_LOOK_LOOP,      /* the path leads through more than IMAGE_LOOK_LINKS links */
    /* The path leads into /proc, /dev, /work or /tmp, which the jail provides itself, or is
     * longer than IMAGE_LOOK_PATH_BYTES. */
    IMAGE_LOOK_UNKNOWN,
};

struct image_found {
    enum image_look_status status;
    char type;             /* '0' file, '5' folder, '6' FIFO, or a device, as in tar_entry */
    unsigned mode;         /* as in tar_entry */
    uint64_t offset, size; /* content of a file, in the archive */
    char place[IMAGE_LOOK_PATH_BYTES]; /* the path without links and without "/" at its start */
};

struct image_look;

/* Reads every header of the archive. Returns NULL with the problem when memory is short or the
 * archive cannot be read. */
struct image_look *image_look_create(const struct tar_source *source, struct problem *ret_problem);
void image_look_destroy(struct image_look **self);

/* Looks up a path, which always begins at the root; the first "/" may be missing. */
void image_look_find(const struct image_look *look, const char *path,
                     struct image_found *ret_found);

#endif
