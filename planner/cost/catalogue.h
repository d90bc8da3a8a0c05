/* planner/cost/catalogue.h - devices by name: the rows of planner/cost/devices.csv, compiled in.
 *
 * Every figure is declared, by the sources that stand in its row; those the row marks as unverified
 * are marked here. A blank of the file is an unknown figure: its vendor publishes none, or the
 * device has no such mode. The instrument is made of the row's class and id: tpu, google-tpu-v5p:
 * "tpu.google.v5p". The file becomes a table when bourse is built (planner/cost/catalogue.awk).
 * Pure. */
#ifndef BOURSE_PLANNER_COST_CATALOGUE_H
#define BOURSE_PLANNER_COST_CATALOGUE_H

#include "planner/cost/profile.h"

#include <stddef.h>

struct catalogue_device {
    const char *id;         /* groq-lpu-v1 */
    const char *vendor;     /* "AMD/Xilinx" */
    const char *model;      /* as the vendor says */
    const char *kind;       /* tpu */
    const char *variant;    /* tpu-edge; "": none */
    const char *instrument; /* lpu.groq.v1 */
    const char *memory_type;
    const char
        *fabric; /* NVLink: whose the interconnect is; "": the bus by which it is in its machine */
    const char *sources; /* of the figures */
    const char *notes;
    struct device_profile profile;
};

size_t catalogue_count(void);
/* In the order of the file; `index` is below the count. */
const struct catalogue_device *catalogue_at(size_t index);
const struct catalogue_device *catalogue_find(const char *id);                  /* NULL: none */
const struct catalogue_device *catalogue_by_instrument(const char *instrument); /* the same */

#endif
