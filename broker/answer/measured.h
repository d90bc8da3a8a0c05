/* broker/answer/measured.h - what work was measured to take: by its name, the size of its inputs,
 * and the class of device, or one device of it.
 *
 * A class of devices is what the market trades them as (their instrument). Those of a class may be
 * of unlike speeds, which a median of all does not say: so rows of devices are kept, too, in a
 * table of their own, that many devices do not crowd out classes. Each row keeps the newest times
 * of planner/cost/history.h, which says what is an outlier. At most MEASURED_ROWS rows: the one
 * that was measured longest ago makes room. It is advice for who plans, no part of the exchange:
 * nothing that is decided depends on it. No file, no clock. */
#ifndef BOURSE_BROKER_ANSWER_MEASURED_H
#define BOURSE_BROKER_ANSWER_MEASURED_H

#include "planner/cost/history.h"
#include "protocol/work.h"

#include <stdbool.h>
#include <stddef.h>

enum { MEASURED_ROWS = 16384, MEASURED_CLASS_SIZE = 64 };

struct measured_device { /* all zeros: all of a class */
    struct key32 provider;
    struct id128 device; /* of the provider's */
};

struct measured_row {
    struct work work;
    char device_class[MEASURED_CLASS_SIZE]; /* "" where the device says no instrument */
    struct measured_device device;
    int64_t at_ns; /* log time of the newest */
    struct history history;
};

struct measured;

struct measured *measured_create(void); /* NULL without memory */
void measured_destroy(struct measured **self);

/* One time more, of a class or of a device of it. False, and nothing was added: it is not above
 * 0. */
bool measured_add(struct measured *measured, const struct work *work, const char *device_class,
                  const struct measured_device *device, int64_t took_ns, int64_t at_ns);
/* A row as it was; it is the newest then. */
void measured_put(struct measured *measured, const struct measured_row *row);

size_t measured_count(const struct measured *measured); /* rows */
/* All rows, the one that was measured longest ago first; those of one name only, where it is not
 * NULL. False: stopped by `visit`. */
typedef bool measured_on_row(void *context, const struct measured_row *row);
bool measured_each(const struct measured *measured, const struct hash32 *name,
                   measured_on_row *visit, void *context);
/* Of those of the same work and class as `row`; no others are looked at. */
bool measured_each_like(const struct measured *measured, const struct measured_row *row,
                        measured_on_row *visit, void *context);
/* Whether what work takes on a device is told beside what it takes on devices of its class at pace
 * 1 (paces.h): that many were measured there, and it is at another pace, or what half of these took
 * at most is more than a fifth off. */
enum { MEASURED_TOLD = 4, MEASURED_OFF_PERCENT = 20 };
bool measured_is_unlike(const struct history_summary *class_took, uint32_t pace,
                        const struct history_summary *took);

#endif
