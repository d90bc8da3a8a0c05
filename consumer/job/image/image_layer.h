/* consumer/job/image/image_layer.h opens a layer of a container image without its compression. The
 * header is not installed.
 *
 * The bytes decide which compression a layer has: none, gzip or zstd. A compressed layer becomes a
 * temporary file without a name, so nothing is left behind. Every byte is hashed on the way. */
#ifndef BOURSE_CONSUMER_JOB_IMAGE_IMAGE_LAYER_H
#define BOURSE_CONSUMER_JOB_IMAGE_IMAGE_LAYER_H

#include "base/id.h"
#include "base/problem.h"
#include "consumer/job/image/image_source.h"

#include <stdbool.h>
#include <stdint.h>

/* Opens the layer that `part` holds. The part's bytes have the hash `digest` (NULL: any), and the
 * layer's own bytes the hash `diff_id`. The layer has at most *left bytes, and these are taken off
 * *left. The layer without compression uses the part's descriptor, which must live as long. A
 * failed call leaves a problem and nothing open. */
bool image_layer_open(const struct image_part *part, const struct hash32 *digest,
                      const struct hash32 *diff_id, uint64_t *left, struct image_part *ret_layer,
                      struct problem *ret_problem);

#endif
