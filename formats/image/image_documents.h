/* formats/image/image_documents.h reads the JSON documents of container images. These are the
 * index, the manifest and the configuration of OCI, and the manifest of `docker save`.
 *
 * The documents come from strangers. Every list has a cap, digests are SHA-256 alone, and unknown
 * keys are ignored, as the OCI specification asks. Pure. */
#ifndef BOURSE_FORMATS_IMAGE_IMAGE_DOCUMENTS_H
#define BOURSE_FORMATS_IMAGE_IMAGE_DOCUMENTS_H

#include "base/id.h"
#include "base/problem.h"
#include "formats/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    IMAGE_DOCUMENT_BYTES = 4 << 20, /* one document */
    IMAGE_MANIFESTS = 256,          /* of an index, or of `docker save` */
    IMAGE_LAYERS = 128,             /* Docker itself makes 127 at most */
    IMAGE_PATH_BYTES = 512,         /* path of a file of `docker save` */
    IMAGE_WORD_BYTES = 64,          /* an architecture, an operating system */
};

struct image_blob {
    struct hash32 digest;
    uint64_t size;
};

/* An entry of an index: a manifest, or another index. */
struct image_choice {
    struct image_blob blob;
    bool is_index;
    bool has_platform;
    bool is_attestation; /* the manifest describes another manifest, and is no image */
    char os[IMAGE_WORD_BYTES], arch[IMAGE_WORD_BYTES];
    char name[IMAGE_PATH_BYTES]; /* "": none */
};
struct image_index {
    struct image_choice *items;
    size_t count;
};
bool image_index_read(const void *bytes, size_t length, struct image_index *ret_index,
                      struct problem *ret_problem);
void image_index_fini(struct image_index *index);

struct image_manifest {
    struct image_blob config;
    struct image_blob layers[IMAGE_LAYERS]; /* the lowest first */
    size_t layer_count;
};
bool image_manifest_read(const void *bytes, size_t length, struct image_manifest *ret_manifest,
                         struct problem *ret_problem);

/* An image_saved is what `docker save` writes of one image. The paths are in the same archive. */
struct image_saved {
    char config[IMAGE_PATH_BYTES];
    char layers[IMAGE_LAYERS][IMAGE_PATH_BYTES];
    size_t layer_count;
};
/* Returns true when the bytes look like the manifest of `docker save`, with or without faults. */
bool image_saved_is(const void *bytes, size_t length);
bool image_saved_read(const void *bytes, size_t length, struct image_saved *ret_saved,
                      struct problem *ret_problem);

/* An image_config says how a program of the image starts, and what its layers must be. */
struct image_config {
    char os[IMAGE_WORD_BYTES], arch[IMAGE_WORD_BYTES]; /* as Go names them: "linux", "amd64" */
    char *user;                                        /* "": none; else NAME|ID[:NAME|ID] */
    char *directory;                                   /* "": none */
    struct job_strings env;                            /* NAME=VALUE; the last of a name counts */
    struct job_strings entrypoint, cmd;
    struct hash32 diff_ids[IMAGE_LAYERS]; /* SHA-256 of each layer without its compression */
    size_t layer_count;
};
/* The caller calls image_config_fini, on failure too. */
bool image_config_read(const void *bytes, size_t length, struct image_config *ret_config,
                       struct problem *ret_problem);
void image_config_fini(struct image_config *config);

/* Returns the name that devices use for an architecture: x86_64 for Go's amd64. NULL: unknown. */
const char *image_arch(const char *go_name);
/* Returns Go's name for an architecture: amd64 for x86_64. NULL: unknown. */
const char *image_arch_of_device(const char *name);

#endif
