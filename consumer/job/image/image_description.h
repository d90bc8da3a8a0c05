/* consumer/job/image/image_description.h finds one image in a layout or a saved archive. An image
 * has a configuration and layers. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_IMAGE_IMAGE_DESCRIPTION_H
#define BOURSE_CONSUMER_JOB_IMAGE_IMAGE_DESCRIPTION_H

#include "base/id.h"
#include "base/problem.h"
#include "consumer/job/image/image_source.h"
#include "formats/image/image_documents.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_layer_file {
    char path[IMAGE_PATH_BYTES]; /* in the source */
    bool has_digest;             /* the file has this hash, and the size beside it */
    struct hash32 digest;
    uint64_t size;
};

struct image_description {
    struct image_config config;
    struct hash32 root_hash; /* of all that decides the root: the layers and WorkingDir */
    struct image_layer_file layers[IMAGE_LAYERS];
    size_t layer_count;
};

/* Finds the image. In a layout of several platforms, `arch` chooses one, by the name that devices
 * use, such as x86_64 (NULL: any). Refuses an image that is not for Linux, and a document whose
 * bytes do not have its digest. A failed call leaves a problem. The caller calls
 * image_description_fini, on failure too. */
bool image_describe(const struct image_source *source, enum image_form form, const char *arch,
                    struct image_description *ret_description, struct problem *ret_problem);
void image_description_fini(struct image_description *description);

#endif
