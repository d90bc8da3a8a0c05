/* base/device_kind.h lists the kinds of devices that a market knows, each with its variants.
 *
 * A device's attribute `kind` is a set. A Coral stick is `tpu` and also `tpu-edge`, so that a
 * requirement may ask for either. The first word of an instrument is the kind; `family`
 * describes its other words. */
#ifndef BOURSE_BASE_DEVICE_KIND_H
#define BOURSE_BASE_DEVICE_KIND_H

#include <stddef.h>

enum { KIND_VARIANTS_MAX = 4 };

struct device_kind {
    const char *name;                        /* e.g. tpu */
    const char *meaning;                     /* for the manual */
    const char *family;                      /* e.g. tpu.VENDOR.MODEL */
    const char *variants[KIND_VARIANTS_MAX]; /* e.g. tpu-edge; NULL after the last */
};

/* Returns the table of kinds, which lives as long as the program. */
const struct device_kind *device_kinds(size_t *ret_count);

#endif
