/* consumer/job/image/image_cache.h keeps the archives that were made of container images, so that
 * each image is flattened once. The header is not installed.
 *
 *     $XDG_CACHE_HOME/bourse/images/<64 hex digits of image_description's root_hash>-1.tar
 *
 * The folder is private. A file gets its name once it is whole. Above a cap, the files go that were
 * used longest ago. Without a folder nothing is kept, and everything else works. */
#ifndef BOURSE_CONSUMER_JOB_IMAGE_IMAGE_CACHE_H
#define BOURSE_CONSUMER_JOB_IMAGE_IMAGE_CACHE_H

#include "base/id.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

enum { IMAGE_CACHE_FILES = 64 };
#define IMAGE_CACHE_BYTES (UINT64_C(16) << 30)

/* Opens the folder, made where it is missing. Returns -1 without one. */
int image_cache_open(void);
/* Returns a descriptor of the image's archive, or -1. */
int image_cache_find(int folder, const struct hash32 *image);
/* Returns an empty file without a name, in the folder or among the temporary files, or -1 with the
 * problem. */
int image_cache_begin(int folder, struct problem *ret_problem);
/* Names the whole file after its image, and removes what is above the caps. Nothing depends on the
 * success. */
void image_cache_keep(int folder, const struct hash32 *image, int fd);

#endif
