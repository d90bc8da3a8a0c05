/* broker/answer/paces.h - how fast devices are beside others of their class, by all that was
 * measured (planner/cost/pace.h), and what a class's work takes by that.
 *
 * What the newest samples of a class took was measured on devices of unlike speed. So each is
 * divided by the pace of its device first: what is said of a class is what the work takes at pace
 * 1, on the fastest. No file, no clock. */
#ifndef BOURSE_BROKER_ANSWER_PACES_H
#define BOURSE_BROKER_ANSWER_PACES_H

#include "broker/answer/measured.h"

struct paced {
    char device_class[MEASURED_CLASS_SIZE];
    struct measured_device device;
    uint32_t pace; /* thousandths; not PACE_ONE */
};

struct paces;

/* By the table of devices. NULL without memory; NULL stands for paces of which none is known,
 * everywhere below. */
struct paces *paces_create(const struct measured *devices);
void paces_destroy(struct paces **self);

/* Of all devices that are not at pace 1. False: stopped by `visit`. */
typedef bool paces_on_device(void *context, const struct paced *paced);
bool paces_each(const struct paces *paces, paces_on_device *visit, void *context);

/* Of the device of this row, in thousandths. */
uint32_t paces_of(const struct paces *paces, const struct measured_row *row);

/* A row of a class at pace 1, or of a device as it is. */
struct history_summary paces_summarise(const struct paces *paces, const struct measured *devices,
                                       const struct measured_row *row);

/* What is told of work of that name: of each class, then of each device of one that is unlike it
 * (measured.h). Rows of a class are summed up once, and only its devices are looked at for it.
 * False: stopped by `visit`. */
typedef bool paces_on_told(void *context, const struct measured_row *row,
                           const struct history_summary *took);
bool paces_tell(const struct paces *paces, const struct measured *classes,
                const struct measured *devices, const struct hash32 *name, paces_on_told *visit,
                void *context);

#endif
