/* base/kind.h - the kinds of devices that a market knows, each with its variants.
 *
 * A device's attribute `kind` is a set: a Coral stick is `tpu` and also `tpu-edge`, so that a need
 * may ask for either. The first word of an instrument is the kind; `family` says what its other
 * words are. Pure. */
#ifndef BOURSE_BASE_KIND_H
#define BOURSE_BASE_KIND_H

#include <stddef.h>

enum { KIND_VARIANTS_MAX = 4 };

struct device_kind {
    const char *name;                        /* tpu */
    const char *meaning;                     /* for the manual */
    const char *family;                      /* tpu.VENDOR.MODEL */
    const char *variants[KIND_VARIANTS_MAX]; /* tpu-edge; NULL from the end of them on */
};

const struct device_kind *device_kinds(size_t *ret_count);
/* The kind of that name, or of which it is a variant; NULL: none. */
const struct device_kind *device_kind_find(const char *name);

#endif
