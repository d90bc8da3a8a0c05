/* provider/work/attempt_energy.h finds the energy of an attempt, for its result.
 *
 * Counters come first: the machine's for work on its cores, the device's for a GPU that is watched.
 * Where they tell nothing, the energy is an estimate: the power of the slots at full load, for as
 * long as they were busy. The result says which. */
#ifndef BOURSE_PROVIDER_WORK_ATTEMPT_ENERGY_H
#define BOURSE_PROVIDER_WORK_ATTEMPT_ENERGY_H

#include "provider/device/energy_gauge.h"
#include "provider/device/energy_meter.h"
#include "provider/policy.h"
#include "provider/work/outcome.h"

#include <stdatomic.h>

/* The energy of all attempts since the start, for the owner. Thread-safe. */
struct energy_tally {
    atomic_llong measured_uj, estimated_uj;
};

/* Each is NULL where there is none. */
struct energy_counters {
    struct energy_meter *meter;
    struct energy_gauges *gauges;
    struct energy_tally *tally;
};

struct attempt_energy {
    const struct energy_counters *counters;
    const struct offer *offer;
    bool is_on_cores; /* the machine's counters cover the work */
    bool has_span;
    struct energy_mark mark;
    struct energy_span span;
};

/* Begins to measure work on `offer`. The struct must not move until the end. */
void attempt_energy_begin(const struct energy_counters *counters, const struct offer *offer,
                          int64_t now_ns, struct attempt_energy *ret_energy);
/* Ends the measurement, and sets the energy of an outcome of `width` slots that has none. An
 * outcome without busy time gets none. The outcome also gets the greatest power that was read of
 * its device meanwhile. */
void attempt_energy_end(struct attempt_energy *energy, uint32_t width, int64_t now_ns,
                        struct outcome *outcome);

/* Returns the estimate in microjoules, or -1 where the power is unknown. The function is pure. */
int64_t attempt_energy_estimate_uj(const struct offer *offer, uint32_t width, int64_t busy_ns);

#endif
