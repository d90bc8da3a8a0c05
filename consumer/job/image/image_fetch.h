/* consumer/job/image/image_fetch.h brings a container image here with skopeo, from a registry or
 * wherever else skopeo finds images. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_IMAGE_IMAGE_FETCH_H
#define BOURSE_CONSUMER_JOB_IMAGE_IMAGE_FETCH_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    IMAGE_FETCH_PATH_BYTES = 4096,
    /* Caps on skopeo: its time, and all that lies in its folder. Layers are compressed, and skopeo
     * keeps a layer twice for a moment. */
    IMAGE_FETCH_TIME_S = 3600,
    IMAGE_FETCH_MIB = 8192,
};

/* Returns true for a name of skopeo's, such as "docker://debian:12" or "oci:FOLDER:NAME". */
bool image_fetch_is_name(const char *name);

/* A fetched image; the folder and all in it go with image_fetched_fini. */
struct image_fetched {
    char folder[IMAGE_FETCH_PATH_BYTES];      /* "": none */
    char layout[IMAGE_FETCH_PATH_BYTES + 16]; /* an OCI image layout of this one image */
    int lock;
};

/* Copies the image of one platform, `arch` as Go names it, into a temporary folder. Relative paths
 * in the name are below `from`. Waits for skopeo, and kills it at a cap above. A failed call leaves
 * a problem with what skopeo says, and no folder. Folders that killed programs left are removed
 * first. */
bool image_fetch(const char *name, const char *from, const char *arch,
                 struct image_fetched *ret_fetched, struct problem *ret_problem);
/* Does the same with caps that the caller chooses. */
struct image_fetch_caps {
    int64_t time_ms;
    uint64_t bytes;
};
bool image_fetch_within(const char *name, const char *from, const char *arch,
                        const struct image_fetch_caps *caps, struct image_fetched *ret_fetched,
                        struct problem *ret_problem);
void image_fetched_fini(struct image_fetched *fetched);

#endif
