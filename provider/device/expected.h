/* provider/device/expected.h compares what was measured of a device for kernels with the figures
 * that the catalogue has of its model.
 *
 * Only rates that the measuring kernels can reach are compared: float32 without matrix units, and a
 * copy. A device far below its model is offered all the same, with what was measured. Its owner
 * learns of it, because something is wrong with the device or with what it is taken for. Pure. */
#ifndef BOURSE_PROVIDER_DEVICE_EXPECTED_H
#define BOURSE_PROVIDER_DEVICE_EXPECTED_H

#include "planner/cost/catalogue.h"
#include "provider/device/kernel_device.h"

#include <stdbool.h>

enum {
    /* A figure is far below the catalogue's when it is less than this share of it, in percent. The
     * kernels reach 60 to 95 % on a device that is well. */
    EXPECTED_SHARE_PERCENT = 50,
    /* A copy reads and writes each byte, and the measured bandwidth counts it once. */
    EXPECTED_COPY_TRIPS = 2,
    EXPECTED_TEXT_SIZE = 512,
};

/* Returns the catalogue's row of the model that the driver names, or NULL when the catalogue has no
 * such row. A part of a device, such as an instance of MIG, has the row of the whole. */
const struct catalogue_device *expected_row(const struct kernel_device *device);

/* Returns true when the device has a row and a measured figure is far below it. The text then says
 * the model, both figures, what follows and the likely causes, in one line. */
bool expected_tell(const struct kernel_device *device, char ret_text[EXPECTED_TEXT_SIZE]);

#endif
