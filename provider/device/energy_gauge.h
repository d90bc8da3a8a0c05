/* provider/device/energy_gauge.h measures the energy of attempts on devices that are read from time
 * to time, such as NVIDIA's.
 *
 * A reading has the device's counter of energy, or its power at the moment, which stands for the
 * time since the reading before. An attempt is a span. The readings inside the span say the power
 * on average, and the span's time the energy:
 *
 *     readings    |         |         |         |         |
 *     span              |========================|
 *     measured              |<------------->|                energy = power there x span
 *
 * Readings must cover half of a span, else the span is not measured. Thread-safe. */
#ifndef BOURSE_PROVIDER_DEVICE_ENERGY_GAUGE_H
#define BOURSE_PROVIDER_DEVICE_ENERGY_GAUGE_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

enum { ENERGY_GAUGES_MAX = 16, ENERGY_GAUGE_NAME_SIZE = 129 };

struct energy_gauges;

/* Returns NULL when memory is short. */
struct energy_gauges *energy_gauge_create(void);
void energy_gauge_destroy(struct energy_gauges **self);

/* Takes a reading of the device with this label. A figure below 0 is not known. Devices beyond
 * ENERGY_GAUGES_MAX are not measured. */
void energy_gauge_read(struct energy_gauges *gauges, const char *label, int64_t now_ns,
                       int64_t energy_mj, int64_t power_mw);

/* A span belongs to its caller. It stays where it is from begin to end. */
struct energy_span {
    struct list_link link; /* entry of the gauges */
    char label[ENERGY_GAUGE_NAME_SIZE];
    int64_t begun_ns;
    int64_t first_ns, first_uj, last_ns, last_uj; /* its first and last readings */
    bool has_first;
    int64_t peak_mw; /* the greatest power that was read inside the span; -1: none was */
};
void energy_gauge_begin(struct energy_gauges *gauges, const char *label, int64_t now_ns,
                        struct energy_span *ret_span);
/* Ends the span, and returns the energy of the whole device meanwhile, in microjoules. Returns -1
 * when it was not measured. */
int64_t energy_gauge_end(struct energy_gauges *gauges, struct energy_span *span, int64_t now_ns);

#endif
