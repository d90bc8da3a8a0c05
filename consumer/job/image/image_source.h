/* consumer/job/image/image_source.h opens the files of a container image where they lie, in a
 * folder or in a tar archive of one. The header is not installed.
 *
 * Nothing is unpacked: a file of an archive is a range of the archive's bytes. No link leads out of
 * the folder or archive. */
#ifndef BOURSE_CONSUMER_JOB_IMAGE_IMAGE_SOURCE_H
#define BOURSE_CONSUMER_JOB_IMAGE_IMAGE_SOURCE_H

#include "base/id.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IMAGE_MEMBERS = 4096 }; /* files in the archive of an image */

enum image_form {
    IMAGE_FORM_ROOT,   /* no container image: a plain tar of a root, or anything else */
    IMAGE_FORM_LAYOUT, /* an OCI image layout */
    IMAGE_FORM_SAVED,  /* what `docker save` writes */
};

struct image_member; /* a file or link in an archive */
struct image_source {
    int fd; /* of the folder or archive; -1: none */
    bool is_folder;
    struct image_member *members; /* sorted by name */
    size_t count;
    bool is_cut; /* the archive has more than IMAGE_MEMBERS files */
};

/* Looks at the folder or file. For IMAGE_FORM_ROOT the source has nothing open. A failed call
 * leaves a problem. The caller ends the source, on failure too. */
bool image_source_open(const char *path, struct image_source *ret_source, enum image_form *ret_form,
                       struct problem *ret_problem);
void image_source_fini(struct image_source *source);

/* A file of the image: `size` bytes of `fd` from `offset` on. */
struct image_part {
    int fd;      /* -1: none */
    bool is_own; /* image_part_fini closes fd; else it is the source's */
    uint64_t offset, size;
};
bool image_source_part(const struct image_source *source, const char *name,
                       struct image_part *ret_part, struct problem *ret_problem);
void image_part_fini(struct image_part *part);

/* Reads a whole file of at most IMAGE_DOCUMENT_BYTES. With `digest`, the bytes have this hash, or
 * the call fails. The caller frees the bytes. */
bool image_source_read(const struct image_source *source, const char *name,
                       const struct hash32 *digest, uint8_t **ret_bytes, size_t *ret_length,
                       struct problem *ret_problem);

#endif
