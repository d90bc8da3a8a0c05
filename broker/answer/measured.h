/* Measured times say how long work took, by its name, the size of its inputs, and the device's
 * class.
 *
 * The market trades devices by class (their instrument). Devices of a class may have different
 * speeds, which a median of all hides. So single devices have rows too, in a table of their own, so
 * that they do not displace classes. Each row keeps the newest times of planner/cost/history.h,
 * which defines outliers. There are at most MEASURED_ROWS rows: the row measured longest ago makes
 * room. The times advise planners. They are no part of the exchange, and no decision depends on
 * them. No file, no clock. */
#ifndef BOURSE_BROKER_ANSWER_MEASURED_H
#define BOURSE_BROKER_ANSWER_MEASURED_H

#include "planner/cost/history.h"
#include "protocol/work.h"

#include <stdbool.h>
#include <stddef.h>

enum { MEASURED_ROWS = 16384, MEASURED_CLASS_SIZE = 64 };

/* All zeros stand for all devices of a class. */
struct measured_device {
    struct key32 provider;
    struct id128 device; /* id that the provider gave it */
};

struct measured_row {
    struct work work;
    char device_class[MEASURED_CLASS_SIZE]; /* "" for a device without an instrument */
    struct measured_device device;
    int64_t at_ns; /* log time of the newest time */
    struct history history;
};

struct measured;

/* Returns NULL when memory is short. */
struct measured *measured_create(void);
void measured_destroy(struct measured **self);

/* Adds one time of a class, or of a device of the class. Returns false and adds nothing when
 * `took_ns` is not above 0. */
bool measured_add(struct measured *measured, const struct work *work, const char *device_class,
                  const struct measured_device *device, int64_t took_ns, int64_t at_ns);
/* Stores a row as it was; the row then is the newest. */
void measured_put(struct measured *measured, const struct measured_row *row);

/* Returns the number of rows. */
size_t measured_count(const struct measured *measured);
/* Visits all rows, the one measured longest ago first; only those of `name` when it is not NULL.
 * Returns false when `visit` stopped the walk. */
typedef bool measured_on_row(void *context, const struct measured_row *row);
bool measured_each(const struct measured *measured, const struct hash32 *name,
                   measured_on_row *visit, void *context);
/* Visits the rows of the same work and class as `row`, without looking at others. */
bool measured_each_like(const struct measured *measured, const struct measured_row *row,
                        measured_on_row *visit, void *context);
/* Returns true when work on a device is told beside the work of its class at pace 1 (paces.h). At
 * least MEASURED_TOLD times must be measured there. Then the device's pace must differ, or its
 * median must be more than MEASURED_OFF_PERCENT off. */
enum { MEASURED_TOLD = 4, MEASURED_OFF_PERCENT = 20 };
bool measured_is_unlike(const struct history_summary *class_took, uint32_t pace,
                        const struct history_summary *took);

#endif
