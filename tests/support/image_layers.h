/* tests/support/image_layers.h writes layers as tar archives in memory, hostile layers too. */
#ifndef BOURSE_TESTS_SUPPORT_IMAGE_LAYERS_H
#define BOURSE_TESTS_SUPPORT_IMAGE_LAYERS_H

#include "formats/tar.h"

#include <stddef.h>
#include <stdint.h>

/* A layer_entry is one entry of a layer. For a file, `link` is its content. */
struct layer_entry {
    char type;
    const char *name;
    const char *link;
    unsigned mode; /* 0: 0644 */
};

/* Writes the entries and the end of the archive. An entry of type 0 ends the list. The caller frees
 * the bytes. */
uint8_t *layer_make(const struct layer_entry *entries, size_t *ret_length);

#endif
