/* tests/support/image_layers.h writes tar archives of layers in memory, hostile ones too. */
#ifndef BOURSE_TESTS_SUPPORT_IMAGE_LAYERS_H
#define BOURSE_TESTS_SUPPORT_IMAGE_LAYERS_H

#include "formats/tar.h"

#include <stddef.h>
#include <stdint.h>

/* An entry; `link` is also the content of a file ("": an empty one). */
struct layer_entry {
    char type;
    const char *name;
    const char *link;
    unsigned mode; /* 0: 0644 */
};

/* Writes the entries, of which the last has the type 0, and the end. The caller frees the bytes. */
uint8_t *layer_make(const struct layer_entry *entries, size_t *ret_length);

#endif
