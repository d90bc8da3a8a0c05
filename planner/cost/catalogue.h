/* The catalogue holds devices by name. They are the rows of planner/cost/devices.csv, compiled in.
 *
 * Every figure is declared by the sources in its row. A figure that the row marks as unverified is
 * marked here, too. A blank in the file is an unknown figure: the vendor publishes none, or the
 * device has no such mode. The instrument is made from the class and the id of the row: "tpu" and
 * "google-tpu-v5p" give "tpu.google.v5p". The build turns the file into a table
 * (planner/cost/catalogue.awk). */
#ifndef BOURSE_PLANNER_COST_CATALOGUE_H
#define BOURSE_PLANNER_COST_CATALOGUE_H

#include "planner/cost/profile.h"

#include <stddef.h>

struct catalogue_device {
    const char *id;         /* "groq-lpu-v1" */
    const char *vendor;     /* "AMD/Xilinx" */
    const char *model;      /* name used by the vendor */
    const char *kind;       /* "tpu" */
    const char *variant;    /* "tpu-edge"; empty: none */
    const char *instrument; /* "lpu.groq.v1" */
    const char *memory_type;
    /* Name of the interconnect, such as NVLink. An empty name means the bus of the device's
     * machine. */
    const char *fabric;
    const char *sources; /* sources of the figures */
    const char *notes;
    struct device_profile profile;
};

size_t catalogue_count(void);
/* Returns the device at `index`, which is below the count, in the order of the file. */
const struct catalogue_device *catalogue_at(size_t index);
/* Returns the device with this id, or NULL when there is none. */
const struct catalogue_device *catalogue_find(const char *id);
/* Returns the device with this instrument, or NULL when there is none. */
const struct catalogue_device *catalogue_by_instrument(const char *instrument);

#endif
