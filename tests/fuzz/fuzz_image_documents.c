/* The target reads any bytes as the JSON documents of container images. What is read keeps within
 * the caps. */
#include "formats/image/image_documents.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct problem problem = {.text = ""};
    struct image_index index = {.items = NULL};
    if (image_index_read(data, size, &index, &problem)) {
        assert(index.count <= IMAGE_MANIFESTS);
    }
    image_index_fini(&index);
    struct image_manifest *manifest = calloc(1, sizeof *manifest);
    struct image_saved *saved = calloc(1, sizeof *saved);
    if (manifest != NULL && image_manifest_read(data, size, manifest, &problem)) {
        assert(manifest->layer_count <= IMAGE_LAYERS);
    }
    if (saved != NULL && image_saved_read(data, size, saved, &problem)) {
        assert(image_saved_is(data, size) && saved->layer_count <= IMAGE_LAYERS);
    }
    free(manifest);
    free(saved);
    struct image_config config;
    if (image_config_read(data, size, &config, &problem)) {
        assert(config.layer_count <= IMAGE_LAYERS && config.user != NULL);
    }
    image_config_fini(&config);
    return 0;
}
