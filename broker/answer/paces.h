/* Paces say how fast devices are beside others of their class, from measured times
 * (planner/cost/pace.h).
 *
 * The newest times of a class come from devices of different speeds. So each time is first divided
 * by the pace of its device. The time told for a class is the time at pace 1, on the fastest
 * device. The functions use no file and no clock. */
#ifndef BOURSE_BROKER_ANSWER_PACES_H
#define BOURSE_BROKER_ANSWER_PACES_H

#include "broker/answer/measured.h"

struct paced {
    char device_class[MEASURED_CLASS_SIZE];
    struct measured_device device;
    uint32_t pace; /* thousandths; never PACE_ONE */
};

struct paces;

/* Finds the paces from the table of devices. Returns NULL when memory is short. The
 * functions below take NULL for an empty table. */
struct paces *paces_create(const struct measured *devices);
void paces_destroy(struct paces **self);

/* Visits all devices that are not at pace 1. Returns false when `visit` stopped the walk. */
typedef bool paces_on_device(void *context, const struct paced *paced);
bool paces_each(const struct paces *paces, paces_on_device *visit, void *context);

/* Returns the pace of this row's device, in thousandths. */
uint32_t paces_of(const struct paces *paces, const struct measured_row *row);

/* Sums up a row. The times of a class are taken at pace 1, and the times of a device as they
 * are. */
struct history_summary paces_summarise(const struct paces *paces, const struct measured *devices,
                                       const struct measured_row *row);

/* Visits what is told about work of this name: first each class, then each device that is unlike
 * its class (measured.h). The row of a class is summed up once for all its devices. Returns false
 * when `visit` stopped the walk. */
typedef bool paces_on_told(void *context, const struct measured_row *row,
                           const struct history_summary *took);
bool paces_tell(const struct paces *paces, const struct measured *classes,
                const struct measured *devices, const struct hash32 *name, paces_on_told *visit,
                void *context);

#endif
