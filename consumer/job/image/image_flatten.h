/* consumer/job/image/image_flatten.h makes one tar archive of a container image's layers, which
 * agents unpack as a root file system. The header is not installed.
 *
 * Nothing is unpacked here. An index of paths says which layer has the last version of each file,
 * and the archive is written from the layers. The same image gives the same bytes. */
#ifndef BOURSE_CONSUMER_JOB_IMAGE_IMAGE_FLATTEN_H
#define BOURSE_CONSUMER_JOB_IMAGE_IMAGE_FLATTEN_H

#include "base/problem.h"
#include "consumer/job/image/image_description.h"

#include <stdbool.h>
#include <stdint.h>

struct image_flatten_caps {
    uint32_t paths;       /* in all layers, removed ones too */
    uint64_t text_bytes;  /* names and links in all layers */
    uint64_t layer_bytes; /* all layers together, without their compression */
};
extern const struct image_flatten_caps image_flatten_caps; /* the caps for jobs */

/* Writes the archive to the empty file `fd`, and checks that agents would unpack the archive. After
 * a failure the content of the file is undefined, and the problem names the layer. */
bool image_flatten(const struct image_source *source, const struct image_description *description,
                   const struct image_flatten_caps *caps, int fd, struct problem *ret_problem);

#endif
